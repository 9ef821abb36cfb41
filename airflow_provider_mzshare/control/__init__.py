"""CONTROL: what should exist. Catalog, SQL statements, reconciliation. Never imports pyspark or airflow."""
