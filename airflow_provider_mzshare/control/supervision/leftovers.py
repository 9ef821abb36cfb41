"""Finds folders in the warehouse that no read needs and no app may still write. Removes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import ColumnElement, and_, exists, func, select
from sqlalchemy.orm import Session, aliased

from airflow_provider_mzshare.control.catalog.database.journal_models import JournalPartitionRow
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillTableRow,
    CollectionRow,
    ItemRow,
    JobRow,
    MembershipRow,
    ReplacementRow,
    SourceRow,
    SwapRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.supervision.actions import DroppedJournal, DroppedTable
from airflow_provider_mzshare.core.ids import ItemId, JournalId, journal_of

WRITER_ENDS_MS = 3_600_000
"""A writer is fenced when its source is dropped. One that has come back since is not waited for any longer."""

_DROPPED, _UNUSED = "it was dropped", "nobody can read its generation {} any more"


def find_leftovers(session: Session, folders: frozenset[str], only: ItemId | None = None) -> tuple[DroppedTable, ...]:
    """:param folders: the folders in the warehouse. :param only: look only at the tables of this source."""
    if not folders:
        return ()
    found = [*_of_dropped_tables(session, only), *_of_old_generations(session, only)]
    paths: dict[tuple[ItemId, str], list[str]] = defaultdict(list)
    for table_id, path, why in found:
        if path in folders:
            paths[table_id, why].append(path)
    return tuple(
        DroppedTable(table_id, str(QualifiedName(*items.get_table_item(session, table_id).name)), tuple(kept), why)
        for (table_id, why), kept in sorted(paths.items())
    )


def find_journals(
    session: Session, folders: frozenset[JournalId], now: int, only: ItemId | None = None
) -> tuple[DroppedJournal, ...]:
    """Journals of dropped sources that no app reads and nobody writes. A folder that no source has is left alone.

    :param folders: the journals that have one in the warehouse. Others may have rows.
    """
    reads = exists().where(JobRow.source_id == SourceRow.id, JobRow.state.in_(ACTIVE))
    of_it = SourceRow.incarnation.endswith(JournalPartitionRow.journal)
    writes = and_(
        ItemRow.dropped_at > now - WRITER_ENDS_MS, exists().where(of_it, JournalPartitionRow.lease_job.is_not(None))
    )
    columns = select(SourceRow.id, SourceRow.incarnation, exists().where(of_it).label("has_rows"))
    query = columns.join(ItemRow, ItemRow.id == SourceRow.id).where(SourceRow.status == "dropped", ~reads, ~writes)
    if only is not None:
        query = query.where(SourceRow.id == only)
    found = [
        (source_id, journal)
        for source_id, incarnation, has_rows in session.execute(query.order_by(SourceRow.id))
        if (journal := journal_of(incarnation)) is not None and (has_rows or journal in folders)
    ]
    return tuple(
        DroppedJournal(
            journal, str(QualifiedName(*items.get_source_item(session, source_id).name)), source_id=source_id
        )
        for source_id, journal in found
    )


def _of_dropped_tables(session: Session, only: ItemId | None) -> Iterable[tuple[ItemId, str, str]]:
    """Folders of dropped tables, as soon as no pending tick may have the table as a member."""
    other = aliased(TableRow)
    left = select(func.max(MembershipRow.left_at)).where(MembershipRow.table_id == TableRow.id).scalar_subquery()
    # A source without tables has no app that could finish its pending tick, so that tick needs no folder.
    used = exists().where(other.source_id == TableRow.source_id, other.status != "dropped")
    runs = exists().where(JobRow.source_id == TableRow.source_id, JobRow.kind == "ingest", JobRow.state.in_(ACTIVE))
    waits = exists().where(_is_pending(), TickRow.number <= left)
    query = (
        select(TableRow.id, CollectionRow.path)
        .join(CollectionRow, CollectionRow.table_id == TableRow.id)
        .where(TableRow.status == "dropped", ~(waits & (used | runs)), ~_is_backfilled())
    )
    if only is not None:
        query = query.where(TableRow.source_id == only)
    return [(table_id, path, _DROPPED) for table_id, path in session.execute(query)]


def _is_pending() -> ColumnElement[bool]:
    """Ticks after the last committed one are pending. So a long log is not searched."""
    other = aliased(TickRow)
    ended = select(func.max(other.number)).where(other.source_id == TableRow.source_id, other.committed)
    after = TickRow.number > func.coalesce(ended.correlate(TableRow).scalar_subquery(), 0)
    return and_(TickRow.source_id == TableRow.source_id, after)


def _of_old_generations(session: Session, only: ItemId | None) -> Iterable[tuple[ItemId, str, str]]:
    """Generations that were replaced, after maintenance has released them; and new ones that were never swapped in."""
    of_table = CollectionRow.table_id == TableRow.id
    arrives = exists().where(
        ReplacementRow.table_id == TableRow.id, ReplacementRow.generation == CollectionRow.generation
    )
    answers = exists().where(SwapRow.table_id == TableRow.id, SwapRow.generation == CollectionRow.generation)
    query = (
        select(TableRow.id, CollectionRow.path, CollectionRow.generation)
        .join(CollectionRow, of_table)
        .where(
            TableRow.status != "dropped",
            CollectionRow.generation != TableRow.generation,
            ~answers,
            ~arrives,
            ~_is_backfilled(),
        )
    )
    if only is not None:
        query = query.where(TableRow.source_id == only)
    return [(table_id, path, _UNUSED.format(generation)) for table_id, path, generation in session.execute(query)]


def _is_backfilled() -> ColumnElement[bool]:
    """Does a backfill's app run that may write this generation?"""
    return exists().where(
        BackfillTableRow.table_id == CollectionRow.table_id,
        BackfillTableRow.generation == CollectionRow.generation,
        JobRow.backfill_id == BackfillTableRow.backfill_id,
        JobRow.state.in_(ACTIVE),
    )
