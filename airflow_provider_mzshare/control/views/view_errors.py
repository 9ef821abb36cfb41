"""What can be wrong with a view, as errors: each names the thing and the next step."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from airflow_provider_mzshare.errors import TerminalError


class BadQuery(TerminalError):
    """A query that is no SELECT of ours, or calls what it may not."""


class UnknownRelation(TerminalError):
    """A query names something that is not there. Names are written as in SQL."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        near = near_names(name, known)
        also = f"; there is {' and '.join(near)}" if near else ""
        super().__init__(f"there is no source, table or view {name!r}{also}", hint="mzshare sql 'SHOW TABLES'")


class UnknownColumn(TerminalError):
    """A query names a column that its relation does not have."""

    def __init__(self, column: str, known: Iterable[str]) -> None:
        self.column = column
        known = list(known)
        near = near_names(column, known)
        there = f"there is {' and '.join(near)}" if near else f"there are: {', '.join(known) or 'none'}"
        super().__init__(f"there is no column {column!r} here; {there}", hint="use one of the columns that exist")


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of ``known`` that look like it."""
    by_lower = {one.lower(): one for one in known}
    return [by_lower[one] for one in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]
