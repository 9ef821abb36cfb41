"""What a person wants to know about a source or a table, gathered from one snapshot. Changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.damages import current_damage
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillTableRow,
    ItemRow,
    SnapshotRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.jobs import Job, active_jobs, last_jobs
from airflow_provider_mzshare.control.catalog.log.queue import Place, places
from airflow_provider_mzshare.control.catalog.objects.lookup import (
    SourceItem,
    TableItem,
    get_source_item,
    get_table_item,
    list_tables,
)
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules as rules
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState, TableStatus

RATE_TICKS = 20
"""How many ticks a rate is computed from."""


@dataclass(frozen=True)
class TickOverview:
    number: int
    lower: Position
    upper: Position
    mz_timestamp: int
    minted_at: int
    committed_at: int | None
    attempts: int
    repaired: bool
    stats: Mapping[str, float]


@dataclass(frozen=True)
class SourceOverview:
    item: SourceItem
    position: Position
    """Up to here everything is committed."""
    last_tick: TickOverview | None
    pending_tick: TickOverview | None
    age_ms: int | None
    """Since the last commit, by the wall clock."""
    rate: float | None
    """Offsets per second over the last ticks; None while there are too few."""
    tables: Mapping[str, int]
    """How many tables have each status; a damaged table is counted as damaged only."""
    job: Job | None
    """The newest of its ingestion app, running or ended."""
    indexes_on_disk: int = 0
    """Keyed tables whose index did not fit into the app's memory at the newest tick that had records."""


@dataclass(frozen=True)
class SnapshotOverview:
    """How far a table is that begins with a snapshot of the upstream.

    :param read: rows of the newest one that was taken, of about ``expected``; both None as long as there is none.
    :param landed: the table has its rows, and is not past all that the snapshot has.
    """

    read: int | None = None
    expected: int | None = None
    landed: bool = False


@dataclass(frozen=True)
class ArrivalOverview:
    """How far a table, or the new generation that is to replace it, has been brought up."""

    generation: int
    replaces: bool
    """It is a new generation: the current one is written and read until the swap."""
    status: TableStatus
    reason: str | None
    position: Position
    lag: int
    """Ticks minted that it has not got."""
    behind: int
    """Offsets in them."""
    done: int
    """Offsets that its backfill has executed, and read within the current group; of ``total`` up to the log's end."""
    total: int
    rate: float | None
    """Offsets per second while its backfill is at work; None before its first group with records."""
    backfill_id: BackfillId | None
    """None when it has stalled."""
    job: Job | None
    """The running job of its backfill, else the newest one."""
    keyed: bool = False
    samples: int = 0
    """Groups that the rate was measured in."""
    place: Place | None = None
    """Its backfill's place in the queue for an app."""
    snapshot: SnapshotOverview | None = None
    """Of a table that waits for one, or whose rows are not known yet because of it."""


@dataclass(frozen=True)
class TableOverview:
    item: TableItem
    source: str
    behind: int
    """Offsets that the source has committed and the table has not."""
    arrival: ArrivalOverview | None = None


def source_overview(session: Session, source_id: ItemId, *, now_ms: int | None = None) -> SourceOverview:
    item = get_source_item(session, source_id)
    committed = _ticks(session, source_id, TickRow.committed.is_(True))
    pending = _ticks(session, source_id, TickRow.number > (committed[0].number if committed else 0))
    last = committed[0] if committed else None
    jobs = last_jobs(session, source_id, limit=1, kind="ingest")
    now = wall_ms() if now_ms is None else now_ms
    return SourceOverview(
        item=item,
        position=last.upper if last else item.start,
        last_tick=last,
        pending_tick=pending[-1] if pending else None,
        age_ms=max(0, now - last.committed_at) if last and last.committed_at is not None else None,
        rate=rate_of(committed),
        tables=_statuses(session, source_id),
        job=jobs[0] if jobs else None,
        indexes_on_disk=next((int(tick.stats.get("indexes_on_disk", 0)) for tick in committed if tick.stats), 0),
    )


def _statuses(session: Session, source_id: ItemId) -> Counter[str]:
    """How many tables are in which status; counted where they are, for a source may have thousands."""
    shown = case((current_damage().is_not(None), "damaged"), else_=TableRow.status)
    statuses = select(shown.label("status")).select_from(TableRow).join(ItemRow, known_as())
    present = statuses.where(
        TableRow.source_id == source_id, TableRow.status != "dropped", ItemRow.dropped_at.is_(None)
    ).subquery()
    counted = select(present.c.status, func.count()).group_by(present.c.status)
    return Counter({row.status: row[1] for row in session.execute(counted)})


def current_overview(session: Session, source_id: ItemId) -> SourceOverview:
    """If two jobs were launched at once, ``job`` is the one that runs, not the newer one that found it running."""
    overview = source_overview(session, source_id)
    active = active_jobs(session, source_id, kind="ingest")
    return replace(overview, job=active[0]) if active else overview


