"""The tables of journals as typed rows: partitions with their writers' leases, segments, and ids of batches."""

from __future__ import annotations

from sqlalchemy import Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from airflow_provider_mzshare.control.catalog.database.base import Base
from airflow_provider_mzshare.core.ids import JobId, JournalId


class JournalPartitionRow(Base):
    """Whoever writes anything about a partition of a journal locks this row first. The first claim makes it."""

    __tablename__ = "journal_partitions"

    journal: Mapped[JournalId] = mapped_column(Text, primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True)
    lease_epoch: Mapped[int]
    lease_job: Mapped[JobId | None] = mapped_column(Text)
    lease_beat: Mapped[int]
    begin: Mapped[int]
    end: Mapped[int]
    size: Mapped[int]
    segments: Mapped[int]
    """How many there are."""
    newest_first: Mapped[int | None]
    newest_epoch: Mapped[int | None]
    newest_number: Mapped[int | None]
    """Of the newest segment."""
    begin_noted: Mapped[int] = mapped_column(server_default="0")
    """``begin`` as maintenance found it at ``begin_noted_at``: when that is long ago, files before it may go."""
    begin_noted_at: Mapped[int] = mapped_column(server_default="0")


class JournalSegmentRow(Base):
    """A segment, as far as it is announced. Wherever one is looked up, ``first`` is named: Postgres takes any index for
    as good as another one, as long as it has no statistics."""

    __tablename__ = "journal_segments"

    journal: Mapped[JournalId] = mapped_column(Text, primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True)
    first: Mapped[int] = mapped_column(primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    end: Mapped[int]
    length: Mapped[int]
    checksum: Mapped[int]
    payload: Mapped[int]
    announced_at: Mapped[int]
    low: Mapped[int | None]
    boundary: Mapped[int | None]

    __table_args__ = (
        # What an announcement changes is in no index: to go on with a segment costs one row, wherever it is.
        Index(
            "journal_segments_low",
            "journal",
            "partition",
            "low",
            sqlite_where=text("low IS NOT NULL"),
            postgresql_where=text("low IS NOT NULL"),
        ),
        {"sqlite_with_rowid": False},
    )


class JournalBatchRow(Base):
    """A batch that is announced, by the id that its sender gave it: in one partition of the journal, whichever."""

    __tablename__ = "journal_batches"

    journal: Mapped[JournalId] = mapped_column(Text, primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int]
    first: Mapped[int]
    end: Mapped[int]
    digest: Mapped[str]
    announced_at: Mapped[int]

    __table_args__ = (
        # They go with their messages, oldest first.
        Index("journal_batches_place", "journal", "partition", "first"),
        {"sqlite_with_rowid": False},
    )
