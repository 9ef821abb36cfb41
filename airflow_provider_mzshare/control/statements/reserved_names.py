"""Names that nobody may give: those in schemas of ours. Looks nothing up."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog.objects.schemas import is_reserved
from airflow_provider_mzshare.control.definition_errors import ReservedSchema
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote


def check_name(name: QualifiedName) -> None:
    """Raise unless an object may be made, or brought, under this name."""
    check_schema(name.schema)


def check_schema(name: str) -> None:
    if is_reserved(name):
        raise ReservedSchema(quote(name))
