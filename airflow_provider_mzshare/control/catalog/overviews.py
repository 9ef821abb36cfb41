"""What a person wants to know about a source or a table, gathered from one snapshot. Changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.clock import wall_ms
from airflow_provider_mzshare.control.catalog.jobs import Job, last_jobs
from airflow_provider_mzshare.control.catalog.lookup import (
    SourceItem,
    TableItem,
    get_source_item,
    get_table_item,
    list_tables,
)
from airflow_provider_mzshare.control.catalog.models import TickRow
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.positions import Position

RATE_TICKS = 20
"""A rate is taken over so many ticks."""


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
    """How many per status."""
    job: Job | None
    """The newest, running or ended."""


@dataclass(frozen=True)
class TableOverview:
    item: TableItem
    source: str
    behind: int
    """Offsets that the source has committed and the table has not."""


def source_overview(session: Session, source_id: ItemId, *, now_ms: int | None = None) -> SourceOverview:
    item = get_source_item(session, source_id)
    committed = _ticks(session, source_id, TickRow.committed.is_(True))
    pending = _ticks(session, source_id, TickRow.number > (committed[0].number if committed else 0))
    last = committed[0] if committed else None
    jobs = last_jobs(session, source_id, limit=1)
    now = wall_ms() if now_ms is None else now_ms
    return SourceOverview(
        item=item,
        position=last.upper if last else item.start,
        last_tick=last,
        pending_tick=pending[-1] if pending else None,
        age_ms=max(0, now - last.committed_at) if last and last.committed_at is not None else None,
        rate=rate_of(committed),
        tables=Counter(table.status for table in list_tables(session, source_id)),
        job=jobs[0] if jobs else None,
    )


def table_overview(session: Session, table_id: ItemId) -> TableOverview:
    item = get_table_item(session, table_id)
    source = source_overview(session, item.source_id)
    return TableOverview(item=item, source=source.item.display, behind=source.position.gap(item.position))


def table_overviews(session: Session, source_id: ItemId) -> Sequence[TableOverview]:
    """All tables of a source, oldest first."""
    source = source_overview(session, source_id)
    return [
        TableOverview(item=item, source=source.item.display, behind=source.position.gap(item.position))
        for item in list_tables(session, source_id)
    ]


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
