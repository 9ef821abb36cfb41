"""Whether anything of this catalog is in its warehouse: then a folder that is missing must not come back empty."""

from __future__ import annotations

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.journal_models import JournalSegmentRow
from airflow_provider_mzshare.control.catalog.database.models import TickRow


def is_used(session: Session) -> bool:
    """Before its first tick no table has a folder, and before it is announced nothing of a journal counts."""
    ticked, announced = exists(select(TickRow.number)), exists(select(JournalSegmentRow.number))
    return bool(session.scalar(select(or_(ticked, announced))))
