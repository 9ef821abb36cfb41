"""mzshare: one shared streaming read feeds any number of exact Delta tables, driven from Airflow."""

__version__ = "0.1.0"
