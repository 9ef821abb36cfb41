"""The rules for tables that come later: what a backfill may write, when it converges, and how a failed table heals.

A table that arrives executes the ticks it has missed, in groups, under the lease of its backfill. It becomes a member
only by the mint of a tick that begins exactly at its position (``rules.joining``): only one app ever writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.rules import (
    COMING,
    check_holder,
    may_come_in,
    stalled,
    stands_at_end,
    without_idle_backfills,
)
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Generation,
    Holder,
    Lease,
    Left,
    Outcome,
    SourceState,
    TableState,
    Tick,
    Unindexed,
)
from airflow_provider_mzshare.core.ticklog.table_states import status_after
from airflow_provider_mzshare.errors import Fenced, LogConflict

BY_AN_APP = ("backfilling", "converging")
"""A backfill brings the table up in an app of its own. That of a table that is ``indexing`` is the ingestion app's."""
ARRIVING = (*BY_AN_APP, "indexing")


@dataclass(frozen=True)
class Followed:
    """What a group of ticks did to the tables of a backfill.

    :param tables: those that moved or stalled, as they are now.
    :param gone: tables that no longer belong to this backfill: dropped, retired, or cut over.
    """

    tables: Mapping[ItemId, TableState]
    gone: frozenset[ItemId]


# ── what belongs to a backfill ────────────────────────────────────────────────────────────────────────────────────────


def arriving(state: SourceState, backfill_id: BackfillId | None = None) -> dict[ItemId, TableState]:
    """The tables that are being brought up, of one backfill or of all. A replacement is listed instead of its table."""
    return {t.table_id: t for t in _brought(state) if backfill_id in (None, t.backfill_id)}


def _brought(state: SourceState) -> list[TableState]:
    """All generations: a table that is indexing may have a new one that a backfill fills."""
    return [t for t in (*state.tables.values(), *state.replacements.values()) if t.status in ARRIVING]


def inside(state: SourceState) -> frozenset[BackfillId]:
    """The backfills of tables that have left the ticks because their index is not there.

    The ingestion app itself follows the ticks for them: no app is ever started for one of these.
    """
    return frozenset(t.backfill_id for t in state.tables.values() if t.status == "indexing" and t.backfill_id)


def is_replacement(state: SourceState, table: TableState) -> bool:
    return state.replacements.get(table.table_id) == table


def check_backfill(state: SourceState, backfill_id: BackfillId, holder: Holder) -> BackfillState:
    backfill = check_present(state, backfill_id)
    check_holder(backfill.lease, holder)
    return backfill


def check_present(state: SourceState, backfill_id: BackfillId) -> BackfillState:
    """A backfill without tables is over: that alone fences the app that holds its lease."""
    if state.status == "dropped":
        raise Fenced(f"source {state.source_id} is dropped")
    backfill = state.backfills.get(backfill_id)
    if backfill is None:
        raise ended(backfill_id)
    return backfill


def ended(backfill_id: BackfillId) -> Fenced:
    return Fenced(f"backfill {backfill_id} has ended: its tables are cut over or gone")


# ── what a group is planned upon ──────────────────────────────────────────────────────────────────────────────────────


