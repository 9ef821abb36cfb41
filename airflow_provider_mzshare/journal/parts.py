"""Which parts of which files hold a range of a journal; plain values that travel to executors as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_mzshare.journal.reading import Extent


@dataclass(frozen=True)
class Part:
    """Messages of one file.

    :param record_bytes: what one of them weighs about, where that is known. Does not travel.
    """

    partition: int
    extent: Extent
    record_bytes: float = 0.0

    @property
    def lower(self) -> int:
        return self.extent.lower

    @property
    def upper(self) -> int:
        return self.extent.upper

    @property
    def records(self) -> int:
        return self.upper - self.lower

    def cut(self, lower: int, upper: int) -> Part:
        return replace(self, extent=replace(self.extent, lower=lower, upper=upper))

    def to_plain(self) -> dict[str, Any]:
        return {"partition": self.partition, **self.extent.to_json()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Part:
        extent = dict(plain)
        return cls(extent.pop("partition"), Extent.from_json(extent))


def within(parts: Iterable[Part], lower: Mapping[int, int], upper: Mapping[int, int]) -> list[Part]:
    """What of these parts lies in ``[lower, upper)``."""
    found: list[Part] = []
    for part in parts:
        first = max(part.extent.lower, lower.get(part.partition, 0))
        last = min(part.extent.upper, upper.get(part.partition, 0))
        if first < last:
            found.append(part.cut(first, last))
    return found


def missing(parts: Sequence[Part], lower: Mapping[int, int], upper: Mapping[int, int]) -> int:
    """How many messages of ``[lower, upper)`` are in none of these parts, which do not overlap."""
    wanted = sum(max(0, end - lower.get(partition, 0)) for partition, end in upper.items())
    return wanted - sum(part.records for part in within(parts, lower, upper))


def next_end(at: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Where a batch ends that begins at ``at``: all there is, or about ``most`` records, shared by the partitions."""
    left = {partition: max(0, end - at.get(partition, 0)) for partition, end in ends.items()}
    found = {partition: at.get(partition, 0) for partition in {*at, *ends}}
    while most > 0 and (waiting := [partition for partition, count in left.items() if count]):
        share = max(1, most // len(waiting))
        for partition in sorted(waiting):
            taken = min(left[partition], share, most)
            found[partition] += taken
            left[partition] -= taken
            most -= taken
    return found
