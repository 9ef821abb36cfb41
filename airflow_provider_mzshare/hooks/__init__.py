"""SURFACE: doors from Airflow to the rest. ``connections`` is for the command line too, and imports airflow late."""
