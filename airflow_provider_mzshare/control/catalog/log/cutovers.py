"""Writes what a minted tick does to tables that arrive: they become members, with the proof of who wrote what before.

In the transaction that mints the tick: nothing can come between the two.
"""

from __future__ import annotations

import json

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    CertificateRow,
    CollectionRow,
    JobRow,
    MembershipRow,
    ReplacementRow,
    SwapRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.log.statistics import keep_current
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import Holder, Minted, SourceState, TableState, Tick

_NO_SYNC = {"synchronize_session": False}


def write_cutovers(session: Session, state: SourceState, minted: Minted, holder: Holder | None, now_ms: int) -> None:
    after = rules.after_mint(state, minted)
    touch(session, state.source_id)
    for table_id in minted.joins:
        before = state.tables[table_id]
        joining = update(TableRow).where(TableRow.id == table_id, TableRow.status == before.status)
        is_now = after.tables[table_id]
        values = {
            "status": is_now.status,
            "reason": None,
            "backfill_id": None,
            "next_tick": is_now.next_tick,
            "begun_at": now_ms if before.keyed and before.begun_at is None else before.begun_at,
        }
        change(session, joining.values(values), 1, "a joining table")
        _certify(session, state, before, minted.tick, holder, now_ms)
    for table_id in minted.swaps:
        _swap(session, state, after.tables[table_id], minted.tick)
        _certify(session, state, state.replacements[table_id], minted.tick, holder, now_ms)
    joined = [after.tables[table_id] for table_id in (*minted.joins, *minted.swaps)]
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
            for table in joined
        ],
    )


def _swap(session: Session, state: SourceState, after: TableState, tick: Tick) -> None:
    """The table's row takes the new generation's progress. The old generation answers reads as of earlier times."""
    old, new = state.tables[after.table_id], state.replacements[after.table_id]
    session.execute(
        insert(SwapRow).values(
            table_id=old.table_id, generation=old.generation, mz_timestamp=tick.mz_timestamp, upper=old.upper
        )
    )
    left = update(MembershipRow).where(MembershipRow.table_id == old.table_id, MembershipRow.left_at.is_(None))
    session.execute(left.values(left_at=tick.number, reason="replaced"), execution_options=_NO_SYNC)
    counters = (ReplacementRow.rows, ReplacementRow.errors, ReplacementRow.folded)
    rows, errors, folded = session.execute(select(*counters).where(ReplacementRow.table_id == old.table_id)).one()
    keep_current(session, old.table_id)
    swapping = update(TableRow).where(TableRow.id == old.table_id, TableRow.generation == old.generation)
    values = {
        "generation": new.generation,
        "status": after.status,
        "reason": None,
        "position": after.position,
        "next_tick": after.next_tick,
        "upper": after.upper,
        "since": after.since,
        "rows": rows,
        "errors": errors,
        "folded": folded,
        "backfill_id": None,
        "begun_at": after.begun_at,
        "known_from": after.known_from,
        "awaits_snapshot": after.awaits_snapshot,
        "snapshot": after.snapshot,
    }
    change(session, swapping.values(**values), 1, f"table {old.table_id}")
    session.execute(delete(ReplacementRow).where(ReplacementRow.table_id == old.table_id), execution_options=_NO_SYNC)


def _certify(
    session: Session, state: SourceState, arrived: TableState, tick: Tick, holder: Holder | None, now_ms: int
) -> None:
    """A table that never needed a backfill has nothing to prove."""
    if arrived.backfill_id is None:
        return
    query = (
        select(BackfillRow, BackfillTableRow)
        .join(BackfillTableRow, BackfillTableRow.backfill_id == BackfillRow.id)
        .where(BackfillRow.id == arrived.backfill_id, BackfillTableRow.table_id == arrived.table_id)
        .execution_options(populate_existing=True)
    )
    backfill, wrote = session.execute(query).one()
    collections = (CollectionRow.table_id == arrived.table_id) & (CollectionRow.generation == arrived.generation)
    hash_version = session.scalar(select(CollectionRow.hash_version).where(collections).limit(1))
    jobs = select(JobRow.id).where(JobRow.backfill_id == backfill.id, JobRow.started_at.is_not(None))
    session.execute(
        insert(CertificateRow).values(
            table_id=arrived.table_id,
            source_id=state.source_id,
            generation=arrived.generation,
            backfill_id=backfill.id,
            tick=tick.number,
            mz_timestamp=tick.mz_timestamp,
            from_tick=wrote.from_tick,
            history_tick=backfill.history_tick,
            start=wrote.from_position,
            history_upper=backfill.history_upper,
            cutover=tick.lower,
            rows=wrote.rows,
            errors=wrote.errors,
            data_hash=wrote.data_hash,
            errors_hash=wrote.errors_hash,
            hash_version=hash_version,
            backfill_jobs=json.dumps([str(job) for job in session.scalars(jobs.order_by(JobRow.number))]),
            ingestion_job=holder.job_id if holder else None,
            created_at=now_ms,
        )
    )


def joined_by(session: Session, source_id: ItemId, number: int) -> list[ItemId]:
    query = select(MembershipRow.table_id).where(
        MembershipRow.source_id == source_id, MembershipRow.joined_at == number
    )
    return list(session.scalars(query))
