"""What a generator was asked for and how far its clock has come; plain values that travel to executors as JSON.

In each step of the clock every partition gets ``batch_size`` records. Within a step they come partition after
partition, so that what a record refers to, which is in a partition before its own, is never later than the record.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VERSION = 1
"""The version of the records. If a later version generates other records, older sources must not go on unnoticed."""

_INCARNATION = re.compile(r"loadgen:(\d+):(\d+):[0-9a-f]+")

AUCTION_PARTITIONS = 5

Offsets = Mapping[int, int]


def new_incarnation(begin_ms: int) -> str:
    return f"loadgen:{VERSION}:{begin_ms}:{secrets.token_hex(4)}"


def read_incarnation(text: str) -> tuple[int, int] | None:
    """The version of the records and when the clock began; None for what is no incarnation of a generator."""
    found = re.fullmatch(_INCARNATION, text)
    return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True)
class Range:
    """``[lower, upper)`` of a partition."""

    partition: int
    lower: int
    upper: int

    @property
    def records(self) -> int:
        return self.upper - self.lower

    def cut(self, lower: int, upper: int) -> Range:
        """What of it lies there."""
        return Range(self.partition, lower, upper)


@dataclass(frozen=True)
class GeneratorPlan:
    """:param begin_ms: when the clock began. :param up_to: so many records of each partition and no more."""

    generator: str
    seed: int
    begin_ms: int
    tick_interval_ms: int
    batch_size: int
    up_to: int | None
    keys: int
    value_size: int
    key_value_partitions: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> GeneratorPlan:
        return cls(**json.loads(text))

    @property
    def partitions(self) -> tuple[int, ...]:
        count = {"auction": AUCTION_PARTITIONS, "key_value": self.key_value_partitions}.get(self.generator, 1)
        return tuple(range(count))

    def end(self, now_ms: int) -> int:
        """How many records each partition has by now."""
        made = max(0, (now_ms - self.begin_ms) // self.tick_interval_ms) * self.batch_size
        return made if self.up_to is None else min(made, self.up_to)

    def next_end(self, at: Offsets, now_ms: int, max_records: int) -> dict[int, int]:
        """The end of the next batch of a reader at ``at``; never before ``at``, even if the clock is set back."""
        ends = dict.fromkeys(self.partitions, self.end(now_ms))
        if sum(max(0, ends[p] - at.get(p, 0)) for p in ends) > max_records:
            ends = self._after(sum(at.get(p, 0) for p in self.partitions) + max_records)
        return {p: max(ends[p], at.get(p, 0)) for p in self.partitions}

    def _after(self, records: int) -> dict[int, int]:
        """The position of each partition after so many records of all of them together."""
        steps, rest = divmod(records, self.batch_size * len(self.partitions))
        done = steps * self.batch_size
        # UP TO may cut the last step short.
        room = self.batch_size if self.up_to is None else min(self.batch_size, self.up_to - done)
        ends: dict[int, int] = {}
        for partition in self.partitions:
            ends[partition] = done + min(rest, room)
            rest -= min(rest, room)
        return ends


def ranges_of(lower: Offsets, upper: Offsets) -> list[Range]:
    """``[lower, upper)``, by partition."""
    return [Range(p, lower.get(p, 0), upper[p]) for p in sorted(upper) if upper[p] > lower.get(p, 0)]
