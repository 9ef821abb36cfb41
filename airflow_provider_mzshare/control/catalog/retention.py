"""Moves ``since`` as ``RETAIN HISTORY FOR`` says, and tells from which version on each collection is still needed."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.lookup import parse_table_spec
from airflow_provider_mzshare.control.catalog.models import CollectionRow, CommitRow, TableRow
from airflow_provider_mzshare.storage.ticks import rules
from airflow_provider_mzshare.storage.ticks.state import SourceState
from airflow_provider_mzshare.types.ids import CollectionId

GRACE_MS = 3_600_000
"""A reader that chose its version before ``since`` moved has this long to finish."""


def advance_since(session: Session, state: SourceState, now_ms: int) -> Mapping[CollectionId, int]:
    """Behind the source's lock. The answer leaves out collections that nothing can be removed from."""
    rows = session.scalars(select(TableRow).where(TableRow.id.in_(state.tables)))
    since = {}
    for row in rows:
        retained = parse_table_spec(row.spec).retain_history_seconds * 1000
        table = state.tables[row.id]
        since[row.id] = rules.retained_since(table, retained, now_ms)
        if since[row.id] > table.since:
            session.execute(
                update(TableRow).where(TableRow.id == row.id).values(since=since[row.id]),
                execution_options={"synchronize_session": False},
            )
    needed = {}
    for collection_id, table_id in session.execute(
        select(CollectionRow.id, CollectionRow.table_id).where(CollectionRow.table_id.in_(since))
    ):
        version = session.scalar(
            select(func.max(CommitRow.version)).where(
                CommitRow.collection_id == collection_id, CommitRow.mz_timestamp <= since[table_id] - GRACE_MS
            )
        )
        if version:
            needed[collection_id] = version
    return needed
