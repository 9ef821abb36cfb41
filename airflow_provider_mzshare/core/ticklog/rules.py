"""The rules of the tick log, as decisions without input, output or clock.

A store loads a ``SourceState`` behind the source's lock, asks one of these, and writes what comes back in the same
transaction. A refusal is an exception: ``Fenced`` ends the caller, ``LogConflict`` makes it re-read the log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Committed,
    Done,
    Generation,
    Holder,
    Lease,
    Left,
    Minted,
    Outcome,
    SourceState,
    TableState,
    Tick,
)
from airflow_provider_mzshare.core.ticklog.table_states import status_after
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, LogConflict, UpstreamChanged

COMING = ("converging", "indexing")
"""A table in one of these states joins at the first tick that begins where it stands, if the app has its index."""

ATTEMPTS_TOGETHER = 3
"""After this many failed executions a tick is executed member by member."""

DEATHS_ALONE = 3
"""After this many deaths of the process in a row, the member that was executed alone leaves."""


# ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def claim(lease: Lease, job_id: JobId, *, stood_still: Lease | None = None) -> Lease:
    """Take a lease that was released, or that got no heartbeat for the whole time-to-live while the taker watched it.

    ``stood_still`` is the lease as the taker saw it at the beginning of that time, by its own monotonic clock.
    """
    if lease.job_id is not None and lease.job_id != job_id and lease != stood_still:
        raise LeaseTaken(f"the lease is held by job {lease.job_id} (epoch {lease.epoch}) and is alive")
    return Lease(epoch=lease.epoch + 1, job_id=job_id, beat=lease.beat + 1)


def beat(lease: Lease, holder: Holder) -> Lease:
    check_holder(lease, holder)
    return replace(lease, beat=lease.beat + 1)


def release(lease: Lease, holder: Holder) -> Lease:
    check_holder(lease, holder)
    return replace(lease, job_id=None)


def give_up(lease: Lease, job_id: JobId) -> Lease:
    """Free the lease of a job whose process is known to be gone, so that nobody has to wait until it runs out.

    Safety does not depend on that knowledge: if the process is alive, it is fenced, as after any other claim.
    """
    return replace(lease, job_id=None) if lease.job_id == job_id else lease


def check_holder(lease: Lease, holder: Holder) -> None:
    if (lease.job_id, lease.epoch) != (holder.job_id, holder.epoch):
        owner = f"job {lease.job_id}" if lease.job_id else "nobody"
        raise Fenced(f"job {holder.job_id} (epoch {holder.epoch}) was fenced: {owner} holds epoch {lease.epoch}")


# ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def mint(
    state: SourceState,
    holder: Holder,
    *,
    lower: Position,
    upper: Position,
    incarnation: str,
    now_ms: int,
    indexed: Collection[Generation] | None = None,
) -> Minted:
    """Fix range, time and members of the next tick, before a byte of it is written.

    The clock only proposes: ``mz_timestamp`` grows strictly whatever it says.

    :param indexed: see ``may_come_in``.
    """
    check_holder(state.lease, holder)
    _check_active(state)
    if state.pending:
        raise LogConflict(f"tick {state.pending[0].number} is minted but not committed: finish it first")
    if incarnation != state.incarnation:
        raise UpstreamChanged(
            "topic_recreated", f"the upstream is {incarnation}, but the log was read from {state.incarnation}"
        )
    if lower != state.upper:
        raise LogConflict(f"the batch begins at {lower}, but the log ends at {state.upper}")
    if not lower <= upper:
        raise LogConflict(f"the batch ends at {upper}, before its beginning {lower}")
    tick = Tick(
        number=state.last_number + 1,
        lower=lower,
        upper=upper,
        mz_timestamp=max(now_ms, state.last_timestamp + 1),
        attempts=1,
    )
    return Minted(
        tick=tick,
        joins=tuple(t.table_id for t in joining(state, indexed)),
        swaps=tuple(t.table_id for t in swapping(state, indexed)),
    )


def joining(state: SourceState, indexed: Collection[Generation] | None = None) -> list[TableState]:
    """Tables that the next tick makes members: their position is exactly where it begins, in every partition.

    New tables that have missed nothing, and tables that have been brought to this position. Where a new generation
    comes, the current one does not come back first.
    """
    swapped = {table.table_id for table in swapping(state, indexed)}
    found = _standing(state, state.tables, ("created", *COMING), indexed)
    return [table for table in found if table.table_id not in swapped]


def swapping(state: SourceState, indexed: Collection[Generation] | None = None) -> list[TableState]:
    """New generations that replace the old ones with the next tick."""
    return _standing(state, state.replacements, ("converging",), indexed)


def _standing(
    state: SourceState,
    tables: Mapping[ItemId, TableState],
    statuses: tuple[str, ...],
    indexed: Collection[Generation] | None,
) -> list[TableState]:
    near = [t for t in tables.values() if t.status in statuses and may_come_in(t, indexed)]
    found = [t for t in near if stands_at_end(state, t)]
    return sorted(found, key=lambda t: int(t.table_id[1:]))


def stands_at_end(state: SourceState, table: TableState) -> bool:
    """Is it where the next tick begins, and are its rows there what they were?"""
    return table.position == state.upper and table.known_from <= table.position


def may_come_in(table: TableState, indexed: Collection[Generation] | None) -> bool:
    """A keyed table that comes later is not made a member before the app has its index: a tick would wait for it, and
    with it all other tables. Until then it is followed by itself. A table that has missed nothing has no rows to index.

    :param indexed: the generations whose index the app has; None: it need not have any.
    """
    return indexed is None or not table.keyed or table.status == "created" or table.identity in indexed


def begin_attempt(state: SourceState, holder: Holder, number: int) -> Tick:
    """Count an execution before it begins: one that kills the process counts too."""
    tick = _pending(state, holder, number)
    return replace(tick, attempts=tick.attempts + 1, deaths=tick.deaths + 1 if tick.suspect else 0)


def spare_attempt(state: SourceState, holder: Holder, number: int) -> Tick:
    """An execution that failed only because of the storage is not counted.

    The first one stays counted: parts of it may be written, so the tick must not be treated as new.
    """
    tick = _pending(state, holder, number)
    return replace(tick, attempts=max(1, tick.attempts - 1), suspect=None, deaths=0)


def executes_alone(tick: Tick) -> bool:
    return tick.attempts > ATTEMPTS_TOGETHER


def is_deadly(tick: Tick, table_id: ItemId) -> bool:
    """Did the process die several times in a row while it executed this member alone? One death proves nothing."""
    return tick.suspect == table_id and tick.deaths >= DEATHS_ALONE


def suspect(state: SourceState, holder: Holder, number: int, table_id: ItemId | None) -> Tick:
    """Note which member is about to be executed alone; deaths are counted for one and the same."""
    tick = _pending(state, holder, number)
    return replace(tick, suspect=table_id, deaths=tick.deaths if table_id == tick.suspect else 0)


def commit(state: SourceState, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome]) -> Committed:
    """End a tick: no member may be without an outcome. A member that left meanwhile stays left."""
    tick = _pending(state, holder, number)
    if tick != state.pending[0]:
        raise LogConflict(f"tick {state.pending[0].number} comes before tick {number}")
    missing = state.members - outcomes.keys()
    if missing:
        raise LogConflict(f"tick {number}: members without an outcome: {', '.join(sorted(missing))}")
    return Committed(
        tick=replace(tick, committed=True, suspect=None),
        outcomes={table: outcome for table, outcome in outcomes.items() if table in state.members},
    )


def _pending(state: SourceState, holder: Holder, number: int) -> Tick:
    check_holder(state.lease, holder)
    _check_active(state)
    for tick in state.pending:
        if tick.number == number:
            return tick
    raise LogConflict(f"tick {number} is not waiting to be committed")


def _check_active(state: SourceState) -> None:
    if state.status != "active":
        raise Fenced(f"source {state.source_id} is {state.status}")


# ── what a decision does to the state: used by stores that keep it in memory, and as the oracle of those that do not ──


def after_mint(state: SourceState, minted: Minted) -> SourceState:
    tables = dict(state.tables)
    for table_id in minted.joins:
        tables[table_id] = joined(tables[table_id], minted.tick)
    for table_id in minted.swaps:
        tables[table_id] = swapped(tables[table_id], state.replacements[table_id], minted.tick)
    return without_idle_backfills(
        replace(
            state,
            pending=(*state.pending, minted.tick),
            tables=tables,
            replacements={t: s for t, s in state.replacements.items() if t not in minted.swaps},
            members=state.members | {*minted.joins, *minted.swaps},
        )
    )


def without_idle_backfills(state: SourceState) -> SourceState:
    """Remove a backfill that has no table left to bring up: it is over."""
    used = {t.backfill_id for t in (*state.tables.values(), *state.replacements.values())}
    return replace(state, backfills={b: s for b, s in state.backfills.items() if b in used})


def joined(table: TableState, tick: Tick) -> TableState:
    """A table that a tick has made a member. That tick is its next tick, even if empty ticks came before.

    Else a RESUME after a stall in this very tick would go on at the empty ones, with the spec that held there.
    """
    status = status_after(table.status, "joined")
    return replace(table, status=status, reason=None, backfill_id=None, next_tick=tick.number)


def swapped(old: TableState, new: TableState, tick: Tick) -> TableState:
    """The new generation replaces the old one. Earlier times are still read from the old one.

    Later times can be read when the tick is committed: the new generation answers from that tick on.
    """
    return replace(joined(new, tick), since=old.since, upper=old.upper)


def after_commit(state: SourceState, committed: Committed, follower: BackfillId | None = None) -> SourceState:
    """:param follower: a new backfill, for members that leave without an index."""
    tables, members, backfills = dict(state.tables), set(state.members), dict(state.backfills)
    for table_id, outcome in committed.outcomes.items():
        if isinstance(outcome, Done):
            tables[table_id] = advanced(tables[table_id], committed.tick, outcome)
            continue
        members.discard(table_id)
        if isinstance(outcome, Left):
            tables[table_id] = stalled(tables[table_id], outcome.reason)
        elif follower is not None:
            tables[table_id] = unindexed(tables[table_id], follower)
    if follower is not None:
        healed = frozenset(t.table_id for t in tables.values() if t.backfill_id == follower and t.upper)
        backfills[follower] = BackfillState(follower, state.last_number, healing=healed)
    return replace(
        state,
        last=committed.tick,
        pending=state.pending[1:],
        tables=tables,
        members=frozenset(members),
        backfills=backfills,
    )


def unindexed(table: TableState, follower: BackfillId) -> TableState:
    """A member whose index is not there leaves the ticks where it stands: before this one."""
    return replace(table, status=status_after(table.status, "without index"), backfill_id=follower)


def advanced(table: TableState, tick: Tick, outcome: Done) -> TableState:
    """A member that is done: its upper moves. It is readable from its first tick on."""
    return replace(
        table,
        position=tick.upper,
        next_tick=tick.number + 1,
        upper=tick.mz_timestamp + 1,
        since=table.since or tick.mz_timestamp,
    )


def retained_since(table: TableState, retain_ms: int, now_ms: int, held: int | None = None) -> int:
    """The oldest time that a table can be read at. It never goes backwards, and never past what the table has.

    :param held: the time of its oldest read hold, which it does not pass either (see ``holds``).
    """
    if not table.upper:
        return table.since
    last = table.upper - 1 if held is None else min(held, table.upper - 1)
    return max(table.since, min(now_ms - retain_ms, last))


def stalled(table: TableState, reason: str) -> TableState:
    return replace(table, status=status_after(table.status, "failed"), reason=reason, backfill_id=None)
