"""Positions: the next offset to read, per partition. Exclusive uppers, never "the offset of the last row".

What a partition and an offset are is the upstream's: a database has one lane, ``lsn``, and its log's numbers there. An
offset is a whole number from 0 on, of any size. A partition that is missing is at 0, so partitions may be added later;
zeros are dropped, which makes the JSON of equal positions the same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


def _partition_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)


@dataclass(frozen=True, init=False)
class Position:
    """A point of a source. Positions are partially ordered: each partition is compared on its own."""

    entries: tuple[tuple[str, int], ...]

    def __init__(self, offsets: Mapping[str, int] | Mapping[int, int] = {}) -> None:
        items = []
        for partition, offset in offsets.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                raise ValueError(f"partition {partition}: an offset must be a whole number, 0 or more, not {offset!r}")
            if offset:
                items.append((str(partition), offset))
        items.sort(key=lambda item: _partition_order(item[0]))
        object.__setattr__(self, "entries", tuple(items))

    @classmethod
    def from_json(cls, text: str) -> Position:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError(f"a position must be a JSON object, not {text!r}")
        return cls(value)

    def to_json(self) -> str:
        return json.dumps(dict(self.entries), separators=(",", ":"))

    @cached_property
    def offsets(self) -> Mapping[str, int]:
        return dict(self.entries)

    def __getitem__(self, partition: str | int) -> int:
        return self.offsets.get(str(partition), 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self.offsets)

    def __le__(self, other: Position) -> bool:
        return all(offset <= other[partition] for partition, offset in self.entries)

    def __ge__(self, other: Position) -> bool:
        return other <= self

    def __lt__(self, other: Position) -> bool:
        return self <= other and self != other

    def __gt__(self, other: Position) -> bool:
        return other < self

    def join(self, other: Position) -> Position:
        """The smallest position that neither has passed: the larger offset of each partition."""
        return Position({p: max(self[p], other[p]) for p in {*self, *other}})

    def meet(self, other: Position) -> Position:
        """The largest position that both have reached: the smaller offset of each partition."""
        return Position({p: min(self[p], other[p]) for p in {*self, *other}})

    def toward(self, end: Position, most: int) -> Position:
        """As far toward ``end`` as about ``most`` offsets allow: each partition gets its share, and at least one."""
        sizes = {p: end[p] - self[p] for p in end if end[p] > self[p]}
        total = max(sum(sizes.values()), most)
        shares = {p: size if total == most else max(1, size * most // total) for p, size in sizes.items()}
        return Position({p: self[p] + shares.get(p, 0) for p in {*self, *end}})

    @property
    def total(self) -> int:
        """The sum of its offsets."""
        return sum(offset for _, offset in self.entries)

    def gap(self, lower: Position) -> int:
        """How many offsets lie in ``[lower, self)``; partitions that went backwards count as none."""
        return sum(max(0, offset - lower[partition]) for partition, offset in self.entries)

    def __str__(self) -> str:
        return self.to_json()
