"""The change stream of a table: a snapshot to begin with, then what every tick changed, in the order of time.

The catalog says which commits these are, a page at a time; storage reads them. A stream stays with the table that its
name meant when it began.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item
from airflow_provider_mzshare.control.catalog.queries import changes as queries
from airflow_provider_mzshare.control.catalog.queries.changes import StateAt, Stored, TickChanges, TurnChanges
from airflow_provider_mzshare.control.catalog.queries.reads import EMPTY_VERSION, table_read_point
from airflow_provider_mzshare.control.catalog.queries.standings import Standing, standings
from airflow_provider_mzshare.control.lifecycle.check_table import explain
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.control.lifecycle.read_table import READ_ERRORS
from airflow_provider_mzshare.control.sql.script import parse_name
from airflow_provider_mzshare.control.views.readable import find_relation
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.core.ticklog.changes import Bounds, check_bounds, check_range, nearest_cuts
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.changes import (
    Place,
    Wanted,
    changes_of,
    difference,
    gathered,
    snapshot_changes,
)
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.rows import choose_columns
from airflow_provider_mzshare.storage.collections.summing import DIFF
from airflow_provider_mzshare.storage.table_columns import rows_schema

TIMESTAMP, PROGRESSED = "mz_timestamp", "mz_progressed"


@dataclass(frozen=True)
class Asked:
    """What of a table's changes to read. All times are milliseconds.

    :param as_of: with a snapshot, its time; else the first time. None: the newest time that can be read, else the
        first one that changes can be had of.
    :param up_to: only what is before it; None: all that is final now.
    :param progress: also say when there is nothing more before a time.
    """

    as_of: int | None = None
    up_to: int | None = None
    snapshot: bool = True
    progress: bool = False
    columns: Sequence[str] | None = None
    with_system_columns: bool = False

    def is_final(self, upper: int) -> bool:
        """Whether a table that is there up to a time gives all of it already, whatever becomes of the table."""
        return self.up_to is not None and self.up_to <= upper and not (self.snapshot and self.as_of is None)


@contextmanager
def open_changes(
    catalog: Catalog, warehouse: str, name: str, asked: Asked, *, not_live: NotLiveTables = ignore
) -> Iterator[pa.RecordBatchReader]:
    """The changes of a table, a batch at a time: only a part of them is in memory.

    Columns: the time, with ``progress`` whether the row only tells of progress, how often the row comes or goes, and
    the table's own, as its newest tick of these has them. No order within a time.

    :param not_live: what to do about a table that is not live, if the answer goes to what it has got by now.
    """
    with catalog.read() as session:
        table = table_named(session, name)
        if table.upper == 0:
            step = _heal(table) or hints.become_live(table.display)
            raise NotReadable(f"{table.display} has no committed tick yet", hint=step)
        stream = begin(session, warehouse, table, asked)
        unfinished = [] if asked.is_final(table.upper) else not_live_now(session, table)
    if unfinished:
        not_live(unfinished)
    with closing(stream.explained(catalog, stream.batches(catalog, stream.bounds.up_to))) as batches:
        # The first batch is read now: errors show there.
        first = [batch for batch in [next(batches, None)] if batch is not None]
        yield pa.RecordBatchReader.from_batches(stream.schema, chain(first, batches))


def table_named(session: Session, name: str) -> TableItem:
    typed = parse_name(name)
    relation = find_relation(session, (typed.schema, typed.name))
    if not isinstance(relation.item, TableItem):
        raise NotReadable(
            f"{relation.kind} {relation.display} has no change stream: only tables have one",
            hint="read the changes of the tables",
        )
    return relation.item


def not_live_now(session: Session, table: TableItem) -> Sequence[Standing]:
    """The table, if it is not live."""
    return [] if table.status == "live" else list(standings(session, [table.id]).values())


def begin(session: Session, warehouse: str, table: TableItem, asked: Asked) -> Stream:
    """Check the bounds, and fix what the stream begins with. The table has a committed tick."""
    bounds = _bounds(session, table, asked)
    check_range(bounds)
    check_bounds(bounds, queries.gaps_near(session, table, (bounds.lower, bounds.up_to)))
    generation = queries.generation_at(session, table, bounds.lower - 1)
    wanted = wanted_at(session, table, asked, max(bounds.up_to - 1, bounds.as_of))
    first = queries.state_at(session, table, generation, bounds.as_of) if bounds.snapshot else None
    return Stream(warehouse, table.id, bounds, wanted, asked.progress, first, generation)


def wanted_at(session: Session, table: TableItem, asked: Asked, time: int) -> Wanted:
    """Of the columns that the table has at a time."""
    spec, place = queries.columns_at(session, table, time)
    shape = rows_schema(spec, place)
    system = system_names(shape.names)
    columns = choose_columns(shape.names, asked.columns, system, with_system_columns=asked.with_system_columns)
    if taken := [name for name in (TIMESTAMP, PROGRESSED, DIFF) if name in columns]:
        raise NotReadable(
            f"{table.display} has a column {taken[0]} of its own, and its changes have another",
            hint="name the other columns",
        )
    return Wanted(shape, columns)


def schema_of(wanted: Wanted, *, progress: bool) -> pa.Schema:
    """Of a stream."""
    changes = wanted.schema
    progressed = [pa.field(PROGRESSED, pa.bool_())] if progress else []
    own = [changes.field(name) for name in wanted.columns]
    return pa.schema([pa.field(TIMESTAMP, pa.int64()), *progressed, changes.field(DIFF), *own])


def _bounds(session: Session, table: TableItem, asked: Asked) -> Bounds:
    as_of, given = asked.as_of, asked.as_of is not None
    if as_of is None and asked.snapshot:
        as_of = table.upper - 1
    elif as_of is None:
        first = table.since + 1
        as_of = nearest_cuts(first, queries.gaps_near(session, table, [first]))[1]
    up_to = table.upper if asked.up_to is None else asked.up_to
    return Bounds(table.display, as_of, up_to, asked.snapshot, table.since, table.upper, given=given, heal=_heal(table))


def _heal(table: TableItem) -> str:
    return hints.heal(table.display, table.reason) if table.status == "stalled" else ""


@dataclass
class Stream:
    """A stream that has begun.

    :param first: the state of its snapshot. :param generation: the one that answers for the time before it goes on.
    """

    warehouse: str
    table_id: ItemId
    bounds: Bounds
    wanted: Wanted
    progress: bool
    first: StateAt | None
    generation: int

    def __post_init__(self) -> None:
        self.schema = schema_of(self.wanted, progress=self.progress)
        self._next = self.bounds.lower
        self._places: dict[Stored, Place] = {}

    @property
    def reached(self) -> int:
        """All before it has been given."""
        return self._next

    def batches(self, catalog: Catalog, up_to: int) -> Iterator[pa.RecordBatch]:
        """Up to a time that is final."""
        if self.first is not None:
            first, self.first = self.first, None
            yield from self._stamped(self.bounds.as_of, self._snapshot(first))
            yield from self._progressed(self._next)
        while self._next < up_to:
            with catalog.read() as session:
                page = queries.page_of(session, self.table_id, self._next, up_to, generation=self.generation)
            for part in page.parts:
                yield from self._stamped(part.mz_timestamp, self._changes(part))
                self._next = part.mz_timestamp + 1
                if self._next < page.upper:
                    yield from self._progressed(self._next)
            self._next, self.generation = page.upper, page.generation
            yield from self._progressed(self._next)

    def _snapshot(self, state: StateAt) -> Iterator[pa.RecordBatch]:
        at = self._version(state)
        return iter(()) if at is None else snapshot_changes(*at, self.wanted)

    def _changes(self, part: TickChanges | TurnChanges) -> Iterator[pa.RecordBatch]:
        if isinstance(part, TickChanges):
            return changes_of(self._place(part.stored), part.commits, self.wanted)
        return difference(self._version(part.old), self._version(part.new), self.wanted)

    def _version(self, state: StateAt) -> tuple[Place, int] | None:
        """None: its writer died before it created the folder."""
        if state.version == EMPTY_VERSION and not collection_exists(self.warehouse, state.stored.collection_id):
            return None
        return self._place(state.stored), state.version

    def _place(self, stored: Stored) -> Place:
        if stored not in self._places:
            self._places[stored] = Place(self.warehouse, stored.collection_id, stored.path)
        return self._places[stored]

    def _stamped(self, at: int, changes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in gathered(changes):
            *own, diffs = batch.columns
            yield self._batch(at, False, diffs, own)

    def _progressed(self, at: int) -> Iterator[pa.RecordBatch]:
        if self.progress:
            own = [pa.nulls(1, self.wanted.shape.field(name).type) for name in self.wanted.columns]
            yield self._batch(at, True, pa.nulls(1, pa.int64()), own)

    def _batch(self, at: int, progressed: bool, diffs: pa.Array, own: Sequence[pa.Array]) -> pa.RecordBatch:
        times = pa.repeat(pa.scalar(at, pa.int64()), len(diffs))
        told = [pa.repeat(pa.scalar(progressed), len(diffs))] if self.progress else []
        return pa.RecordBatch.from_arrays([times, *told, diffs, *own], schema=self.schema)

    def explained(self, catalog: Catalog, batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        try:
            yield from batches
        except READ_ERRORS as error:
            raise self._why(catalog, error) from error

    def _why(self, catalog: Catalog, error: Exception) -> Exception:
        """Maintenance may have removed what the stream has not come to yet; otherwise something is damaged."""
        with catalog.read() as session:
            table = get_table_item(session, self.table_id)
            reached = self.bounds.as_of if self.first is not None else self._next - 1
            if table.status != "dropped" and reached < table.since:
                return NotReadable(
                    f"{table.display}: its changes from {reached + 1} on are gone: it can be read since {table.since}",
                    hint="begin anew, with a snapshot",
                )
            try:
                points = [table_read_point(session, self.table_id)]
            except NotReadable:
                points = []
        return explain(catalog, self.warehouse, points, error)
