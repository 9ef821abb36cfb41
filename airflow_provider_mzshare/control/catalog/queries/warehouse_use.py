"""Whether anything of this catalog is in its warehouse: then a folder that is missing must not come back empty."""

from __future__ import annotations

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.journal_models import JournalSegmentRow
from airflow_provider_mzshare.control.catalog.database.models import TableRow


def is_used(session: Session) -> bool:
    """Tables with rows have folders; before it is announced, nothing of a journal counts."""
    kept = TableRow.status != "dropped", or_(TableRow.rows > 0, TableRow.errors > 0)
    filled, announced = exists(select(TableRow.id).where(*kept)), exists(select(JournalSegmentRow.number))
    return bool(session.scalar(select(or_(filled, announced))))
