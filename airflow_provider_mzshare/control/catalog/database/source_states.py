"""Loads a source's rows as the value that the rules decide upon, and takes the source's lock."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import kind_of, parse_source_spec
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    EndRow,
    MembershipRow,
    Progress,
    ReplacementRow,
    SourceRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.ticklog.state import BackfillState, EndSeen, Lease, SourceState, TableState, Tick
from airflow_provider_mzshare.errors import KindNotLoaded, UnknownItem, UnknownKind

_PAGE = 1_000


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


def lease_of(row: SourceRow | BackfillRow) -> Lease:
    return Lease(epoch=row.lease_epoch, job_id=row.lease_job, beat=row.lease_beat)


def load_state(session: Session, source: SourceRow) -> SourceState:
    ticks = [to_tick(row) for row in session.scalars(_newest_ticks(source.id))]
    present = session.execute(_present_tables(source.id)).all()
    tables = {row.id: to_table(row, row) for row, _ in present}
    replacements = {row.id: to_table(row, new) for row, new in present if new is not None}
    brought = {t.backfill_id for t in (*tables.values(), *replacements.values()) if t.backfill_id is not None}
    pending = tuple(tick for tick in ticks if not tick.committed)
    return SourceState(
        source_id=source.id,
        status=source.status,
        incarnation=source.incarnation,
        start=source.start,
        lease=lease_of(source),
        last=ticks[0] if len(ticks) > len(pending) else None,
        pending=pending,
        tables=tables,
        replacements=replacements,
        backfills=_backfills(session, brought) if brought else {},
        members=frozenset(session.scalars(current_members(source.id))),
        compaction_asked=source.compaction_asked,
        ends=_ends(session, source.id) if any(table.keyed for table in tables.values()) else (),
        by_snapshot=_begins_with_snapshots(source.spec),
    )


@lru_cache(maxsize=256)
def _begins_with_snapshots(spec: str) -> bool:
    """A source whose kind is not installed here gets no tables."""
    try:
        return kind_of(parse_source_spec(spec)).is_recorded
    except (UnknownKind, KindNotLoaded):
        return False


def _ends(session: Session, source_id: ItemId) -> tuple[EndSeen, ...]:
    columns = (EndRow.at, EndRow.position, EndRow.kept_ms, EndRow.lag_ms)
    query = select(*columns).where(EndRow.source_id == source_id).order_by(EndRow.at)
    return tuple(EndSeen(*row) for row in session.execute(query))


def _newest_ticks(source_id: ItemId) -> Select[TickRow]:
    """The last committed tick and all after it, oldest first."""
    of_source = TickRow.source_id == source_id
    last = select(func.max(TickRow.number)).where(of_source, TickRow.committed).scalar_subquery()
    newest = select(TickRow).where(of_source, TickRow.number >= func.coalesce(last, 0)).order_by(TickRow.number)
    return newest.execution_options(populate_existing=True)


def ticks_from(session: Session, source_id: ItemId, number: int) -> Iterator[Tick]:
    """Oldest first; a log may be long, so they come in pages."""
    ordered = select(TickRow).where(TickRow.source_id == source_id).order_by(TickRow.number).limit(_PAGE)
    while page := session.scalars(ordered.where(TickRow.number >= number)).all():
        yield from map(to_tick, page)
        number = page[-1].number + 1


def _present_tables(source_id: ItemId) -> Select[TableRow, ReplacementRow | None]:
    both = select(TableRow, ReplacementRow).outerjoin(ReplacementRow, ReplacementRow.table_id == TableRow.id)
    present = both.where(TableRow.source_id == source_id, TableRow.status != "dropped")
    return present.execution_options(populate_existing=True)


def current_members(source_id: ItemId) -> Select[ItemId]:
    return select(MembershipRow.table_id).where(MembershipRow.source_id == source_id, MembershipRow.left_at.is_(None))


def _backfills(session: Session, wanted: Collection[BackfillId]) -> dict[BackfillId, BackfillState]:
    query = select(BackfillRow).where(BackfillRow.id.in_(wanted)).execution_options(populate_existing=True)
    healed = select(BackfillTableRow.backfill_id, BackfillTableRow.table_id).where(
        BackfillTableRow.backfill_id.in_(wanted), BackfillTableRow.heals
    )
    healing: dict[BackfillId, set[ItemId]] = {}
    for backfill_id, table_id in session.execute(healed):
        healing.setdefault(backfill_id, set()).add(table_id)
    return {
        row.id: BackfillState(
            row.id, row.history_tick, lease_of(row), frozenset(healing.get(row.id, ())), row.created_at, row.alone
        )
        for row in session.scalars(query)
    }


def to_tick(row: TickRow) -> Tick:
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


def to_table(row: TableRow, progress: Progress) -> TableState:
    """A table in one of its generations: the current one, or the one that is to replace it."""
    return TableState(
        table_id=row.id,
        status=progress.status,
        generation=progress.generation,
        spec_version=row.spec_version,
        start=row.start,
        position=progress.position,
        next_tick=progress.next_tick,
        upper=progress.upper,
        since=progress.since,
        reason=progress.reason,
        backfill_id=progress.backfill_id,
        keyed=row.keyed,
        begun_at=progress.begun_at,
        known_from=progress.known_from,
        gone=progress.gone,
        awaits_snapshot=progress.awaits_snapshot,
        snapshot=progress.snapshot,
    )
