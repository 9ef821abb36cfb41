"""Columns and their types, by the names SQL users know. Standard library only: this travels to Spark's executors."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
"""The types of metadata columns. The key's type is the one that the table's format says."""

RESERVED = "_mz_"
"""Only the system columns of a collection begin with this; columns of a table must not."""

TICK = "_mz_tick"
"""The tick that wrote the row; the first system column. The other system columns are the row's place upstream;
each kind of source names them."""

ERROR_COLUMNS = (("timestamp", "timestamptz"), ("key", "bytea"), ("value", "bytea"), ("error", "text"))
"""An errors collection: these, then the system columns."""

HASH_VERSION = 1
"""The version of the hash for rows of new collections; ``storage/fanout/hashing.py`` has all versions."""

Columns = tuple[tuple[str, str], ...]
"""Names and types, in their order."""


def system_columns(place: Columns) -> Columns:
    """The last columns in every collection of a source whose records have this place."""
    return ((TICK, "bigint"), *place)


def system_names(names: Sequence[str]) -> tuple[str, ...]:
    """The system columns among the columns of a collection. Rows are sorted by them."""
    return tuple(name for name in names if name.startswith(RESERVED))


DEFAULT_ENVELOPE = "none"
"""The envelope of a table that names none: every record is one row."""


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