def table_overview(session: Session, table_id: ItemId) -> TableOverview:
    item = get_table_item(session, table_id)
    source = source_overview(session, item.source_id)
    arrival = arrival_overviews(session, item.source_id).get(table_id)
    return TableOverview(item, source.item.display, source.position.gap(item.position), arrival)


def table_overviews(
    session: Session, source_id: ItemId, source: SourceOverview | None = None
) -> Sequence[TableOverview]:
    """All tables of a source, oldest first.

    :param source: as it is, if somebody has looked already.
    """
    source = source or source_overview(session, source_id)
    arrivals = arrival_overviews(session, source_id)
    return [
        TableOverview(item, source.item.display, source.position.gap(item.position), arrivals.get(item.id))
        for item in list_tables(session, source_id)
    ]


def arrival_overviews(session: Session, source_id: ItemId) -> Mapping[ItemId, ArrivalOverview]:
    """Tables and new generations of a source that are being brought up; stalled ones too."""
    state = load_state(session, get_source(session, source_id))
    coming = rules.arriving(state) | dict(state.replacements)
    jobs = {one: _backfill_job(session, source_id, one) for one in {t.backfill_id for t in coming.values()} if one}
    queued = places(session) if not all(job and job.is_active for job in jobs.values()) else {}
    written = select(BackfillTableRow).where(BackfillTableRow.backfill_id.in_(jobs))
    rows = session.scalars(written.execution_options(populate_existing=True)) if jobs else ()
    wrote = {(row.backfill_id, row.table_id): row for row in rows}
    found = {
        table_id: _arrival(state, table, wrote.get((table.backfill_id, table_id)) if table.backfill_id else None, jobs)
        for table_id, table in coming.items()
    }
    begun = _snapshots(session, coming)
    return {
        table_id: replace(
            one, place=queued.get(one.backfill_id) if one.backfill_id else None, snapshot=begun.get(table_id)
        )
        for table_id, one in found.items()
    }


def _snapshots(session: Session, coming: Mapping[ItemId, TableState]) -> dict[ItemId, SnapshotOverview]:
    found = {t.table_id: SnapshotOverview(landed=True) for t in coming.values() if t.snapshot is not None}
    waiting = {t.identity: SnapshotOverview() for t in coming.values() if t.awaits_snapshot}
    taken = select(SnapshotRow).where(SnapshotRow.table_id.in_([table_id for table_id, _ in waiting]))
    for row in session.scalars(taken.order_by(SnapshotRow.taken_at)) if waiting else ():
        if (row.table_id, row.generation) in waiting:
            waiting[row.table_id, row.generation] = SnapshotOverview(row.rows_read, row.rows_expected)
    return found | {table_id: one for (table_id, _), one in waiting.items()}


def _arrival(
    state: SourceState, table: TableState, wrote: BackfillTableRow | None, jobs: Mapping[BackfillId, Job | None]
) -> ArrivalOverview:
    began = wrote.from_position if wrote else table.start
    total, ahead = state.upper.gap(began), wrote.ahead if wrote else 0
    return ArrivalOverview(
        generation=table.generation,
        replaces=rules.is_replacement(state, table),
        status=table.status,
        reason=table.reason,
        position=table.position,
        lag=rules.lag(state, table),
        behind=state.upper.gap(table.position),
        done=min(total, table.position.gap(began) + ahead),
        total=total,
        rate=wrote.records * 1000 / wrote.busy_ms if wrote and wrote.busy_ms and wrote.records else None,
        backfill_id=table.backfill_id,
        job=jobs.get(table.backfill_id) if table.backfill_id else None,
        keyed=table.keyed,
        samples=wrote.groups if wrote else 0,
    )


def _backfill_job(session: Session, source_id: ItemId, backfill_id: BackfillId) -> Job | None:
    active = active_jobs(session, source_id, backfill_id=backfill_id)
    newest = active or last_jobs(session, source_id, 1, backfill_id=backfill_id)
    return newest[0] if newest else None


def rate_of(ticks: Sequence[TickOverview]) -> float | None:
    """Offsets per second between the oldest commit and the newest; ``ticks`` are newest first."""
    if len(ticks) < 2:
        return None
    newest, oldest = ticks[0], ticks[-1]
    if newest.committed_at is None or oldest.committed_at is None or newest.committed_at <= oldest.committed_at:
        return None
    return newest.upper.gap(oldest.upper) * 1000 / (newest.committed_at - oldest.committed_at)


def _ticks(session: Session, source_id: ItemId, which: ColumnElement[bool]) -> list[TickOverview]:
    """Newest first."""
    query = select(TickRow).where(TickRow.source_id == source_id, which).order_by(TickRow.number.desc())
    rows = session.scalars(query.limit(RATE_TICKS).execution_options(populate_existing=True))
    return [_tick(row) for row in rows]


def _tick(row: TickRow) -> TickOverview:
    return TickOverview(
        number=row.number,
        lower=row.lower,
        upper=row.upper,
        mz_timestamp=row.mz_timestamp,
        minted_at=row.minted_at,
        committed_at=row.committed_at,
        attempts=row.attempts,
        repaired=row.repaired,
        stats=json.loads(row.stats) if row.stats else {},
    )