def check_planned(
    lease: Lease | None,
    own: Collection[Generation],
    backfill_id: BackfillId,
    holder: Holder,
    planned: Collection[Generation],
) -> None:
    """May a group be put that was planned upon what collections held? All of this was looked up after they were loaded.

    Whoever writes a table next may only begin after this, and its first commit to each collection is made even without
    rows: so this group is refused from then on. A group that was planned upon a successor's commit would not be: the
    ticks after it may be without a commit, and nothing would tell that they were done.

    :param lease: None if the backfill has ended.
    :param own: the tables that the backfill brings up now.
    :param planned: the tables of the group.
    """
    if lease is None:
        raise ended(backfill_id)
    check_holder(lease, holder)
    if gone := sorted(set(planned) - set(own)):
        names = ", ".join(table_id for table_id, _ in gone)
        raise LogConflict(f"{names} left backfill {backfill_id} while a group was planned for it")


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def follow(
    state: SourceState,
    backfill_id: BackfillId,
    holder: Holder,
    *,
    first: int,
    last: Tick,
    outcomes: Mapping[ItemId, Outcome],
    end: Position | None = None,
) -> Followed:
    """The ticks ``first`` to ``last`` have been written for some tables of a backfill, or could not be.

    :param end: where a compacted upstream ended after they were read, if they were read late: what a later record has
        replaced may have been gone by then. So the rows of a keyed table are known from there on.
    """
    backfill = check_backfill(state, backfill_id, holder)
    mine = arriving(state, backfill_id)
    moved: dict[ItemId, TableState] = {}
    for table_id, outcome in outcomes.items():
        table = mine.get(table_id)
        if table is None:
            continue
        if table.next_tick != first:
            raise LogConflict(f"table {table_id} goes on at tick {table.next_tick}, not at tick {first}")
        if isinstance(outcome, Left):
            moved[table_id] = stalled(table, outcome.reason)
        elif table.awaits_snapshot:
            raise LogConflict(f"table {table_id} has no snapshot yet that it could go on from")
        elif isinstance(outcome, Unindexed):
            raise LogConflict(f"table {table_id} is in a backfill already: it cannot leave for its index")
        else:
            after = _caught_up(table, last, healing=table_id in backfill.healing)
            moved[table_id] = replace(after, known_from=end) if end is not None and table.keyed else after
    return Followed(moved, gone=frozenset(outcomes) - moved.keys())


def _caught_up(table: TableState, last: Tick, *, healing: bool) -> TableState:
    """A table that was readable stays so; a new one is readable where its newest group ended. What begins with a
    snapshot is not before it is past all that the snapshot has: until then its rows are those of no time."""
    moved = replace(table, position=last.upper, next_tick=last.number + 1)
    if table.snapshot is not None and not table.known_from <= last.upper:
        return moved
    return replace(
        moved,
        snapshot=None,
        upper=last.mz_timestamp + 1,
        since=(table.since or last.mz_timestamp) if healing else last.mz_timestamp,
    )


# ── convergence ───────────────────────────────────────────────────────────────────────────────────────────────────────


def lag(state: SourceState, table: TableState) -> int:
    """How many minted ticks the table does not have. Empty ticks at its position do not count."""
    return 0 if table.position == state.upper else state.last_number + 1 - table.next_tick


def history_is_complete(state: SourceState, table: TableState) -> bool:
    if table.awaits_snapshot or not table.known_from <= table.position:
        return False
    backfill = state.backfills.get(table.backfill_id) if table.backfill_id else None
    return table.position == state.upper or (backfill is not None and table.next_tick > backfill.history)


def arm(state: SourceState, table_id: ItemId, *, max_lag: int) -> TableState | None:
    """The table with the status ``converging``; None if it is too far behind, or is not backfilling."""
    table = arriving(state).get(table_id)
    if table is None or table.status != "backfilling":
        return None
    if not history_is_complete(state, table) or lag(state, table) > max_lag:
        return None
    return replace(table, status=status_after(table.status, "armed"))


def converging_keyed(state: SourceState) -> frozenset[Generation]:
    """The tables whose indexes are made now, so that they can be made members."""
    return frozenset(table.identity for table in coming(state) if table.keyed)


def coming(state: SourceState) -> list[TableState]:
    return [table for table in _brought(state) if table.status in COMING]


def to_index(state: SourceState) -> frozenset[Generation]:
    """The tables whose indexes an ingestion app needs as soon as it starts."""
    members = (state.tables[table_id] for table_id in state.members)
    return converging_keyed(state) | {table.identity for table in members if table.keyed}


def awaited(state: SourceState, indexed: Collection[Generation] | None = None) -> dict[BackfillId, BackfillState]:
    """Backfills with a coming table that is one tick behind: the next mint waits a short time for them.

    :param indexed: see ``rules.may_come_in``. For the others a wait would be in vain.
    """
    last = state.last
    if last is None or state.pending:
        return {}
    close = [t for t in coming(state) if may_come_in(t, indexed) and t.next_tick == last.number]
    behind = {t.backfill_id for t in close if t.position != state.upper and t.backfill_id is not None}
    return {backfill_id: state.backfills[backfill_id] for backfill_id in behind if backfill_id in state.backfills}


