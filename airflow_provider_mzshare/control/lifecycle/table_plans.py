"""What happens for the tables of one transaction, as steps with estimates: what is shown of their plans. Pure.

How each table comes in was decided before (``core/ticklog/arrival_plans``); the steps say it for all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival, Way
from airflow_provider_mzshare.core.ticklog.state import SourceState

_ORIGIN = Position()
USUAL_RATE = 20_000
"""Records per second that a backfill reads at least on a small machine, where no BACKFILL RATE says less."""


@dataclass(frozen=True)
class Step:
    """One thing that happens for some tables, named as in SQL."""

    tables: tuple[str, ...]
    name: ClassVar[str] = "?"


@dataclass(frozen=True)
class ShareFromFirstTick(Step):
    """The tables are members from the next tick on, which is the first that has records for them."""

    name: ClassVar[str] = "share"


@dataclass(frozen=True)
class StartAtNow(Step):
    """The tables are members of the next tick; they do not get earlier records."""

    position: Position = _ORIGIN
    name: ClassVar[str] = "start_at_now"


@dataclass(frozen=True)
class Estimate:
    """What a backfill has to read, once, for all its tables.

    :param records: at most so many: offsets are counted, and some hold no record.
    :param size: bytes, about, before compression; None when nobody looked.
    :param rate: records per second that it may read; None is no limit, 0 a pause.
    """

    records: int
    partitions: int
    size: int | None = None
    rate: int | None = None

    @property
    def seconds(self) -> float | None:
        """The time at this rate, as an upper limit; None without a rate."""
        return self.records / self.rate if self.rate else None


@dataclass(frozen=True)
class Backfill(Step):
    """An app of its own reads the ticks ``first`` to ``last`` for them: of each partition ``[lower, upper)``."""

    lower: Position = _ORIGIN
    upper: Position = _ORIGIN
    first: int = 1
    last: int = 0
    estimate: Estimate = field(default_factory=lambda: Estimate(0, 0))
    name: ClassVar[str] = "backfill"

    @property
    def history(self) -> dict[str, tuple[int, int]]:
        """The range of each partition that has records to read."""
        return {p: (self.lower[p], self.upper[p]) for p in self.upper if self.upper[p] > self.lower[p]}


@dataclass(frozen=True)
class Snapshot(Step):
    """An app of its own reads what the upstream's tables hold, all at one moment: no log goes back far enough."""

    name: ClassVar[str] = "snapshot"


@dataclass(frozen=True)
class Follow(Step):
    """The same app goes on with the ticks that are minted meanwhile."""

    name: ClassVar[str] = "follow"


@dataclass(frozen=True)
class CutOver(Step):
    """At the first tick that begins exactly at their position, the tables become members.

    :param replaced: of these, the new generation takes the place of the old one at that tick.
    """

    replaced: tuple[str, ...] = ()
    name: ClassVar[str] = "cut_over"


@dataclass(frozen=True)
class DeletesKept:
    """An upstream that compacts keeps deletes only for a while: whoever is behind for longer may miss some.

    :param tables: the keyed ones. :param seconds: for so long.
    :param backfill_seconds: what their backfill may take, about; None where there is none.
    """

    tables: tuple[str, ...]
    seconds: float
    backfill_seconds: float | None = None

    @property
    def too_short(self) -> bool:
        """Will the backfill hardly end in that time?"""
        return self.backfill_seconds is not None and 2 * self.backfill_seconds > self.seconds


@dataclass(frozen=True)
class TablePlan:
    """What happens for the tables that one transaction makes or heals on one source."""

    source: str
    steps: tuple[Step, ...]
    deletes: DeletesKept | None = None
    """Of keyed tables, if their upstream compacts."""

    @property
    def backfilled(self) -> tuple[str, ...]:
        return tuple(table for step in self.steps if isinstance(step, Backfill | Snapshot) for table in step.tables)

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"source": self.source, "steps": [_step_to_json(step) for step in self.steps]}
        if self.deletes is not None:
            kept = self.deletes
            record["deletes_kept"] = {"tables": list(kept.tables), "seconds": kept.seconds, "too_short": kept.too_short}
        return record


