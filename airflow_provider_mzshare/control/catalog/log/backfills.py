"""Backfills as values: which run, what they bring up, and their jobs. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, select, true, union_all
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    CertificateRow,
    ItemRow,
    JobRow,
    Progress,
    ReplacementRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import lease_of
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.backfill_rules import ARRIVING, BY_AN_APP
from airflow_provider_mzshare.core.ticklog.state import Generation, Lease, TableStatus
from airflow_provider_mzshare.errors import UnknownItem


@dataclass(frozen=True)
class Arrival:
    """One generation of a table that is being brought up."""

    table_id: ItemId
    name: Name
    generation: int
    replaces: bool
    """It is a new generation: the current one is written and read until the swap."""
    status: TableStatus
    position: Position
    next_tick: int
    from_tick: int
    from_position: Position
    rows: int
    errors: int
    records: int
    busy_ms: int

    @property
    def display(self) -> str:
        return display_name(self.name)


@dataclass(frozen=True)
class Backfill:
    id: BackfillId
    source_id: ItemId
    created_at: int
    history_tick: int
    history_upper: Position
    lease: Lease
    tables: tuple[Arrival, ...]
    """The tables that it still brings up; none when the backfill is over."""


def active_backfills(session: Session, source_id: ItemId | None = None) -> Sequence[Backfill]:
    """Those that have tables to bring up in an app of their own, oldest first."""
    query = select(BackfillRow).order_by(BackfillRow.created_at, BackfillRow.id)
    if source_id is not None:
        query = query.where(BackfillRow.source_id == source_id)
    brought = [select(row.backfill_id).where(row.status.in_(BY_AN_APP)) for row in (TableRow, ReplacementRow)]
    rows = session.scalars(query.where(BackfillRow.id.in_(brought[0].union(brought[1]))).execution_options(**_FRESH))
    return [_backfill(session, row) for row in rows]


def find_backfill(session: Session, backfill_id: BackfillId) -> Backfill:
    row = session.scalar(select(BackfillRow).where(BackfillRow.id == backfill_id).execution_options(**_FRESH))
    if row is None:
        raise UnknownItem("backfill", backfill_id)
    return _backfill(session, row)


def last_backfill(session: Session, table_id: ItemId) -> BackfillId | None:
    """The newest that was asked for this table, running or over."""
    query = (
        select(BackfillRow.id)
        .join(BackfillTableRow, BackfillTableRow.backfill_id == BackfillRow.id)
        .where(BackfillTableRow.table_id == table_id)
        .order_by(BackfillRow.created_at.desc())
        .limit(1)
    )
    return session.scalar(query)


def unfinished_backfill(session: Session, table_id: ItemId, generation: int) -> BackfillId | None:
    """The newest backfill that was to fill this generation, unless the generation was cut over from it."""
    newest = (
        select(BackfillRow.id)
        .join(BackfillTableRow, BackfillTableRow.backfill_id == BackfillRow.id)
        .where(BackfillTableRow.table_id == table_id, BackfillTableRow.generation == generation)
        .order_by(BackfillRow.created_at.desc())
        .limit(1)
    )
    backfill_id = session.scalar(newest)
    proven = exists().where(CertificateRow.table_id == table_id, CertificateRow.backfill_id == backfill_id)
    return None if session.scalar(select(proven)) else backfill_id


def backfill_jobs(session: Session, backfill_id: BackfillId) -> Sequence[JobId]:
    """Oldest first."""
    return session.scalars(select(JobRow.id).where(JobRow.backfill_id == backfill_id).order_by(JobRow.number)).all()


def held(session: Session, source_id: ItemId, backfill_id: BackfillId) -> tuple[Lease | None, Collection[Generation]]:
    """Who holds a backfill, None if it is over, and the tables that it brings up: one short statement, asked often."""
    of_backfill = [
        select(TableRow.id, TableRow.generation).where(
            TableRow.source_id == source_id, *_brought_by(TableRow, backfill_id)
        ),
        select(ReplacementRow.table_id, ReplacementRow.generation).where(*_brought_by(ReplacementRow, backfill_id)),
    ]
    own = union_all(*of_backfill).subquery()
    lease = (BackfillRow.lease_epoch, BackfillRow.lease_job, BackfillRow.lease_beat)
    found = session.execute(select(*lease, *own.c).join(own, true()).where(BackfillRow.id == backfill_id)).all()
    if not found:
        return None, ()
    epoch, job_id, beat = found[0][:3]
    return Lease(epoch=epoch, job_id=job_id, beat=beat), {(table_id, generation) for *_, table_id, generation in found}


def _brought_by(of: type[TableRow] | type[ReplacementRow], backfill_id: BackfillId) -> tuple[ColumnElement[bool], ...]:
    return of.backfill_id == backfill_id, of.status.in_(ARRIVING)


_FRESH = {"populate_existing": True}


def _backfill(session: Session, row: BackfillRow) -> Backfill:
    current = select(TableRow, BackfillTableRow, ItemRow).select_from(TableRow).where(TableRow.backfill_id == row.id)
    current = current.join(
        BackfillTableRow,
        (BackfillTableRow.table_id == TableRow.id) & (BackfillTableRow.backfill_id == TableRow.backfill_id),
    ).join(ItemRow, known_as())
    beside = (
        select(ReplacementRow, BackfillTableRow, ItemRow)
        .select_from(ReplacementRow)
        .where(ReplacementRow.backfill_id == row.id)
    )
    beside = beside.join(
        BackfillTableRow,
        (BackfillTableRow.table_id == ReplacementRow.table_id)
        & (BackfillTableRow.backfill_id == ReplacementRow.backfill_id),
    ).join(ItemRow, known_as(ReplacementRow.table_id))
    found = [_arrival(*parts, replaces=False) for parts in session.execute(current.execution_options(**_FRESH))]
    found += [_arrival(*parts, replaces=True) for parts in session.execute(beside.execution_options(**_FRESH))]
    return Backfill(
        id=row.id,
        source_id=row.source_id,
        created_at=row.created_at,
        history_tick=row.history_tick,
        history_upper=row.history_upper,
        lease=lease_of(row),
        tables=tuple(sorted((a for a in found if a.status in BY_AN_APP), key=lambda a: int(a.table_id[1:]))),
    )


def _arrival(progress: Progress, wrote: BackfillTableRow, item: ItemRow, *, replaces: bool) -> Arrival:
    return Arrival(
        table_id=wrote.table_id,
        name=(item.schema_name, item.name),
        generation=progress.generation,
        replaces=replaces,
        status=progress.status,
        position=progress.position,
        next_tick=progress.next_tick,
        from_tick=wrote.from_tick,
        from_position=wrote.from_position,
        rows=wrote.rows,
        errors=wrote.errors,
        records=wrote.records,
        busy_ms=wrote.busy_ms,
    )