def completes_cutover(state: SourceState, indexed: Collection[Generation] | None = None) -> bool:
    """Would a tick minted now, even an empty one, make an arriving table a member?"""
    standing = [t for t in coming(state) if may_come_in(t, indexed) and stands_at_end(state, t)]
    return bool(standing) and not state.pending and state.status == "active"


# ── healing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def resume(table: TableState, backfill_id: BackfillId) -> TableState:
    """A stalled table goes on at its position: it follows the ticks after its upper, then it is cut over."""
    return replace(table, status=status_after(table.status, "resumed"), reason=None, backfill_id=backfill_id)


def isolate(table: TableState, backfill_id: BackfillId) -> TableState:
    """The table goes on at its position, in a backfill of its own. There it has to be armed again."""
    return replace(table, status=status_after(table.status, "isolated"), backfill_id=backfill_id)


def retire(table: TableState) -> TableState:
    """The table's backfill ends before the cutover. The table keeps its rows, and can be resumed."""
    return stalled(table, "its backfill was retired before the cutover")


# ── merging ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def merging(state: SourceState, idle: Collection[BackfillId]) -> list[tuple[BackfillId, ...]]:
    """Groups of backfills to merge, so that one read serves all their tables. The newest, which takes them, is last.

    Only backfills whose lease nobody has ever held: none of them has an app. Each table keeps its own position and goes
    on from there, so any of them could be merged. But the table that is furthest behind is brought up first, while the
    others wait: so only backfills with at least half as much to read are merged with it.

    :param idle: those that no app was ever started for.
    """
    tables = _brought(state)
    behind = {one: max(state.upper.gap(t.position) for t in tables if t.backfill_id == one) for one in state.backfills}
    own = inside(state)
    known = [state.backfills[one] for one in idle if one in state.backfills and one not in own]
    found = [backfill for backfill in known if _is_free(backfill)]
    left = sorted(found, key=lambda one: -behind[one.backfill_id])
    groups = []
    while left:
        furthest = behind[left[0].backfill_id]
        together = [one for one in left if 2 * behind[one.backfill_id] >= furthest]
        left = left[len(together) :]
        if len(together) > 1:
            together.sort(key=lambda one: (one.asked_at, one.backfill_id))
            groups.append(tuple(one.backfill_id for one in together))
    return groups


def _is_free(backfill: BackfillState) -> bool:
    return backfill.lease.epoch == 0 and backfill.lease.job_id is None and not backfill.alone


def merged(state: SourceState, group: Collection[BackfillId]) -> tuple[BackfillState, dict[ItemId, TableState]]:
    """The last backfill of a group after the merge, and the tables that were moved to it.

    The tables do not change otherwise: neither position nor status, nor what can be read of those that are healed.
    """
    *absorbed, into = (state.backfills[one] for one in group)
    moved = {t.table_id: t for one in absorbed for t in arriving(state, one.backfill_id).values()}
    whole = replace(
        into,
        history=max(one.history for one in (*absorbed, into)),
        healing=into.healing.union(*(one.healing & moved.keys() for one in absorbed)),
    )
    return whole, {table_id: replace(t, backfill_id=into.backfill_id) for table_id, t in moved.items()}


# ── what a decision does to the state ─────────────────────────────────────────────────────────────────────────────────


def with_arrivals(state: SourceState, changed: Mapping[ItemId, TableState]) -> SourceState:
    """The state with these arriving tables changed, each in its own generation."""
    tables, replacements = dict(state.tables), dict(state.replacements)
    for table_id, table in changed.items():
        replaces = table_id in replacements and replacements[table_id].generation == table.generation
        (replacements if replaces else tables)[table_id] = table
    return without_idle_backfills(replace(state, tables=tables, replacements=replacements))


def with_merged(state: SourceState, group: Collection[BackfillId]) -> SourceState:
    whole, moved = merged(state, group)
    return with_arrivals(replace(state, backfills={**state.backfills, whole.backfill_id: whole}), moved)
