"""Hooks: how Airflow uses the rest. The command line uses ``connections`` too, which imports airflow late."""
