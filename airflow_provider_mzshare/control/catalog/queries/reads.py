"""Where a read finds its rows: the tick and the Delta versions that answer, the same for ever. Opens no collection."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, CommitRow, SwapRow, TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item, source_place
from airflow_provider_mzshare.control.catalog.objects.table_specs import spec_at
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable

EMPTY_VERSION = 0
"""A collection is created empty; that is what a read finds before the first commit."""


@dataclass(frozen=True)
class ReadPoint:
    """A table at one tick. Paths are relative to the warehouse."""

    table_id: ItemId
    name: str
    spec: TableSpec
    tick: int
    mz_timestamp: int
    since: int
    upper: int
    data: CollectionId
    errors: CollectionId
    data_path: str
    errors_path: str
    data_version: int
    errors_version: int
    hash_version: int
    place: Place


def table_read_point(
    session: Session, table_id: ItemId, *, as_of_ms: int | None = None, tick: int | None = None
) -> ReadPoint:
    """The last tick at or before ``as_of_ms``, or ``tick`` itself, or the newest the table has."""
    table = get_table_item(session, table_id)
    return _point(session, table, _asked(session, [table], as_of_ms, tick))


def consistent_cut(
    session: Session, table_ids: Sequence[ItemId], *, as_of_ms: int | None = None, tick: int | None = None
) -> Sequence[ReadPoint]:
    """Several tables of one source at the same tick; without a time, the newest that all of them have."""
    tables = [get_table_item(session, table_id) for table_id in table_ids]
    if len({table.source_id for table in tables}) > 1:
        names = ", ".join(table.display for table in tables)
        raise NotReadable(f"{names} come from different sources, which share no ticks", hint="read them one by one")
    if not tables:
        return []
    asked = _asked(session, tables, as_of_ms, tick)
    return [_point(session, table, asked) for table in tables]


@dataclass(frozen=True)
class _Asked:
    """The time of a read. ``said``: where it comes from, unless the caller gave it himself."""

    time: int
    said: str = ""

    def __str__(self) -> str:
        return f"{self.time}{self.said}"


def _asked(session: Session, tables: Sequence[TableItem], as_of_ms: int | None, tick: int | None) -> _Asked:
    for table in tables:
        if table.upper == 0:
            raise NotReadable(
                f"{table.display} has no committed tick yet",
                hint=f"mzshare wait {shlex.quote(table.display)} --for live",
            )
    if tick is not None:
        return _Asked(_time_of_tick(session, tables[0], tick), f", the time of tick {tick}")
    if as_of_ms is not None:
        return _Asked(as_of_ms)
    newest = min(table.upper for table in tables) - 1
    return _Asked(newest, ", the newest time that all of them have" if len(tables) > 1 else ", its newest time")


def _time_of_tick(session: Session, table: TableItem, number: int) -> int:
    row = _last_tick(session, table, TickRow.number == number)
    if row is None or not table.since <= row.mz_timestamp < table.upper:
        first, last = _readable_ticks(session, table)
        raise NotReadable(
            f"{table.display} cannot be read at tick {number}: it has ticks {first} to {last}",
            hint=f"mzshare read {shlex.quote(table.display)} --tick {last}",
        )
    return row.mz_timestamp


def _readable_ticks(session: Session, table: TableItem) -> tuple[int, int]:
    """The first and the last tick that can be read. There is one, because the table has a committed tick."""
    within = TickRow.mz_timestamp.between(table.since, table.upper - 1)
    ends = select(func.min(TickRow.number), func.max(TickRow.number))
    first, last = session.execute(ends.where(TickRow.source_id == table.source_id, within)).one()
    return first, last


def _point(session: Session, table: TableItem, asked: _Asked) -> ReadPoint:
    tick = _tick_at(session, table, asked)
    collections = _collections(session, table, _generation(session, table, tick.mz_timestamp, asked))
    data, errors = collections["data"], collections["errors"]
    for collection in (data, errors):
        _check_final(session, table, collection.id, tick.mz_timestamp, asked)
    return ReadPoint(
        table_id=table.id,
        name=table.display,
        spec=spec_at(session, table.id, tick.number),
        tick=tick.number,
        mz_timestamp=tick.mz_timestamp,
        since=table.since,
        upper=table.upper,
        data=data.id,
        errors=errors.id,
        data_path=data.path,
        errors_path=errors.path,
        data_version=version_at(session, data.id, tick.mz_timestamp),
        errors_version=version_at(session, errors.id, tick.mz_timestamp),
        hash_version=data.hash_version,
        place=source_place(session, table.source_id),
    )


def _tick_at(session: Session, table: TableItem, asked: _Asked) -> TickRow:
    """The newest tick at or before a time that can be read."""
    wrong = f"{table.display} cannot be read as of {asked},"
    readable = f"it can be read from {table.since} to {table.upper - 1}"
    if asked.time < table.since:
        raise NotReadable(f"{wrong} which is gone or never was: {readable}")
    if asked.time >= table.upper:
        heal = hints.heal(table.display, table.reason) if table.status == "stalled" else ""
        raise NotReadable(f"{wrong} which is not final yet: {readable}", hint=heal)
    tick = _last_tick(session, table, TickRow.mz_timestamp <= asked.time)
    if tick is None:
        raise NotReadable(f"{wrong} because no tick is that old: {readable}")
    return tick


def _last_tick(session: Session, table: TableItem, condition: ColumnElement[bool]) -> TickRow | None:
    """Ticks that are only minted count too: a backfill may have written them already, and that is final."""
    found = select(TickRow).where(TickRow.source_id == table.source_id, condition)
    newest = found.order_by(TickRow.mz_timestamp.desc()).limit(1)
    return session.scalar(newest.execution_options(populate_existing=True))


def _generation(session: Session, table: TableItem, time: int, asked: _Asked) -> int:
    """Which generation answers: before a swap's tick the one that was replaced, from it on the new one."""
    query = select(SwapRow).where(SwapRow.table_id == table.id, SwapRow.mz_timestamp > time)
    swap = session.scalar(query.order_by(SwapRow.mz_timestamp).limit(1))
    if swap is None:
        return table.generation
    if time >= swap.upper:
        raise NotReadable(
            f"{table.display} has no data as of {asked}: it stopped at {swap.upper - 1}, and a new generation "
            f"replaced it at {swap.mz_timestamp}",
            hint=f"mzshare read {shlex.quote(table.display)} --as-of {swap.mz_timestamp}",
        )
    return swap.generation


