"""Reads tables by name at a time: the catalog says which versions answer, storage brings the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.reads import (
    EMPTY_VERSION,
    ReadPoint,
    consistent_cut,
    table_read_point,
)
from airflow_provider_mzshare.control.sql.statements import parse_name
from airflow_provider_mzshare.storage.collections import collection_exists
from airflow_provider_mzshare.storage.fanout.plan import arrow_schema, errors_schema
from airflow_provider_mzshare.storage.reading import choose_columns, read_arrow, read_spark
from airflow_provider_mzshare.types.ids import CollectionId
from airflow_provider_mzshare.types.specs import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Query:
    """What of a table to read. ``ordered``: by tick, partition and offset."""

    columns: Sequence[str] | None = None
    errors: bool = False
    with_system_columns: bool = False
    limit: int | None = None
    ordered: bool = False


EVERYTHING = Query()


def read_table(
    catalog: Catalog,
    warehouse: str,
    name: str,
    query: Query = EVERYTHING,
    *,
    as_of_ms: int | None = None,
    tick: int | None = None,
) -> pa.Table:
    """The rows of a table now, or as of a time or tick. A table that nothing has been written to yet is empty."""
    with catalog.read() as session:
        table = items.find_table(session, _pair(name))
        if table.upper == 0 and as_of_ms is None and tick is None:
            return _empty(table.spec, query)
        point = table_read_point(session, table.id, as_of_ms=as_of_ms, tick=tick)
    return _read(warehouse, point, query)


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
    return {name: _read(warehouse, point, query) for name, point in zip(names, points, strict=True)}


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
    with catalog.read() as session:
        table = items.find_table(session, _pair(name))
        point = table_read_point(session, table.id, as_of_ms=as_of_ms, tick=tick)
    path, version = _place(point, query)
    frame = read_spark(
        spark, warehouse, path, version, columns=query.columns, with_system_columns=query.with_system_columns
    )
    return frame if query.limit is None else frame.limit(query.limit)


def _read(warehouse: str, point: ReadPoint, query: Query) -> pa.Table:
    path, version = _place(point, query)
    if version == EMPTY_VERSION and not collection_exists(warehouse, CollectionId(path)):
        return _empty(point.spec, query)  # it joined, and its writer died before it made the folder
    return read_arrow(
        warehouse,
        path,
        version,
        columns=query.columns,
        with_system_columns=query.with_system_columns,
        limit=query.limit,
        ordered=query.ordered,
    )


def _place(point: ReadPoint, query: Query) -> tuple[str, int]:
    return (point.errors_path, point.errors_version) if query.errors else (point.data_path, point.data_version)


def _empty(spec: TableSpec, query: Query) -> pa.Table:
    columns = tuple((column.name, column.type) for column in spec.all_columns())
    schema = errors_schema() if query.errors else arrow_schema(columns)
    wanted = choose_columns(schema.names, query.columns, with_system_columns=query.with_system_columns)
    return schema.empty_table().select(wanted)


def _pair(text: str) -> items.Name:
    name = parse_name(text)
    return (name.schema, name.name)
