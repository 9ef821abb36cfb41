"""A relation of the catalog as a value: where it is, what its columns are, and the query behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from airflow_provider_mzshare.control.relations.dialects import Dialect

ColumnType = Literal["text", "integer", "bigint", "boolean", "text[]", "jsonb"]
"""On SQLite ``text[]`` and ``jsonb`` are JSON as text, ``boolean`` is 0 or 1."""
SchemaName = Literal["mz_catalog", "mz_internal"]


@dataclass(frozen=True)
class Column:
    name: str
    about: str
    type: ColumnType = "text"


@dataclass(frozen=True)
class Relation:
    """``query`` has the columns in the same order; names are the catalog's own tables."""

    schema: SchemaName
    name: str
    about: str
    columns: tuple[Column, ...]
    query: Callable[[Dialect], str]
