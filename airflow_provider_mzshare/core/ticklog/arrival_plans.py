"""How a table comes into its source's log: decided here, once; what is decided is printed and carried out. Pure.

A plan keeps what it rests on. Whoever carries it out has the source's lock and compares that with the source as it is:
where something has changed since, nothing is done, and the plan has to be made again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import tombstones
from airflow_provider_mzshare.core.ticklog.backfill_rules import ARRIVING
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState, TableStatus, Tick
from airflow_provider_mzshare.core.ticklog.table_states import BEGINNINGS, TRANSITIONS, TRUNCATED
from airflow_provider_mzshare.errors import NotResumable, StalePlan, UpstreamChanged

Way = Literal["share", "now", "backfill"]
"""``share``: nothing was read past its start. ``now``: it begins where the log ends. ``backfill``: it is behind."""
Action = Literal["create", "resume", "resnapshot"]


_ORIGIN = Position()


class TombstonesLost(NotResumable):
    """A keyed table that may have missed a delete: reading on would keep a key that should be gone."""

    def __init__(self, table: str) -> None:
        super().__init__(table, f"it may have missed deletes that its upstream has removed ({tombstones.REASON})")
        self.hint = f"mzshare sql {shlex.quote(f'ALTER TABLE {table} RESNAPSHOT')}, which reads it anew"


@dataclass(frozen=True)
class Arrival:
    """One table, the way it comes in, and where it begins to read: ``position``, which is where ``tick`` begins."""

    table: str
    """Its name, as in SQL."""
    way: Way
    position: Position
    tick: int
    replaces: bool = False
    """A new generation beside the current one, which goes on until the cutover."""
    action: Action = "create"
    table_id: ItemId | None = None
    """None for one that is still to be made."""
    gone: Position = _ORIGIN
    """What is before it is gone upstream, and is left out."""
    by_snapshot: bool = False
    """It begins with a snapshot of the upstream, which is taken after ``tick`` or later."""
    rests_on: Mapping[str, object] = field(default_factory=dict)
    """What was found, by its name in words; a log that goes on only counts where the way depends on its end."""

    @property
    def begins_as(self) -> TableStatus:
        """The state of what is made: a table, or a new generation of one."""
        return BEGINNINGS["made late" if self.way == "backfill" else "made before the log"]

    @property
    def first_tick(self) -> int:
        """The first one that is the new table's own: what is before a start at now is not."""
        return self.tick if self.way == "now" else 1


# ── the decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def create(state: SourceState, table: str, *, snapshot: bool) -> Arrival:
    """A new table: it shares every tick with the others where that is possible, and is backfilled where not.

    One that begins with a snapshot is always backfilled, by ticks that are minted after it was asked for.
    """
    if state.by_snapshot and snapshot:
        position, tick = _now(state)
        return Arrival(table, "backfill", position, tick, by_snapshot=True, rests_on=_source_facts(state))
    if state.upper == state.start:
        way: Way = "share"
    else:
        way = "backfill" if snapshot else "now"
    position, tick = (state.start, 1) if way == "backfill" else _now(state)
    return Arrival(table, way, position, tick, rests_on=_log_facts(state, way))


def _now(state: SourceState) -> tuple[Position, int]:
    """Where the next tick begins."""
    return state.upper, state.last_number + 1


def resume(state: SourceState, table_id: ItemId, table: str) -> Arrival:
    """A stalled table goes on where it stands; so does a stalled new generation of it."""
    _check_not_underway(state, table_id, table)
    found, replaces = to_resume(state, table_id)
    if found.status == "created":
        raise NotResumable(table, "it joins at the next tick: there is nothing to resume")
    if found.status not in TRANSITIONS["resumed"]:
        raise NotResumable(table, f"it is {found.status}: there is nothing to resume")
    if tombstones.may_have_missed(found, state.ends):
        raise TombstonesLost(table)
    if (found.reason or "").startswith(TRUNCATED):
        raise NotResumable(table, "its next record truncates it, and it would stall before that again")
    facts = _resume_facts(state, table_id)
    way: Way = "backfill"
    waits = found.awaits_snapshot
    return Arrival(
        table, way, found.position, found.next_tick, replaces, "resume", table_id, by_snapshot=waits, rests_on=facts
    )


