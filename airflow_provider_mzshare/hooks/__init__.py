"""SURFACE: doors from Airflow to the rest. airflow itself is imported inside functions only."""
