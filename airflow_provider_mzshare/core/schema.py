"""Columns and their types, by the names SQL users know. Standard library only: this travels to Spark's executors."""

from __future__ import annotations

import re
from dataclasses import dataclass

TYPES = (
    "boolean", "smallint", "integer", "bigint", "real", "double", "numeric", "text", "bytea", "date", "timestamp",
    "timestamptz", "jsonb",
)  # fmt: skip
"""Canonical type names. ``numeric`` carries ``(precision,scale)``; ``jsonb`` is kept as canonical JSON text."""

_NUMERIC = re.compile(r"numeric\(([0-9]+),([0-9]+)\)")
MAX_PRECISION = 38

PLAIN_COLUMN = "data"
"""The one column of a table that lists none: the record as a whole."""

INCLUDE_TYPES = {"partition": "integer", "offset": "bigint", "timestamp": "timestamptz"}
"""Of metadata columns. The key has the type that the table's format says."""

SYSTEM_COLUMNS = (("_mz_tick", "bigint"), ("_mz_partition", "integer"), ("_mz_offset", "bigint"))
"""Last in every collection: which tick wrote the row, and where upstream it came from."""

ERROR_COLUMNS = (("timestamp", "timestamptz"), ("key", "bytea"), ("value", "bytea"), ("error", "text"))
"""An errors collection: these, then the system columns."""


DEFAULT_ENVELOPE = "none"
"""Of a table that names none: every record is a row."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str

    def __post_init__(self) -> None:
        check_type(self.type)


def numeric_parts(type_name: str) -> tuple[int, int] | None:
    """``(precision, scale)`` of a numeric type, or None for any other."""
    match = _NUMERIC.fullmatch(type_name)
    return (int(match[1]), int(match[2])) if match else None


def check_type(type_name: str) -> None:
    """Raise ValueError unless ``type_name`` is one of ours in canonical spelling."""
    parts = numeric_parts(type_name)
    if parts:
        precision, scale = parts
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            raise ValueError(f"{type_name}: precision is 1 to {MAX_PRECISION}, scale at most the precision")
    elif type_name == "numeric" or type_name not in TYPES:
        raise ValueError(f"{type_name!r} is not a column type; there are: {', '.join(TYPES)}")
