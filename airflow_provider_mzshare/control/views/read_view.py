"""Reads a query at one consistent tick of each source: the catalog says which versions to read, Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute import querying
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.queries.reads import EMPTY_VERSION, ReadPoint, consistent_cut
from airflow_provider_mzshare.control.views import source_progress
from airflow_provider_mzshare.control.views.columns import Typed, outputs
from airflow_provider_mzshare.control.views.queries import check_admitted
from airflow_provider_mzshare.control.views.readable import Relation, get_relation
from airflow_provider_mzshare.control.views.resolving import Resolved, stored
from airflow_provider_mzshare.control.views.translating import to_spark
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.collection import collection_exists
from airflow_provider_mzshare.storage.collections.rows import read_spark
from airflow_provider_mzshare.storage.table_columns import user_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


@dataclass
class ReadPlan:
    """All that a query needs, from one snapshot of the catalog: so its answer does not depend on when it runs."""

    query: str = ""
    """Spark's SQL."""
    columns: tuple[str, ...] = ()
    tables: dict[ItemId, ReadPoint | TableSpec] = field(default_factory=dict)
    """A spec for a table that nothing has been written to yet."""
    progress: dict[ItemId, source_progress.Progress] = field(default_factory=dict)
    views: dict[ItemId, str] = field(default_factory=dict)
    """In order: each view comes after the views that it reads."""
    ticks: dict[ItemId, int] = field(default_factory=dict)
    """By source: the one tick that is read."""
    table_ids: list[ItemId] = field(default_factory=list)
    """All tables that are read, also those that nothing has been written to yet."""

    def loads(self, warehouse: str) -> Mapping[str, querying.Load]:
        found: dict[str, querying.Load] = {}
        for table_id, point in self.tables.items():
            found[table_id] = _load_table(warehouse, point)
        for relation_id, at in self.progress.items():
            found[relation_id] = _load_arrow(at.table())
        for view_id, query in self.views.items():
            found[view_id] = _load_query(query)
        return found


def plan_view(session: Session, view_id: ItemId, *, as_of_ms: int | None = None, tick: int | None = None) -> ReadPlan:
    view = lookup.get_item(session, view_id)
    assert isinstance(view, lookup.ViewItem)
    return plan_query(session, stored(view.query), as_of_ms=as_of_ms, tick=tick)


def plan_query(session: Session, query: Resolved, *, as_of_ms: int | None = None, tick: int | None = None) -> ReadPlan:
    """:param query: checked already: what it reads is there."""
    plan, typed = ReadPlan(), Typed(session)
    found: dict[ItemId, Relation] = {}
    check_admitted(query.tree)
    _collect(session, query.reads, typed, found, plan)
    tree = typed.qualified(query)
    plan.query, plan.columns = to_spark(tree), tuple(outputs(tree))
    by_source: dict[ItemId, list[Relation]] = {}
    for relation in found.values():
        if (source_id := _source_of(relation)) is not None:
            by_source.setdefault(source_id, []).append(relation)
    if len(by_source) > 1 and (as_of_ms is not None or tick is not None):
        names = ", ".join(lookup.get_source_item(session, source_id).display for source_id in by_source)
        raise NotReadable(
            f"a time or a tick belongs to one source, but this query reads several: {names}",
            hint="leave the time or tick out: mzshare read NAME",
        )
    for source_id, relations in by_source.items():
        _cut(session, plan, source_id, relations, as_of_ms, tick)
    return plan


def _collect(
    session: Session, reads: Sequence[ItemId], typed: Typed, found: dict[ItemId, Relation], plan: ReadPlan
) -> None:
    for item_id in reads:
        if item_id in found:
            continue
        found[item_id] = relation = get_relation(session, item_id)
        if isinstance(relation.item, lookup.ViewItem):
            query = stored(relation.item.query)
            check_admitted(query.tree, f"view {relation.display}")
            _collect(session, query.reads, typed, found, plan)
            plan.views[item_id] = to_spark(typed.qualified(query))


def _source_of(relation: Relation) -> ItemId | None:
    if isinstance(relation.item, lookup.TableItem):
        return relation.item.source_id
    return relation.item.id if isinstance(relation.item, lookup.SourceItem) else None


def _cut(
    session: Session,
    plan: ReadPlan,
    source_id: ItemId,
    relations: Sequence[Relation],
    as_of_ms: int | None,
    tick: int | None,
) -> None:
    """One tick for all tables of a source: the newest tick that all of them have, or the tick that was asked for."""
    tables = {r.id: r.item for r in relations if isinstance(r.item, lookup.TableItem)}
    plan.table_ids += [table.id for table in tables.values()]
    unwritten = bool(tables) and as_of_ms is None and tick is None and not any(t.upper for t in tables.values())
    if unwritten:
        plan.tables |= {relation_id: table.spec for relation_id, table in tables.items()}
        tables = {}
    points = consistent_cut(session, [table.id for table in tables.values()], as_of_ms=as_of_ms, tick=tick)
    plan.tables |= dict(zip(tables, points, strict=True))
    at = source_progress.EMPTY
    if points:
        source = lookup.get_source_item(session, source_id)
        at = source_progress.progress_of(session, source, tick=points[0].tick, is_final=True)
    elif not unwritten:
        source = lookup.get_source_item(session, source_id)
        at = source_progress.progress_of(session, source, as_of_ms=as_of_ms, tick=tick)
    plan.ticks[source_id] = at.tick
    plan.progress |= {relation.id: at for relation in relations if relation.kind == "progress"}


# ── running it ────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_plan(
    plan: ReadPlan,
    warehouse: str,
    take: Callable[[DataFrame], T],
    *,
    jars: Path | None,
    spark: SparkSession | None = None,
) -> T:
    """:param spark: a session to use; without one, one is opened for this call."""
    if spark is not None:
        return take(querying.answer(spark, plan.query, plan.loads(warehouse)))
    return querying.ask(plan.query, plan.loads(warehouse), take, jar_folder=jars)


@contextmanager
def open_plan(
    plan: ReadPlan, warehouse: str, take: Callable[[DataFrame], DataFrame], *, jars: Path | None
) -> Iterator[pa.RecordBatchReader]:
    """The answer a batch at a time, in its own order, while the block lasts."""
    with querying.a_session(jars) as spark:
        yield querying.batches(take(querying.answer(spark, plan.query, plan.loads(warehouse))))


def _load_table(warehouse: str, point: ReadPoint | TableSpec) -> querying.Load:
    if isinstance(point, TableSpec):
        return _load_arrow(_nothing(point))
    if point.data_version == EMPTY_VERSION and not collection_exists(warehouse, CollectionId(point.data_path)):
        return _load_arrow(_nothing(point.spec))  # it is a member, but its writer died before it created the folder
    shape = _shape(point.spec)
    return lambda spark: read_spark(spark, warehouse, point.data_path, point.data_version, shape=shape)


def _shape(spec: TableSpec) -> pa.Schema:
    return arrow_schema(tuple((column.name, column.type) for column in user_columns(spec)))


def _nothing(spec: TableSpec) -> pa.Table:
    return _shape(spec).empty_table()


def _load_arrow(table: pa.Table) -> querying.Load:
    return lambda spark: spark.createDataFrame(table)


def _load_query(query: str) -> querying.Load:
    return lambda spark: spark.sql(query)


def describe(session: Session, plan: ReadPlan) -> dict[str, int]:
    """The tick that was read of each source, by the source's name."""
    names = {source_id: display_name(lookup.get_source_item(session, source_id).name) for source_id in plan.ticks}
    return {names[source_id]: tick for source_id, tick in plan.ticks.items()}
