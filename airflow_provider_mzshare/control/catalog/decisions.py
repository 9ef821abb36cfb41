"""Writes what the rules of the tick log decided, in the transaction that holds the source's lock. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, Update, bindparam, insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.models import CommitRow, MembershipRow, SourceRow, TableRow, TickRow
from airflow_provider_mzshare.errors import LogConflict
from airflow_provider_mzshare.storage.ticks import rules
from airflow_provider_mzshare.storage.ticks.state import (
    Committed,
    Done,
    Holder,
    Lease,
    Left,
    Minted,
    SourceState,
    Tick,
    Written,
)
from airflow_provider_mzshare.types.ids import ItemId


def write_lease(session: Session, source_id: ItemId, before: Lease, after: Lease) -> None:
    change = update(SourceRow).where(
        SourceRow.id == source_id, SourceRow.lease_epoch == before.epoch, SourceRow.lease_beat == before.beat
    )
    values = {"lease_epoch": after.epoch, "lease_job": after.job_id, "lease_beat": after.beat}
    _change(session, change.values(**values), 1, "the lease")


def write_stall(session: Session, source_id: ItemId, reason: str, message: str) -> None:
    change = update(SourceRow).where(SourceRow.id == source_id, SourceRow.status == "active")
    _change(session, change.values(status="stalled", reason=reason, message=message), 1, "the source")


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
    if minted.joins:
        _write_joins(session, state, minted)


def _write_joins(session: Session, state: SourceState, minted: Minted) -> None:
    new = update(TableRow).where(TableRow.id.in_(minted.joins), TableRow.status == "created")
    _change(session, new.values(status="live"), len(minted.joins), "a joining table")
    joins = [state.tables[table_id] for table_id in minted.joins]
    session.execute(
        insert(MembershipRow),
        [
            {
                "table_id": table.table_id,
                "joined_at": minted.tick.number,
                "source_id": state.source_id,
                "generation": table.generation,
                "spec_version": table.spec_version,
            }
            for table in joins
        ],
    )


def write_tick(session: Session, source_id: ItemId, tick: Tick) -> None:
    """What changes while a tick is pending."""
    values = {"attempts": tick.attempts, "suspect": tick.suspect, "deaths": tick.deaths}
    _change(session, _pending(source_id, tick).values(**values), 1, "the tick")


def write_committed(
    session: Session, state: SourceState, committed: Committed, stats: Mapping[str, float], now_ms: int
) -> None:
    tick = committed.tick
    ended = {"committed": True, "suspect": None, "committed_at": now_ms, "stats": json.dumps(dict(stats))}
    _change(session, _pending(state.source_id, tick).values(**ended), 1, "the tick")
    done = {table: outcome for table, outcome in committed.outcomes.items() if isinstance(outcome, Done)}
    left = {table: outcome for table, outcome in committed.outcomes.items() if isinstance(outcome, Left)}
    _write_done(session, rules.after_commit(state, committed), done)
    _write_commits(session, tick, [written for outcome in done.values() for written in outcome.written])
    for table_id, outcome in left.items():
        _write_left(session, tick, table_id, outcome)


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
            upper=bindparam("to_upper"),
            since=bindparam("to_since"),
            rows=table.c.rows + bindparam("more_rows"),
            errors=table.c.errors + bindparam("more_errors"),
        )
    )
    session.connection().execute(advance, [_advance(after, table_id, outcome) for table_id, outcome in done.items()])


def _advance(after: SourceState, table_id: ItemId, outcome: Done) -> dict[str, Any]:
    table = after.tables[table_id]
    return {
        "of_table": table_id,
        "to_position": table.position,
        "to_upper": table.upper,
        "to_since": table.since,
        "more_rows": outcome.rows,
        "more_errors": outcome.errors,
    }


def _write_commits(session: Session, tick: Tick, commits: list[Written]) -> None:
    if commits:
        session.execute(
            insert(CommitRow),
            [
                {
                    "collection_id": commit.collection_id,
                    "mz_timestamp": tick.mz_timestamp,
                    "tick": tick.number,
                    "version": commit.version,
                    "rows": commit.rows,
                    "hash": commit.hash,
                }
                for commit in commits
            ],
        )


def _write_left(session: Session, tick: Tick, table_id: ItemId, outcome: Left) -> None:
    stalled = update(TableRow).where(TableRow.id == table_id, TableRow.status == "live")
    _change(session, stalled.values(status="stalled", reason=outcome.reason), 1, f"table {table_id}")
    member = update(MembershipRow).where(MembershipRow.table_id == table_id, MembershipRow.left_at.is_(None))
    _change(session, member.values(left_at=tick.number, reason=outcome.reason), 1, f"table {table_id}")


def _change(session: Session, statement: Update, expected: int, what: str) -> None:
    """Compare and set: a row that is no longer as it was read undoes the whole transaction."""
    result = session.execute(statement, execution_options={"synchronize_session": False})
    if cast("CursorResult[Any]", result).rowcount != expected:
        raise LogConflict(f"{what} changed meanwhile")
