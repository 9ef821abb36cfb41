"""Reads a table, view or progress at a time: the catalog says which versions to read; storage or Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import source_place
from airflow_provider_mzshare.control.catalog.queries.reads import (
    EMPTY_VERSION,
    ReadPoint,
    consistent_cut,
    table_read_point,
)
from airflow_provider_mzshare.control.catalog.queries.standings import standings
from airflow_provider_mzshare.control.lifecycle.check_table import explain
from airflow_provider_mzshare.control.lifecycle.liveness import NotLiveTables, ignore
from airflow_provider_mzshare.control.sql.script import parse_name
from airflow_provider_mzshare.control.views.read_view import ReadPlan, open_plan, plan_view, run_plan
from airflow_provider_mzshare.control.views.readable import Relation, find_relation
from airflow_provider_mzshare.control.views.source_progress import Progress, progress_of
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.rows import choose_columns, read_batches, read_spark
from airflow_provider_mzshare.storage.fanout.plan import errors_schema
from airflow_provider_mzshare.storage.table_columns import rows_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Query:
    """What of a table to read. ``ordered``: by tick and place."""

    columns: Sequence[str] | None = None
    errors: bool = False
    with_system_columns: bool = False
    limit: int | None = None
    ordered: bool = False


EVERYTHING = Query()


@dataclass(frozen=True)
class Unread:
    """A table that nothing has been written to: it has columns and no rows."""

    spec: TableSpec
    place: Place

    def rows(self, query: Query) -> pa.Table:
        schema = _shape(self.spec, self.place, query)
        system = system_names(schema.names)
        wanted = choose_columns(schema.names, query.columns, system, with_system_columns=query.with_system_columns)
        return schema.empty_table().select(wanted)


_SPARKS_MOST = 2**31 - 1
"""To so many rows Spark can limit a frame."""
READ_ERRORS = (NotReadable, OSError, DeltaError, pa.ArrowException)
"""Errors of a read when files or versions are not as the catalog says."""


def read_table(
    catalog: Catalog,
    warehouse: str,
    name: str,
    query: Query = EVERYTHING,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
    jars: Path | None = None,
    not_live: NotLiveTables = ignore,
) -> pa.Table:
    """The rows of a table, a view or a source's progress now, or as of a time or tick.

    A table that nothing has been written to yet is empty. Rows of a view are in the view's own order.

    :param jars: where Spark's are, for views; by default in the usual place.
    :param not_live: what to do about tables that are not live, when they are read as they are now.
    """
    when: dict[str, Any] = {"as_of_ms": as_of_ms, "tick": tick, "not_live": not_live}
    with open_table(catalog, warehouse, name, query, jars=jars, **when) as rows:
        return rows.read_all()


@contextmanager
def open_table(
    catalog: Catalog,
    warehouse: str,
    name: str,
    query: Query = EVERYTHING,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
    jars: Path | None = None,
    not_live: NotLiveTables = ignore,
) -> Iterator[pa.RecordBatchReader]:
    """The same, one batch at a time: only a part of the rows is in memory."""
    found = _Found(catalog, name, as_of_ms, tick)
    found.tell(not_live)
    with ExitStack() as opened:
        try:
            rows, first = _begun(opened.enter_context(found.open(warehouse, query, jars)))
        except READ_ERRORS as error:
            # Maybe a swap gave the name to another table after the look, and the first table was dropped.
            again = _Found(catalog, name, as_of_ms, tick)
            if again.relation.item.id == found.relation.item.id:
                raise explain(catalog, warehouse, found.points, error) from error
            found = again
            rows, first = _begun(opened.enter_context(found.open(warehouse, query, jars)))
        explained = _explained(rows, lambda error: explain(catalog, warehouse, found.points, error))
        yield pa.RecordBatchReader.from_batches(rows.schema, chain(first, explained))


def _begun(rows: pa.RecordBatchReader) -> tuple[pa.RecordBatchReader, list[pa.RecordBatch]]:
    """Read the first batch now: errors show there."""
    first = next(iter(rows), None)
    return rows, [] if first is None else [first]


def _explained(rows: pa.RecordBatchReader, tell: Callable[[Exception], Exception]) -> Iterator[pa.RecordBatch]:
    try:
        yield from rows
    except READ_ERRORS as error:
        raise tell(error) from error


def count_rows(
    catalog: Catalog,
    warehouse: str,
    name: str,
    *,
    errors: bool = False,
    as_of_ms: int | None = None,
    tick: int | None = None,
    jars: Path | None = None,
    not_live: NotLiveTables = ignore,
) -> int:
    found = _Found(catalog, name, as_of_ms, tick)
    found.tell(not_live)
    if isinstance(found.where, ReadPlan):
        _check_plain(found.relation, Query(errors=errors))
        return run_plan(found.where, warehouse, lambda frame: int(frame.count()), jars=jars)
    columns = None if isinstance(found.where, Progress) else [TICK]
    query = Query(columns=columns, errors=errors)
    with open_table(catalog, warehouse, name, query, as_of_ms=as_of_ms, tick=tick, jars=jars) as rows:
        return sum(batch.num_rows for batch in rows)


class _Found:
    """What a name means now, and where its rows are; both from one snapshot of the catalog."""

    def __init__(self, catalog: Catalog, name: str, as_of_ms: int | None, tick: int | None) -> None:
        self.where: ReadPoint | Unread | Progress | ReadPlan
        with catalog.read() as session:
            self.relation = relation = find_relation(session, _pair(name))
            if isinstance(relation.item, items.TableItem):
                if relation.item.upper == 0 and as_of_ms is None and tick is None:
                    self.where = Unread(relation.item.spec, source_place(session, relation.item.source_id))
                else:
                    self.where = table_read_point(session, relation.item.id, as_of_ms=as_of_ms, tick=tick)
            elif isinstance(relation.item, items.SourceItem):
                self.where = progress_of(session, relation.item, as_of_ms=as_of_ms, tick=tick)
            else:
                self.where = plan_view(session, relation.id, as_of_ms=as_of_ms, tick=tick)
            stand = {} if as_of_ms is not None or tick is not None else standings(session, self._tables())
            self.not_live = [table for table in stand.values() if not table.is_live]

    def _tables(self) -> Sequence[ItemId]:
        if isinstance(self.where, ReadPlan):
            return self.where.table_ids
        return [self.relation.item.id] if isinstance(self.relation.item, items.TableItem) else []

    def tell(self, not_live: NotLiveTables) -> None:
        if self.not_live:
            not_live(self.not_live)

    @property
    def points(self) -> Sequence[ReadPoint]:
        """The tables that are read, with their versions."""
        if isinstance(self.where, ReadPlan):
            return [point for point in self.where.tables.values() if isinstance(point, ReadPoint)]
        return [self.where] if isinstance(self.where, ReadPoint) else []

    @contextmanager
    def open(self, warehouse: str, query: Query, jars: Path | None) -> Iterator[pa.RecordBatchReader]:
        if isinstance(self.where, Unread):
            yield self.where.rows(query).to_reader()
            return
        if isinstance(self.where, ReadPoint):
            yield _read(warehouse, self.where, query)
            return
        _check_plain(self.relation, query)
        if isinstance(self.where, Progress):
            rows = self.where.table()
            chosen = choose_columns(rows.schema.names, query.columns)
            yield rows.select(chosen).slice(0, query.limit).to_reader()
            return
        with open_plan(self.where, warehouse, lambda frame: _of_frame(frame, query), jars=jars) as found:
            yield found


def _check_plain(relation: Relation, query: Query) -> None:
    if query.errors:
        raise NotReadable(
            f"{relation.kind} {relation.display} has no errors of its own", hint="read the errors of the tables"
        )
    if query.with_system_columns:
        raise NotReadable(f"{relation.kind} {relation.display} has no system columns", hint="read the tables")


def _of_frame(frame: DataFrame, query: Query) -> DataFrame:
    """The chosen columns of a view, which has no system columns."""
    wanted = choose_columns(frame.columns, query.columns)
    chosen = frame.select(*(frame["`" + name.replace("`", "``") + "`"] for name in wanted))
    if query.limit is not None and query.limit > _SPARKS_MOST:
        raise NotReadable(f"a view can be limited to {_SPARKS_MOST:,} rows at most", hint="leave the limit out")
    return chosen if query.limit is None else chosen.limit(query.limit)


def read_cut(
    catalog: Catalog,
    warehouse: str,
    names: Sequence[str],
    query: Query = EVERYTHING,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
) -> Mapping[str, pa.Table]:
    """Several tables of one source at the same tick: rows of a record are in all of them or in none."""
    with catalog.read() as session:
        ids = [items.find_table(session, _pair(name)).id for name in names]
        points = consistent_cut(session, ids, as_of_ms=as_of_ms, tick=tick)
    try:
        return {name: _read(warehouse, point, query).read_all() for name, point in zip(names, points, strict=True)}
    except READ_ERRORS as error:
        raise explain(catalog, warehouse, points, error) from error


def read_frame(
    spark: SparkSession,
    catalog: Catalog,
    warehouse: str,
    name: str,
    query: Query = EVERYTHING,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
) -> DataFrame:
    """The same as a DataFrame of Spark, in no order."""
    where = _Found(catalog, name, as_of_ms, tick).where
    if isinstance(where, ReadPlan):
        return run_plan(where, warehouse, lambda frame: _of_frame(frame, query), jars=None, spark=spark)
    if not isinstance(where, ReadPoint):
        return spark.createDataFrame(where.table() if isinstance(where, Progress) else where.rows(query))
    point = where
    path, version = _place(point, query)
    frame = read_spark(
        spark,
        warehouse,
        path,
        version,
        shape=_shape(point.spec, point.place, query),
        columns=query.columns,
        with_system_columns=query.with_system_columns,
    )
    return frame if query.limit is None else frame.limit(query.limit)


def _read(warehouse: str, point: ReadPoint, query: Query) -> pa.RecordBatchReader:
    path, version = _place(point, query)
    if version == EMPTY_VERSION and not collection_exists(warehouse, CollectionId(path)):
        return Unread(point.spec, point.place).rows(query).to_reader()  # its writer died before it created the folder
    return read_batches(
        warehouse,
        path,
        version,
        shape=_shape(point.spec, point.place, query),
        columns=query.columns,
        with_system_columns=query.with_system_columns,
        limit=query.limit,
        ordered=query.ordered,
    )


def _place(point: ReadPoint, query: Query) -> tuple[str, int]:
    return (point.errors_path, point.errors_version) if query.errors else (point.data_path, point.data_version)


def _shape(spec: TableSpec, place: Place, query: Query) -> pa.Schema:
    """The columns of a table, or of its errors, by its spec."""
    if query.errors:
        return errors_schema(place)
    return rows_schema(spec, place)


def _pair(text: str) -> items.Name:
    name = parse_name(text)
    return (name.schema, name.name)
