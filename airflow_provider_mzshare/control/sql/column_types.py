"""The spellings of column types in SQL, to and from the canonical names of ``types.schema``."""

from __future__ import annotations

from airflow_provider_mzshare.core.schema import TYPES

DEFAULT_NUMERIC = "numeric(38,9)"

ALIASES = {
    "bool": "boolean",
    "int2": "smallint",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float": "double",
    "float8": "double",
    "double precision": "double",
    "decimal": "numeric",
    "dec": "numeric",
    "varchar": "text",
    "character varying": "text",
    "char varying": "text",
    "string": "text",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "json": "jsonb",
}
"""Every spelling that is not a canonical name itself."""

COLUMN_TYPES = tuple("double precision" if name == "double" else name for name in TYPES if name != "bytea")
"""For messages. JSON, the one format with a column list, has no bytes."""


def base_type(spelling: str) -> str | None:
    """The canonical name for a lower-case spelling, ``numeric`` without its digits; None if there is no such type."""
    if spelling in TYPES:
        return spelling
    return ALIASES.get(spelling)


def to_sql(canonical: str) -> str:
    """How a canonical type is printed: PostgreSQL knows no ``double`` alone."""
    return "double precision" if canonical == "double" else canonical


def from_sql(printed: str) -> str:
    return "double" if printed == "double precision" else printed
