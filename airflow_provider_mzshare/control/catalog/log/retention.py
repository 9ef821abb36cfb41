"""Moves ``since`` as ``RETAIN HISTORY FOR`` says, up to where somebody holds it. Removes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.log.holds import drop_dead
from airflow_provider_mzshare.control.catalog.objects.lookup import parse_table_spec
from airflow_provider_mzshare.core.ticklog import holds, rules
from airflow_provider_mzshare.core.ticklog.holds import Hold
from airflow_provider_mzshare.core.ticklog.state import SourceState


def advance_since(session: Session, state: SourceState, now_ms: int) -> Sequence[Hold]:
    """Behind the source's lock, behind which holds are taken, too. Returns the holds of the dead that were dropped."""
    standing, dropped = drop_dead(session, state.source_id)
    held = holds.oldest(standing)
    for row in session.scalars(select(TableRow).where(TableRow.id.in_(state.tables))):
        table, retained = state.tables[row.id], parse_table_spec(row.spec).retain_history_seconds * 1000
        since = rules.retained_since(table, retained, now_ms, held.get(row.id))
        if since > table.since:
            session.execute(
                update(TableRow).where(TableRow.id == row.id).values(since=since),
                execution_options={"synchronize_session": False},
            )
    return dropped
