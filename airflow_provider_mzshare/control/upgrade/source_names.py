"""The name that a migrated source gets: its own with ``_source``, the first that is free and short enough."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count

from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.sql.names import MAX_NAME_BYTES

IsTaken = Callable[[Name], bool]


def source_name(name: Name, is_taken: IsTaken) -> Name:
    """``orders_source``, then ``orders_source_1``, …; a name that would be too long is cut at its end."""
    schema, plain = name
    candidates = ((schema, _fitting(plain, ending)) for ending in _endings())
    return next(candidate for candidate in candidates if not is_taken(candidate))


def _endings() -> chain[str]:
    return chain(("_source",), (f"_source_{number}" for number in count(1)))


def _fitting(name: str, ending: str) -> str:
    room = MAX_NAME_BYTES - len(ending.encode())
    # A character has up to four bytes: the rest of a character that was cut is dropped.
    return name.encode()[:room].decode(errors="ignore") + ending
