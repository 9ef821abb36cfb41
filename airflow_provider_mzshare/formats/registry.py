"""The formats that there are, by the names in specs and, in capitals, the words of SQL. Stays on the driver.

Names are known without importing a format: only code that decodes, or asks what a format takes, imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.errors import FormatNotLoaded, UnknownFormat

if TYPE_CHECKING:
    from airflow_provider_mzshare.formats.base import Format

_HERE = "airflow_provider_mzshare.formats"
NATIVE = "none"
"""The format of a table without FORMAT: the upstream has columns of its own."""
UNWRITTEN = frozenset({NATIVE, "postgres"})
"""Formats of upstreams that have columns of their own: statements never name them."""

FORMATS: Registry[Format] = Registry(
    "format",
    "mzshare.formats",
    {
        "json": f"{_HERE}.json:JSON",
        "text": f"{_HERE}.text:TEXT",
        "bytes": f"{_HERE}.bytes:BYTES",
        NATIVE: f"{_HERE}.native:NATIVE",
        "postgres": f"{_HERE}.postgres:POSTGRES",
    },
)


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise UnknownFormat(name, list(FORMATS))
    try:
        return FORMATS.get(name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise FormatNotLoaded(name, FORMATS.targets[name], reason) from error


def format_target(name: str) -> str:
    """``module:attribute`` of it, by which executors load it."""
    if name not in FORMATS:
        raise UnknownFormat(name, list(FORMATS))
    return FORMATS.targets[name]


def sql_word(name: str) -> str | None:
    """The word after FORMAT; None for a format that is used if FORMAT is left out."""
    return None if name in UNWRITTEN else name.upper()


def sql_words() -> tuple[str, ...]:
    """All words that may follow FORMAT."""
    return tuple(word for name in FORMATS if (word := sql_word(name)))


def words_with_columns() -> tuple[str, ...]:
    """The words of formats that take a list of columns."""
    return tuple(word for name in FORMATS if (word := sql_word(name)) and format_named(name).takes_columns)


def choices() -> tuple[str, ...]:
    """The names that users may give; ``none`` stands for all that statements never name."""
    return tuple(name for name in FORMATS if name == NATIVE or name not in UNWRITTEN)


def any_of(words: Sequence[str]) -> str:
    """``JSON, TEXT or BYTES``."""
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
