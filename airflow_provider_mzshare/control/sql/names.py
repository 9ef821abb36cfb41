"""Identifiers and qualified names: folding, quoting and limits; knows nothing of what exists."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from airflow_provider_mzshare.errors import StatementError

DEFAULT_SCHEMA = "public"
MAX_NAME_BYTES = 255

_RESERVED = """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign from grant group having if in initially intersect into lateral
    leading limit localtime localtimestamp not null on only or order placing primary references returning select
    session_user some symmetric system_user table then to trailing true union unique user using variadic when where
    window with
"""
RESERVED = frozenset(_RESERVED.split())
"""Reserved words of PostgreSQL, and IF, but not OFFSET. As names they need double quotes."""

_BARE = re.compile(r"[^\W\d][\w$]*")
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")
_UPPER_TO_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def is_bare(text: str) -> bool:
    """Whether this can be a word without quotes."""
    return _BARE.fullmatch(text) is not None


def fold(text: str) -> str:
    """What an unquoted word means as a name. ASCII only, as in PostgreSQL: other letters have no one lower case."""
    return text.translate(_UPPER_TO_LOWER)


def needs_quotes(name: str) -> bool:
    return _PLAIN.fullmatch(name) is None or name in RESERVED


def quote(name: str) -> str:
    """The name as it must be written in SQL."""
    return '"' + name.replace('"', '""') + '"' if needs_quotes(name) else name


def check_name(name: str, what: str) -> None:
    """Raise ValueError unless ``name`` may name something; ``what`` goes into the message."""
    if not name:
        raise ValueError(f"{what} must not be empty")
    for char in name:
        if unicodedata.category(char) in ("Cc", "Cs"):
            raise ValueError(f"{what} must not contain the control character U+{ord(char):04X}")
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        raise ValueError(f"{what} is {size} bytes long, the limit is {MAX_NAME_BYTES}")


@dataclass(frozen=True, order=True)
class QualifiedName:
    """``schema.name``. ``str()`` is SQL: it parses back to the same name."""

    schema: str
    name: str

    def __post_init__(self) -> None:
        try:
            check_name(self.schema, "a schema name")
            check_name(self.name, "a name")
        except ValueError as error:
            raise StatementError(str(error)) from None

    def __str__(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"
