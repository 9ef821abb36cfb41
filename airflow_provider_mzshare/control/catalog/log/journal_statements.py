"""The statements of an announcement, made once: to put one together costs more than to run it. Decides nothing.

They name tables, not mapped classes: what a session does for objects that it keeps is not needed for rows that are
read once behind a lock, and changed by comparing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import ColumnElement, Row, Select, Table, bindparam, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import database_now
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.journal_models import JournalPartitionRow, JournalSegmentRow
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import PartitionState, Segment

_PARTITIONS = cast("Table", JournalPartitionRow.__table__)
_SEGMENTS = cast("Table", JournalSegmentRow.__table__)
_WAS = "was_"
"""Before the name of a column: what is compared, beside what is set."""


def _same(table: Table, *names: str) -> list[ColumnElement[bool]]:
    return [table.c[name] == bindparam(_WAS + name, type_=table.c[name].type) for name in names]


def _was(**values: object) -> dict[str, object]:
    return {_WAS + name: value for name, value in values.items()}


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_PARTITION = select(_PARTITIONS).where(*_same(_PARTITIONS, "journal", "partition")).with_for_update()


def lock_partition(session: Session, journal: JournalId, partition: int) -> Row[Any] | None:
    """Nobody else writes about this partition until the transaction ends."""
    return session.execute(_PARTITION, _was(journal=journal, partition=partition)).first()


@lru_cache
def _segment_and_time(dialect: str) -> Select[Any]:
    key = _same(_SEGMENTS, "journal", "partition", "first", "epoch", "number")
    return select(_SEGMENTS, database_now(dialect).label("now")).where(*key)


def find_newest(session: Session, row: Row[Any]) -> Row[Any] | None:
    """The newest segment of a partition that is locked, and what time it is: ``now``, see ``database_ms``.

    :param row: the partition's.
    """
    key = _was(
        journal=row.journal,
        partition=row.partition,
        first=row.newest_first,
        epoch=row.newest_epoch,
        number=row.newest_number,
    )
    return session.execute(_segment_and_time(session.get_bind().dialect.name), key).first()


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_UNCHANGED_PARTITION = _same(_PARTITIONS, "journal", "partition", "lease_epoch", "lease_beat", "end")
_PARTITION_CHANGE = update(_PARTITIONS).where(*_UNCHANGED_PARTITION)
_UNCHANGED_SEGMENT = _same(_SEGMENTS, "journal", "partition", "first", "epoch", "number", "length")
_SEGMENT_CHANGE = update(_SEGMENTS).where(*_UNCHANGED_SEGMENT)
_GROWS = ("end", "length", "checksum", "payload", "announced_at", "low", "boundary")


def change_partition(session: Session, journal: JournalId, before: PartitionState, values: Mapping[str, int]) -> None:
    """Raises LogConflict where it is not as it was."""
    was = _was(
        journal=journal,
        partition=before.partition,
        lease_epoch=before.lease.epoch,
        lease_beat=before.lease.beat,
        end=before.end,
    )
    change(session, _PARTITION_CHANGE, 1, "the partition", was | dict(values))


def change_segment(session: Session, journal: JournalId, before: Segment, after: Segment) -> None:
    """Raises LogConflict where it is not as it was."""
    was = _was(
        journal=journal,
        partition=after.partition,
        first=after.first,
        epoch=after.epoch,
        number=after.number,
        length=before.length,
    )
    change(session, _SEGMENT_CHANGE, 1, "the segment", was | {name: getattr(after, name) for name in _GROWS})
