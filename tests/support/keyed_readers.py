"""The readers that people have, over a keyed collection with deletion vectors: its rows, and what its commits changed.

Every reader finds files and vectors by itself, from the table's folder alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import duckdb_extension_delta
import polars
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from airflow_provider_mzshare.storage.collections.rows import open_snapshot, read_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
"""DuckDB would fetch it from a site of its own; it checks the signature wherever the file comes from."""
CHANGES = ("_commit_version", "_change_type")

Rows = Counter[tuple[Any, ...]]
Read = Callable[[int | None], Rows]
"""The rows as of a version, or now."""
Look = Callable[[], Rows]
Changed = Callable[[int, int], Rows]
"""The changes of the commits from a version up to another: version, kind, and the row."""


def rows_of(table: pa.Table, columns: Iterable[str]) -> Rows:
    """Counted, because a reader that does not see a vector has a row twice."""
    return Counter(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def readers(path: Path, columns: Iterable[str], spark: SparkSession | None = None) -> Mapping[str, Read]:
    """:param path: the folder of the collection."""
    names = tuple(columns)
    ways: dict[str, Callable[[int | None], pa.Table]] = {
        "mzshare": lambda version: _ours(path, version, ordered=False),
        "mzshare, ordered": lambda version: _ours(path, version, ordered=True),
        "delta-rs": lambda version: _query(DeltaTable(str(path), version=version), "SELECT * FROM t"),
        "Polars": lambda version: polars.scan_delta(str(path), version=version).select(names).collect().to_arrow(),
        "DuckDB": lambda version: _duckdb(path, version),
    }
    if spark is not None:
        ways["Spark"] = lambda version: _spark(spark, path, version).select(*names).toArrow()
    return {name: _counted(way, names) for name, way in ways.items()}


def check_refused(path: Path, version: int | None, says: str, spark: SparkSession | None = None) -> None:
    """No reader gives anything as of this version, and each says why."""
    for name, read in readers(path, ("key",), spark).items():
        try:
            rows = read(version)
        except Exception as error:
            if says not in str(error):
                raise AssertionError(f"{name} says {error}") from error
        else:
            raise AssertionError(f"{name} gave {rows}")


def feeds(path: Path, columns: Iterable[str], spark: SparkSession | None = None) -> Mapping[str, Changed]:
    names = (*CHANGES, *columns)
    ways: dict[str, Callable[[int, int], pa.Table]] = {
        "delta-rs": lambda first, last: pa.table(
            DeltaTable(str(path)).load_cdf(starting_version=first, ending_version=last).read_all()
        )
    }
    if spark is not None:
        ways["Spark"] = lambda first, last: (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", first)
            .option("endingVersion", last)
            .load(str(path))
            .select(*names)
            .toArrow()
        )
    return {name: _between(way, names) for name, way in ways.items()}


def held(path: Path, columns: Iterable[str], version: int, spark: SparkSession | None = None) -> Mapping[str, Look]:
    """Readers that were opened as of a version, and read when they are asked."""
    names = tuple(columns)
    root, table = str(path.parent), DeltaTable(str(path), version=version)
    snapshot, frame = open_snapshot(root, path.name, version), polars.scan_delta(str(path), version=version)
    # A name of its own: under one that is replaced, DuckDB goes on with the version that it had.
    attached = f"held_{path.parent.name}_{version}".replace("-", "_")
    duckdb_connection().execute(f"""ATTACH '{path}' AS "{attached}" (TYPE delta, VERSION {version})""")
    ways: dict[str, Callable[[], pa.Table]] = {
        "mzshare": lambda: snapshot.rows(names),
        "delta-rs": lambda: _query(table, "SELECT * FROM t"),
        "Polars": lambda: frame.select(names).collect().to_arrow(),
        "DuckDB": lambda: duckdb_connection().sql(f'SELECT * FROM "{attached}"').to_arrow_table(),
    }
    if spark is not None:
        rows = _spark(spark, path, version).select(*names)
        ways["Spark"] = rows.toArrow
    return {name: partial(_look, way, names) for name, way in ways.items()}


def _look(way: Callable[[], pa.Table], names: tuple[str, ...]) -> Rows:
    return rows_of(way(), names)


def _counted(way: Callable[[int | None], pa.Table], names: tuple[str, ...]) -> Read:
    return lambda version: rows_of(way(version), names)


def _between(way: Callable[[int, int], pa.Table], names: tuple[str, ...]) -> Changed:
    return lambda first, last: rows_of(way(first, last), names)


def _ours(path: Path, version: int | None, *, ordered: bool) -> pa.Table:
    at = DeltaTable(str(path)).version() if version is None else version
    return read_batches(str(path.parent), path.name, at, with_system_columns=True, ordered=ordered).read_all()


def _query(table: DeltaTable, query: str) -> pa.Table:
    builder = QueryBuilder()
    # As docs/reference/reading.md says: in several threads it takes a vector for one of other rows.
    builder.execute("SET datafusion.execution.target_partitions = 1").read_all()
    return pa.table(builder.register("t", table).execute(query).read_all())


@cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """One for all reads: it takes longer to load the extension than to read a small table."""
    connection = duckdb.connect(config={"threads": 2})
    connection.load_extension(str(EXTENSION))
    return connection


def _duckdb(path: Path, version: int | None) -> pa.Table:
    at = "" if version is None else f", version = {version}"
    # A cursor has its own transaction, so that a read that fails spoils none after it.
    with duckdb_connection().cursor() as cursor:
        return cursor.sql(f"SELECT * FROM delta_scan('{path}'{at})").to_arrow_table()


def _spark(spark: SparkSession, path: Path, version: int | None) -> Any:
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(str(path))
