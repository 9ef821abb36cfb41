"""The progress of a source as rows: what a query on the source's name reads. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.base import MOST
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import SourceItem
from airflow_provider_mzshare.control.views.readable import PROGRESS_COLUMNS
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.errors import NotReadable

SCHEMA = arrow_schema(tuple((column.name, column.type) for column in PROGRESS_COLUMNS))


@dataclass(frozen=True)
class Progress:
    """A source as of one of its committed ticks; ``rows`` are those of the relation."""

    tick: int
    mz_timestamp: int
    rows: Sequence[tuple[int | None, int | None, int, int]]

    def table(self) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in self.rows], SCHEMA)


def _number(text: str) -> int | None:
    """As in ``mz_progress``: NULL for text that is no number, and for a number that is too large for the column."""
    return int(text) if text.isdecimal() and int(text) <= MOST else None


EMPTY = Progress(0, 0, ())
"""The progress of a source without a committed tick."""


def progress_of(
    session: Session,
    source: SourceItem,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
    is_final: bool = False,
) -> Progress:
    """As of the last committed tick, or the last one at or before a time, or a tick.

    :param is_final: a table of the source has this tick; a backfill may be ahead of the tick's commit.
    """
    committed = select(TickRow).where(TickRow.source_id == source.id)
    if not is_final:
        committed = committed.where(TickRow.committed)
    if tick is not None:
        committed = committed.where(TickRow.number == tick)
    if as_of_ms is not None:
        committed = committed.where(TickRow.mz_timestamp <= as_of_ms)
    newest = committed.order_by(TickRow.number.desc()).limit(1)
    row = session.scalar(newest.execution_options(populate_existing=True))
    if row is not None:
        ends = [(_number(name), _number(str(offset))) for name, offset in row.upper.entries]
        return Progress(row.number, row.mz_timestamp, [(*end, row.number, row.mz_timestamp) for end in ends])
    if tick is None and as_of_ms is None:
        return EMPTY
    asked = f"tick {tick}" if tick is not None else str(as_of_ms)
    raise NotReadable(f"source {source.display} has no committed tick at {asked}", hint="mzshare status")