def resnapshot(state: SourceState, table_id: ItemId, table: str, *, start_tick: int) -> Arrival:
    """A table that has rows, live or stalled, gets a new generation from its start on, or from a new snapshot on."""
    _check_not_underway(state, table_id, table)
    current = state.tables[table_id]
    if current.status == "created":
        raise NotResumable(table, "it joins at the next tick: there is nothing to read again")
    facts = _resnapshot_facts(state, table_id)
    position, tick = _now(state) if state.by_snapshot else (current.start, start_tick)
    by_snapshot = state.by_snapshot
    return Arrival(
        table, "backfill", position, tick, True, "resnapshot", table_id, by_snapshot=by_snapshot, rests_on=facts
    )


def without_gone(arrival: Arrival, gone: Position, ticks: Iterable[Tick]) -> Arrival:
    """The plan of a RESNAPSHOT that takes what is left: it begins with the first tick of which something is there.

    :param ticks: of the source, from the table's first on.
    """
    if arrival.by_snapshot:
        return arrival
    left = next((tick for tick in ticks if not tick.upper <= gone), None)
    if left is None:
        raise UpstreamChanged("history_gone", f"of all that table {arrival.table!r} has read, nothing is left upstream")
    return replace(arrival, position=left.lower, tick=left.number, gone=gone)


def to_resume(state: SourceState, table_id: ItemId) -> tuple[TableState, bool]:
    """The generation that RESUME is about, and whether it is one that replaces the current one."""
    replacement = state.replacements.get(table_id)
    return (state.tables[table_id], False) if replacement is None else (replacement, True)


def _check_not_underway(state: SourceState, table_id: ItemId, table: str) -> None:
    for generation in (state.replacements.get(table_id), state.tables[table_id]):
        if generation is not None and generation.status in ARRIVING:
            backfill_id = generation.backfill_id
            raise NotResumable(table, f"backfill {backfill_id} brings it up already", backfill_id=backfill_id)


# ── what they rest on ─────────────────────────────────────────────────────────────────────────────────────────────────


def check_current(state: SourceState, arrival: Arrival) -> None:
    """Raise StalePlan unless what the plan rests on is as it was. The caller has the source's lock."""
    is_now = _facts_now(state, arrival)
    changes = [
        f"{what} was {was}, and is {is_now[what]} now" for what, was in arrival.rests_on.items() if is_now[what] != was
    ]
    if changes:
        raise StalePlan(f"table {arrival.table}", changes)


def _facts_now(state: SourceState, arrival: Arrival) -> Mapping[str, object]:
    if arrival.table_id is None:
        return _source_facts(state) if arrival.by_snapshot else _log_facts(state, arrival.way)
    if arrival.table_id not in state.tables:
        raise StalePlan(f"table {arrival.table}", [f"table {arrival.table_id} was dropped"])
    look = _resume_facts if arrival.action == "resume" else _resnapshot_facts
    return look(state, arrival.table_id)


def _log_facts(state: SourceState, way: Way) -> dict[str, object]:
    """A backfill reads to wherever the log ends; who joins the next tick has to stand where that begins."""
    facts = _source_facts(state)
    if way == "backfill":
        return facts | {"the log of its source": "at its start" if state.upper == state.start else "past its start"}
    return facts | {"the end of its source's log": state.upper, "the next tick": state.last_number + 1}


def _source_facts(state: SourceState) -> dict[str, object]:
    return {
        "its source": "dropped" if state.status == "dropped" else "there",
        "the start of its source": state.start,
    }


def _resume_facts(state: SourceState, table_id: ItemId) -> dict[str, object]:
    """All of it stands still while it is stalled."""
    found, _ = to_resume(state, table_id)
    return _state_facts(found) | {"its position": found.position, "its next tick": found.next_tick}


def _resnapshot_facts(state: SourceState, table_id: ItemId) -> dict[str, object]:
    """Not how far it is: it goes on meanwhile."""
    replacement = state.replacements.get(table_id)
    beside = "none" if replacement is None else f"generation {replacement.generation}, {replacement.status}"
    return _state_facts(state.tables[table_id]) | {"the new generation beside it": beside}


def _state_facts(table: TableState) -> dict[str, object]:
    return {"its state": table.status, "its generation": table.generation}
