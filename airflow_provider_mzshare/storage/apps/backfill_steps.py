"""What a backfill does next, and when: decisions without input, output or clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import spec_versions
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import TableState, Tick

MAX_RECORDS = 500_000
"""Per group. For small reads the broker sends much more than is used; large reads need much memory."""
MAX_TICKS = 20_000
GROUP_SECONDS = 10.0
"""With a BACKFILL RATE, a group takes at most this long, so that a changed rate takes effect soon."""


# ── which ticks ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rearmost:
    """The tables that are furthest behind, all at the same tick.

    :param first: the first tick that they do not have.
    :param before: where the next of the others waits, so that from there on they are read for together; or, if that
        comes first, where the spec of one of these changes: a table is written with one spec per group.
    """

    table_ids: frozenset[ItemId]
    first: int
    before: int | None


def rearmost(
    tables: Mapping[ItemId, TableState], specs: Mapping[ItemId, Sequence[int]] = {}, *, at_least: int = 0
) -> Rearmost:
    """:param specs: the first ticks of the versions of each table's spec.
    :param at_least: a tick that must belong to the group, since one of the tables has it already. Its spec is
        the same up to that tick; tables whose spec changes before get a group of their own later.
    """
    first, *others = sorted({table.next_tick for table in tables.values()})
    behind = [table_id for table_id, table in tables.items() if table.next_tick == first]
    changes = {one: spec_versions.next_change(specs.get(one, ()), first) for one in behind}
    same = [one for one in behind if (change := changes[one]) is None or change > at_least] or behind
    ends = [*others[:1], *(change for one in same if (change := changes[one]) is not None)]
    return Rearmost(frozenset(same), first, min(ends, default=None))


def cut_group(
    ticks: Iterable[Tick], *, max_records: int = MAX_RECORDS, before: int | None = None, at_least: int = 0
) -> TickGroup:
    """The ticks to execute together: from the first missing tick on, and at least that one.

    :param max_records: a single tick may be larger.
    :param before: the first tick that does not belong to it.
    :param at_least: a tick that must belong to it, whatever the other limits say.
    """
    taken: list[Tick] = []
    records = 0
    for tick in ticks:
        records += tick.upper.gap(tick.lower)
        is_full = bool(taken) and (records > max_records or len(taken) >= MAX_TICKS)
        if tick.number > at_least and (is_full or (before is not None and tick.number >= before)):
            break
        taken.append(tick)
    return TickGroup(tuple(taken))


# ── how fast ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Pacer:
    """Keeps a backfill at its rate. The rate is an argument of every call, so that a new rate counts at once."""

    def __init__(self) -> None:
        self._began, self._records = float("-inf"), 0

    def max_records(self, rate: int | None, limit: int = MAX_RECORDS) -> int:
        """How large the next group may be."""
        return limit if rate is None else max(1, min(limit, int(rate * GROUP_SECONDS)))

    def begin(self, records: int, now: float) -> None:
        """A group with this many records begins."""
        self._began, self._records = now, records

    def wait(self, rate: int | None, now: float) -> float:
        """Seconds until the next group may begin: 0 without a rate, infinite while paused (rate 0)."""
        if rate is None:
            return 0.0
        if rate == 0:
            return float("inf")
        return max(0.0, self._began + self._records / rate - now)
