"""Writes which snapshots backfills have taken, and which of them tables begin with. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import SnapshotRow
from airflow_provider_mzshare.control.catalog.log.follows import add_up, move
from airflow_provider_mzshare.control.catalog.log.tick_rows import write_commits
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, SnapshotId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Snapshot, SourceState, TableState

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def write_taken(
    session: Session,
    backfill_id: BackfillId,
    snapshot: Snapshot,
    tables: Sequence[TableState],
    expected: Mapping[ItemId, int],
) -> None:
    same = {"id": snapshot.snapshot_id, "backfill_id": backfill_id, "snapshot": snapshot, "taken_at": wall_ms()}
    rows = [
        {
            **same,
            "table_id": table.table_id,
            "generation": table.generation,
            "rows_expected": max(0, expected[table.table_id]),
            "rows_read": 0,
        }
        for table in tables
    ]
    if rows:
        session.execute(insert(SnapshotRow), rows)
    for table in tables:
        touch(session, table.table_id)


def write_read(session: Session, snapshot_id: SnapshotId, read: Mapping[ItemId, int]) -> None:
    for table_id, rows in read.items():
        of_table = update(SnapshotRow).where(SnapshotRow.id == snapshot_id, SnapshotRow.table_id == table_id)
        session.execute(of_table.values(rows_read=rows), execution_options=_NO_SYNC)


def write_landed(
    session: Session,
    state: SourceState,
    backfill_id: BackfillId,
    outcomes: Mapping[ItemId, Landed | Left],
    followed: Followed,
    stats: Mapping[str, float],
) -> None:
    for table_id, after in followed.tables.items():
        before, outcome = backfill_rules.arriving(state, backfill_id)[table_id], outcomes[table_id]
        done = outcome.done if isinstance(outcome, Landed) else Done()
        move(session, before, after, done, replacement=backfill_rules.is_replacement(state, before))
        if isinstance(outcome, Landed):
            write_commits(session, None, done.written)
            add_up(session, backfill_id, before, done, stats)
            _note_landed(session, after, outcome.snapshot)
        touch(session, table_id)


def _note_landed(session: Session, table: TableState, snapshot: Snapshot) -> None:
    """A catalog that was restored from an old copy may not know the one whose rows are there: the table does."""
    found = update(SnapshotRow).where(
        SnapshotRow.id == snapshot.snapshot_id,
        SnapshotRow.table_id == table.table_id,
        SnapshotRow.generation == table.generation,
    )
    session.execute(found.values(landed_at=wall_ms()), execution_options=_NO_SYNC)
