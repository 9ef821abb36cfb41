"""A group of ticks, which are executed together: one of them by an ingestion app, many by a backfill."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.errors import LogConflict


@dataclass(frozen=True)
class TickGroup:
    """Consecutive whole ticks. Together they are written like one tick at the time of the last one."""

    ticks: tuple[Tick, ...]

    def __post_init__(self) -> None:
        if not self.ticks:
            raise ValueError("a group has at least one tick")
        for before, after in pairwise(self.ticks):
            follows = after.number == before.number + 1 and after.lower == before.upper
            if not follows or after.mz_timestamp <= before.mz_timestamp:
                raise LogConflict(
                    f"tick {after.number} from {after.lower} at {after.mz_timestamp} does not follow tick "
                    f"{before.number}, which ends at {before.upper} at {before.mz_timestamp}"
                )

    @property
    def first(self) -> Tick:
        return self.ticks[0]

    @property
    def last(self) -> Tick:
        return self.ticks[-1]

    @property
    def number(self) -> int:
        return self.last.number

    @property
    def lower(self) -> Position:
        return self.first.lower

    @property
    def upper(self) -> Position:
        return self.last.upper

    @property
    def first_timestamp(self) -> int:
        return self.first.mz_timestamp

    @property
    def mz_timestamp(self) -> int:
        return self.last.mz_timestamp

    @property
    def records(self) -> int:
        """How many offsets the group has; there may be fewer records."""
        return self.upper.gap(self.lower)

    @property
    def partitions(self) -> int:
        """How many partitions have something to read."""
        return sum(1 for partition in self.upper if self.upper[partition] > self.lower[partition])

    def at(self, mz_timestamp: int) -> Tick | None:
        """The group's tick with this time, if there is one."""
        index = bisect_left(self.ticks, mz_timestamp, key=lambda tick: tick.mz_timestamp)
        found = self.ticks[index] if index < len(self.ticks) else None
        return found if found and found.mz_timestamp == mz_timestamp else None

    def after(self, number: int) -> Tick:
        """The first of its ticks that comes after tick ``number``."""
        return self.ticks[max(0, number + 1 - self.first.number)]

    def ends(self) -> dict[str, tuple[int, ...]]:
        """Where each tick but the last ends, in every partition that has something to read; empty for a single tick."""
        if len(self.ticks) == 1:
            return {}
        moved = [partition for partition in self.upper if self.upper[partition] > self.lower[partition]]
        return {partition: tuple(tick.upper[partition] for tick in self.ticks[:-1]) for partition in moved}
