"""Many rows by few statements: as many values as a database takes in one of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SIZE = 5_000
"""SQLite takes 32,766 values in one statement, Postgres 65,535; some of our statements name each value twice."""


def batches(values: Iterable[T], size: int = SIZE) -> Iterator[list[T]]:
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some