def plan_tables(
    source: str,
    state: SourceState,
    settings: SourceSettings,
    arrivals: Sequence[Arrival],
    sizes: Mapping[str, float] | None = None,
    kept: Mapping[str, float] | None = None,
) -> TablePlan:
    """:param sizes: mean bytes of a record, by partition, as far as somebody looked.
    :param kept: keyed tables of an upstream that compacts, and for how many seconds it keeps deletes.
    """
    by_way: dict[Way, list[Arrival]] = {"share": [], "now": [], "backfill": []}
    for arrival in arrivals:
        by_way[arrival.way].append(arrival)
    steps: list[Step] = []
    if shared := by_way["share"]:
        steps.append(ShareFromFirstTick(_tables(shared)))
    if at_now := by_way["now"]:
        steps.append(StartAtNow(_tables(at_now), at_now[0].position))
    if later := by_way["backfill"]:
        replaced = tuple(arrival.table for arrival in later if arrival.replaces)
        begin = [arrival for arrival in later if arrival.by_snapshot]
        go_on = [arrival for arrival in later if not arrival.by_snapshot]
        steps += [Snapshot(_tables(begin))] if begin else []
        steps += [_backfill(state, settings, go_on, sizes or {})] if go_on else []
        steps.append(Follow(_tables(later)))
        steps.append(CutOver(_tables(later), replaced))
    return TablePlan(source, tuple(steps), _deletes_kept(steps, kept) if kept else None)


def _deletes_kept(steps: Sequence[Step], kept: Mapping[str, float]) -> DeletesKept:
    reads = [s.estimate for s in steps if isinstance(s, Backfill) and not kept.keys().isdisjoint(s.tables)]
    seconds = [one.seconds if one.seconds is not None else one.records / USUAL_RATE for one in reads]
    return DeletesKept(tuple(kept), min(kept.values()), max(seconds, default=None))


def _tables(arrivals: Sequence[Arrival]) -> tuple[str, ...]:
    return tuple(arrival.table for arrival in arrivals)


def _backfill(
    state: SourceState, settings: SourceSettings, arrivals: Sequence[Arrival], sizes: Mapping[str, float]
) -> Backfill:
    lower = arrivals[0].position
    for arrival in arrivals[1:]:
        lower = lower.meet(arrival.position)
    upper = state.upper
    moved = [partition for partition in upper if upper[partition] > lower[partition]]
    return Backfill(
        tables=_tables(arrivals),
        lower=lower,
        upper=upper,
        first=min(arrival.tick for arrival in arrivals),
        last=state.last_number,
        estimate=Estimate(
            records=upper.gap(lower),
            partitions=len(moved),
            size=_size({partition: upper[partition] - lower[partition] for partition in moved}, sizes),
            rate=settings.backfill_rate,
        ),
    )


def _size(records: Mapping[str, int], sizes: Mapping[str, float]) -> int | None:
    """For partitions without samples, the mean size of the others is used."""
    if not sizes:
        return None
    mean = sum(sizes.values()) / len(sizes)
    return round(sum(count * sizes.get(partition, mean) for partition, count in records.items()))


def _step_to_json(step: Step) -> dict[str, Any]:
    record: dict[str, Any] = {"step": step.name, "tables": list(step.tables)}
    if isinstance(step, StartAtNow):
        record["position"] = dict(step.position.offsets)
    if isinstance(step, CutOver):
        record["replaced"] = list(step.replaced)
    if isinstance(step, Backfill):
        estimate = step.estimate
        record |= {"first_tick": step.first, "last_tick": step.last}
        record["history"] = {partition: list(ends) for partition, ends in step.history.items()}
        record |= {"records": estimate.records, "bytes": estimate.size, "partitions": estimate.partitions}
        record |= {"rate": estimate.rate, "seconds": estimate.seconds}
    return record
