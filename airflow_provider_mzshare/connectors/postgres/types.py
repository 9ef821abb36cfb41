"""Which type of ours a column of Postgres has. Only types that hold every ordinary value exactly; others are text
where the user says so. Pure.

What a type of Postgres can hold beyond ours (NaN in a numeric, infinite times, years that ours do not have) becomes an
error of the row, which names the column.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_mzshare.core.schema import MAX_PRECISION

NUMERIC = 1700
_MOD_HEADER = 4
"""What Postgres adds to every modifier, so that none is 0."""

TYPES: Mapping[int, str] = {
    16: "boolean",
    17: "bytea",
    18: "text",  # "char"
    19: "text",  # name
    20: "bigint",
    21: "smallint",
    23: "integer",
    25: "text",
    26: "bigint",  # oid
    114: "text",  # json: as it was written, which jsonb would not keep
    700: "real",
    701: "double",
    1042: "text",  # character(n), with its blanks
    1043: "text",  # character varying
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
    2950: "text",  # uuid
    3802: "jsonb",
}
"""By oids, which are the same in every Postgres. Enums have their own: they are text."""


def our_type(oid: int, mod: int, *, is_enum: bool = False) -> str | None:
    """None for a type that only TEXT COLUMNS takes.

    :param oid: of the type, or of what a domain is made of. :param mod: its modifier, -1 for none.
    """
    if is_enum:
        return "text"
    return _numeric(mod) if oid == NUMERIC else TYPES.get(oid)


def _numeric(mod: int) -> str | None:
    """None without a precision, with one too large, and with a scale that is negative or beyond the precision."""
    if mod < _MOD_HEADER:
        return None
    packed = mod - _MOD_HEADER
    precision, scale = packed >> 16 & 0xFFFF, ((packed & 0x7FF) ^ 1024) - 1024
    fits = precision <= MAX_PRECISION and 0 <= scale <= precision
    return f"numeric({precision},{scale})" if fits else None
