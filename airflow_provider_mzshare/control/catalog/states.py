"""A source's rows as the value that the rules decide upon, and its lock."""

from __future__ import annotations

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.models import MembershipRow, SourceRow, TableRow, TickRow
from airflow_provider_mzshare.errors import UnknownItem
from airflow_provider_mzshare.storage.ticks.state import Lease, SourceState, TableState, Tick
from airflow_provider_mzshare.types.ids import ItemId


def lock_source(session: Session, source_id: ItemId) -> SourceRow:
    """Nobody else writes about this source until the transaction ends. (SQLite: nobody writes at all.)"""
    return _source(session, source_id, select(SourceRow).with_for_update())


def get_source(session: Session, source_id: ItemId) -> SourceRow:
    return _source(session, source_id, select(SourceRow))


def _source(session: Session, source_id: ItemId, query: Select[SourceRow]) -> SourceRow:
    row = session.scalar(query.where(SourceRow.id == source_id).execution_options(populate_existing=True))
    if row is None:
        raise UnknownItem("source", source_id)
    return row


def lease_of(source: SourceRow) -> Lease:
    return Lease(epoch=source.lease_epoch, job_id=source.lease_job, beat=source.lease_beat)


def load_state(session: Session, source: SourceRow) -> SourceState:
    ticks = [_tick(row) for row in session.scalars(_newest_ticks(source.id))]
    pending = tuple(tick for tick in ticks if not tick.committed)
    return SourceState(
        source_id=source.id,
        status=source.status,
        incarnation=source.incarnation,
        start=source.start,
        lease=lease_of(source),
        last=ticks[0] if len(ticks) > len(pending) else None,
        pending=pending,
        tables={row.id: _table(row) for row in session.scalars(_present_tables(source.id))},
        members=frozenset(session.scalars(current_members(source.id))),
    )


def _newest_ticks(source_id: ItemId) -> Select[TickRow]:
    """The last committed tick and all after it, oldest first."""
    of_source = TickRow.source_id == source_id
    last = select(func.max(TickRow.number)).where(of_source, TickRow.committed).scalar_subquery()
    newest = select(TickRow).where(of_source, TickRow.number >= func.coalesce(last, 0)).order_by(TickRow.number)
    return newest.execution_options(populate_existing=True)


def _present_tables(source_id: ItemId) -> Select[TableRow]:
    present = select(TableRow).where(TableRow.source_id == source_id, TableRow.status != "dropped")
    return present.execution_options(populate_existing=True)


def current_members(source_id: ItemId) -> Select[ItemId]:
    return select(MembershipRow.table_id).where(MembershipRow.source_id == source_id, MembershipRow.left_at.is_(None))


def _tick(row: TickRow) -> Tick:
    return Tick(
        number=row.number,
        lower=row.lower,
        upper=row.upper,
        mz_timestamp=row.mz_timestamp,
        committed=row.committed,
        attempts=row.attempts,
        suspect=row.suspect,
        deaths=row.deaths,
        repaired=row.repaired,
    )


def _table(row: TableRow) -> TableState:
    return TableState(
        table_id=row.id,
        status=row.status,
        generation=row.generation,
        spec_version=row.spec_version,
        start=row.start,
        position=row.position,
        upper=row.upper,
        since=row.since,
        reason=row.reason,
    )