def _collections(session: Session, table: TableItem, generation: int) -> dict[str, CollectionRow]:
    rows = session.scalars(
        select(CollectionRow).where(CollectionRow.table_id == table.id, CollectionRow.generation == generation)
    )
    return {row.role: row for row in rows}


def _check_final(session: Session, table: TableItem, collection_id: CollectionId, time: int, asked: _Asked) -> None:
    """A backfill that heals a table writes several ticks in one commit: no version holds only some of them.

    A ``first_timestamp`` of 0 means unknown: an older app was still running when the catalog was upgraded.
    """
    group = session.execute(
        select(CommitRow.first_timestamp, CommitRow.mz_timestamp)
        .where(CommitRow.collection_id == collection_id, CommitRow.mz_timestamp > time)
        .order_by(CommitRow.mz_timestamp)
        .limit(1)
    ).one_or_none()
    if group is not None and 0 < group.first_timestamp <= time:
        raise NotReadable(
            f"{table.display} cannot be read as of {asked}: the backfill that resumed it wrote the ticks from "
            f"{group.first_timestamp} to {group.mz_timestamp} together",
            hint=f"mzshare read {shlex.quote(table.display)} --as-of {group.mz_timestamp}",
        )


def version_at(session: Session, collection_id: CollectionId, time: int) -> int:
    """The version of the last log entry that carries a tick at or before this time."""
    last = (
        select(CommitRow.version)
        .where(CommitRow.collection_id == collection_id, CommitRow.mz_timestamp <= time)
        .order_by(CommitRow.mz_timestamp.desc())
        .limit(1)
    )
    version = session.scalar(last)
    return EMPTY_VERSION if version is None else version
