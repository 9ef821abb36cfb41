"""Writes what the rules of the tick log decided, in the transaction that holds the source's lock. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Update, bindparam, insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import (
    CommitRow,
    MembershipRow,
    SourceRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.log.cutovers import write_cutovers
from airflow_provider_mzshare.control.catalog.log.statistics import count_tick
from airflow_provider_mzshare.control.catalog.log.status_history import note_flow
from airflow_provider_mzshare.control.catalog.objects.backfill_rows import bring_up
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import (
    Committed,
    Done,
    Holder,
    Left,
    Minted,
    SourceState,
    TableStatus,
    Tick,
    Unindexed,
    Written,
)
from airflow_provider_mzshare.core.ticklog.table_states import Event, status_after


def write_stall(session: Session, source_id: ItemId, reason: str, message: str) -> None:
    active = update(SourceRow).where(SourceRow.id == source_id, SourceRow.status == "active")
    change(session, active.values(status="stalled", reason=reason, message=message), 1, "the source")
    touch(session, source_id)


def write_minted(session: Session, state: SourceState, minted: Minted, holder: Holder | None, now_ms: int) -> None:
    tick = minted.tick
    session.execute(
        insert(TickRow).values(
            source_id=state.source_id,
            number=tick.number,
            lower=tick.lower,
            upper=tick.upper,
            mz_timestamp=tick.mz_timestamp,
            minted_at=now_ms,
            committed=False,
            epoch=holder.epoch if holder else 0,
            job_id=holder.job_id if holder else None,
            attempts=tick.attempts,
            deaths=tick.deaths,
            repaired=tick.repaired,
        )
    )
    if minted.joins or minted.swaps:
        write_cutovers(session, state, minted, holder, now_ms)


def write_tick(session: Session, source_id: ItemId, tick: Tick) -> None:
    """Write the counters that change while a tick is pending."""
    values = {"attempts": tick.attempts, "suspect": tick.suspect, "deaths": tick.deaths}
    change(session, _pending(source_id, tick).values(**values), 1, "the tick")


def write_committed(
    session: Session, state: SourceState, committed: Committed, stats: Mapping[str, float], now_ms: int
) -> None:
    tick = committed.tick
    ended = {"committed": True, "suspect": None, "committed_at": now_ms, "stats": json.dumps(dict(stats))}
    change(session, _pending(state.source_id, tick).values(**ended), 1, "the tick")
    done = {table: outcome for table, outcome in committed.outcomes.items() if isinstance(outcome, Done)}
    left = {table: outcome for table, outcome in committed.outcomes.items() if isinstance(outcome, Left)}
    unindexed = [table for table, outcome in committed.outcomes.items() if isinstance(outcome, Unindexed)]
    _write_done(session, rules.after_commit(state, committed), done)
    write_commits(session, tick, [written for outcome in done.values() for written in outcome.written])
    for table_id, outcome in left.items():
        _write_left(session, tick, table_id, {"status": _after("failed"), "reason": outcome.reason})
    for table_id in unindexed:
        _write_unindexed(session, state, tick, table_id)
    count_tick(session, state.source_id, committed, stats)
    _note_flow(session, state, tick)


def _note_flow(session: Session, state: SourceState, tick: Tick) -> None:
    """Note that the source became idle, or stopped being idle; the first tick is always noted."""
    idle = tick.lower == tick.upper
    if state.last is None or idle != (state.last.lower == state.last.upper):
        note_flow(session, state.source_id, idle=idle)


def _pending(source_id: ItemId, tick: Tick) -> Update:
    return update(TickRow).where(
        TickRow.source_id == source_id, TickRow.number == tick.number, TickRow.committed.is_(False)
    )


def _write_done(session: Session, after: SourceState, done: Mapping[ItemId, Done]) -> None:
    if not done:
        return
    table = TableRow.__table__
    advance = (
        update(table)  # type: ignore[arg-type]
        .where(table.c.id == bindparam("of_table"))
        .values(
            position=bindparam("to_position"),
            next_tick=bindparam("to_next_tick"),
            upper=bindparam("to_upper"),
            since=bindparam("to_since"),
            rows=table.c.rows + bindparam("more_rows"),
            errors=table.c.errors + bindparam("more_errors"),
            folded=table.c.folded + bindparam("more_folded"),
        )
    )
    session.connection().execute(advance, [_advance(after, table_id, outcome) for table_id, outcome in done.items()])


def _advance(after: SourceState, table_id: ItemId, outcome: Done) -> dict[str, Any]:
    table = after.tables[table_id]
    return {
        "of_table": table_id,
        "to_position": table.position,
        "to_next_tick": table.next_tick,
        "to_upper": table.upper,
        "to_since": table.since,
        "more_rows": outcome.rows,
        "more_errors": outcome.errors,
        "more_folded": outcome.folded,
    }


def write_commits(session: Session, tick: Tick | None, commits: Sequence[Written]) -> None:
    """:param tick: the tick of those commits that name none."""
    if commits:
        session.execute(
            insert(CommitRow),
            [
                {
                    "collection_id": commit.collection_id,
                    "mz_timestamp": commit.mz_timestamp or (tick.mz_timestamp if tick else 0),
                    "tick": commit.tick or (tick.number if tick else 0),
                    "version": commit.version,
                    "rows": commit.rows,
                    "hash": commit.hash,
                    "first_timestamp": commit.first_timestamp
                    or commit.mz_timestamp
                    or (tick.mz_timestamp if tick else 0),
                }
                for commit in commits
            ],
        )


_MEMBER_IS: TableStatus = "live"


def _after(event: Event) -> TableStatus:
    return status_after(_MEMBER_IS, event)


def _write_left(session: Session, tick: Tick, table_id: ItemId, values: Mapping[str, str | None]) -> None:
    leaving = update(TableRow).where(TableRow.id == table_id, TableRow.status == _MEMBER_IS)
    change(session, leaving.values(dict(values)), 1, f"table {table_id}")
    touch(session, table_id)
    member = update(MembershipRow).where(MembershipRow.table_id == table_id, MembershipRow.left_at.is_(None))
    change(session, member.values(left_at=tick.number, reason=values["reason"]), 1, f"table {table_id}")


def _write_unindexed(session: Session, state: SourceState, tick: Tick, table_id: ItemId) -> None:
    """It goes on by a backfill that the ingestion app itself executes; all that leave with this tick share one."""
    table = state.tables[table_id]
    _write_left(session, tick, table_id, {"status": _after("without index"), "reason": None})
    bring_up(
        session,
        state,
        [table_id],
        generation=table.generation,
        from_tick=tick.number,
        from_position=tick.lower,
        heals=table.upper > 0,
    )
