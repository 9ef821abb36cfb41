"""The catalog: what exists, how far it has come and who works on it, in a database of its own."""

from airflow_provider_mzshare.control.catalog.database.engine import Catalog

__all__ = ["Catalog"]
