"""What becomes of the journal of a source that is dropped, as rows. The caller owns the transaction."""

from __future__ import annotations

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.journal_models import (
    JournalBatchRow,
    JournalPartitionRow,
    JournalSegmentRow,
)
from airflow_provider_mzshare.core.ids import JournalId

_NO_SYNC = {"synchronize_session": False}


def fence_writers(session: Session, journal: JournalId) -> None:
    """Whoever writes is told so by its next announcement or heartbeat."""
    row = JournalPartitionRow
    fenced = {"lease_epoch": row.lease_epoch + 1, "lease_job": None, "lease_beat": row.lease_beat + 1}
    session.execute(update(row).where(row.journal == journal).values(fenced), execution_options=_NO_SYNC)


def forget_journal(session: Session, journal: JournalId) -> None:
    """Partitions first: an announcement that is under way ends before, and later ones find no lease."""
    for row in (JournalPartitionRow, JournalSegmentRow, JournalBatchRow):
        session.execute(delete(row).where(row.journal == journal), execution_options=_NO_SYNC)
