"""Spans of offsets, as Python data sources of Spark read them: cut into shares, a task for each.

Travels to executors, and imports the standard library alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

RECORDS_PER_TASK = 100_000

S = TypeVar("S", bound="Span")


class Span(Protocol):
    """Records of one partition, ``[lower, upper)``."""

    @property
    def lower(self) -> int: ...

    @property
    def upper(self) -> int: ...

    def cut(self: S, lower: int, upper: int) -> S:
        """What of it lies there."""
        ...


def records_of(spans: Sequence[Span]) -> int:
    return sum(span.upper - span.lower for span in spans)


def split(spans: Sequence[S], tasks: int | None = None) -> list[tuple[S, ...]]:
    """All of them in about ``tasks`` shares of as many records; None: as many as Spark is best given."""
    total = records_of(spans)
    if tasks is None:
        tasks = -(-total // RECORDS_PER_TASK)
    return list(_shares(spans, -(-total // max(1, tasks)))) if total else []


def _shares(spans: Sequence[S], size: int) -> Iterator[tuple[S, ...]]:
    share: list[S] = []
    room = size
    for span in spans:
        lower = span.lower
        while lower < span.upper:
            upper = min(span.upper, lower + room)
            share.append(span.cut(lower, upper))
            room -= upper - lower
            lower = upper
            if not room:
                yield tuple(share)
                share, room = [], size
    if share:
        yield tuple(share)


def offsets_of(named: Mapping[str, Any]) -> dict[int, int]:
    """As Spark has them, ``{"0": 120, "1": 87}``, by partition."""
    return {int(partition): int(offset) for partition, offset in named.items()}
