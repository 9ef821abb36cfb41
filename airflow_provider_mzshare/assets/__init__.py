"""Tables as assets of Airflow."""
