"""A topic in memory. A set of rows is one number, a bit per row: thousands of interleavings have to be cheap."""

from __future__ import annotations

import random
from functools import lru_cache

from airflow_provider_mzshare.core.positions import Position

MAX_PARTITIONS = 4
WIDTH = 64
"""Offsets per partition, at most."""

START = Position()
BAD = sum(1 << bit for bit in range(MAX_PARTITIONS * WIDTH) if bit % 3 == 1)
"""Records that cannot be decoded: they go to the errors, all others to the data."""
ROLES = ("errors", "data")
"""In the order of their commits."""


@lru_cache(maxsize=200_000)
def prefix(position: Position) -> int:
    """All rows below a position."""
    return sum(((1 << offset) - 1) << (int(partition) * WIDTH) for partition, offset in position.entries)


def part(rows: int, role: str) -> int:
    return rows & BAD if role == "errors" else rows & ~BAD


class Topic:
    def __init__(self, chance: random.Random) -> None:
        self._random = chance
        self._ends = [0] * chance.randint(1, 3)
        self.gone = 0
        """Rows that the topic's own compaction has removed; positions stay as they are."""
        self.end = START

    @property
    def partitions(self) -> int:
        return len(self._ends)

    def produce(self) -> None:
        partition = self._random.randrange(len(self._ends))
        self._ends[partition] = min(WIDTH - 1, self._ends[partition] + self._random.randint(1, 3))
        self.end = Position(dict(enumerate(self._ends)))

    def add_partition(self) -> bool:
        if len(self._ends) == MAX_PARTITIONS:
            return False
        self._ends.append(0)
        return True

    def compact(self) -> None:
        """About half of the newest rows go, so that two reads of one tick differ."""
        newest = [min(8, end) for end in self._ends]
        for partition, (end, depth) in enumerate(zip(self._ends, newest, strict=True)):
            mask = self._random.getrandbits(depth) if depth else 0
            self.gone |= mask << (partition * WIDTH + end - depth)

    def read(self, lower: Position, upper: Position) -> int:
        return prefix(upper) & ~prefix(lower) & ~self.gone

    def read_through(self, lower: Position, upper: Position) -> int:
        """As a loop reads that takes an exclusive end for the last offset."""
        further = Position({p: min(upper[p] + 1, end) for p, end in enumerate(self._ends)})
        return prefix(further) & ~prefix(lower) & ~self.gone
