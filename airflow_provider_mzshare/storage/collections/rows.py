"""Rows of a collection at one exact version, as Arrow or in Spark. Which version answers is the catalog's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import abspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.collections.ordered_rows import BATCH_ROWS, Ordered
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.collections.vectors.masked_rows import MaskedFiles, has_vectors, split_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SPARKS_LIMIT = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


def read_batches(
    root: str,
    path: str,
    version: int,
    *,
    shape: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    with_system_columns: bool = False,
    limit: int | None = None,
    ordered: bool = False,
) -> pa.RecordBatchReader:
    """The rows at ``version``, a batch at a time. With ``ordered``, by tick and place; else in no order.

    :param shape: the columns that there are, as ``open_snapshot`` has it.
    """
    snapshot = open_snapshot(root, path, version, shape)
    present = snapshot.schema.names
    wanted = choose_columns(present, columns, system_names(present), with_system_columns=with_system_columns)
    schema = snapshot.schema_of(wanted)
    if ordered:
        return pa.RecordBatchReader.from_batches(schema, Ordered(snapshot, wanted).batches(limit))
    return pa.RecordBatchReader.from_batches(schema, _first(snapshot.scan(wanted), limit))


def read_spark(
    spark: SparkSession,
    root: str,
    path: str,
    version: int,
    *,
    shape: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    with_system_columns: bool = False,
) -> DataFrame:
    """The rows at ``version`` as a DataFrame, read by Spark's own Delta reader."""
    with _of_any_age(spark):
        frame = spark.read.format("delta").option("versionAsOf", version).load(collection_uri(root, path))
    present = shape.names if shape else frame.columns
    wanted = choose_columns(present, columns, system_names(present), with_system_columns=with_system_columns)
    return frame.select(*(_spark_column(frame, name, shape) for name in wanted))


@contextmanager
def _of_any_age(spark: SparkSession) -> Iterator[None]:
    """Spark refuses versions that are older than the table says that removed files stay. Ours stay until ``since``."""
    before = spark.conf.get(SPARKS_LIMIT, None)
    spark.conf.set(SPARKS_LIMIT, "false")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(SPARKS_LIMIT)
        else:
            spark.conf.set(SPARKS_LIMIT, before)


def _spark_column(frame: DataFrame, name: str, shape: pa.Schema | None) -> Column:
    """NULL if the collection does not have the column yet."""
    if shape is None or name in frame.columns:
        return frame[spark_name(name)]
    from pyspark.sql.functions import lit
    from pyspark.sql.pandas.types import from_arrow_type

    return lit(None).cast(from_arrow_type(shape.field(name).type)).alias(name)


def spark_name(name: str) -> str:
    """A column as Spark's SQL names it, whatever is in the name: it may hold dots, quotes and backticks."""
    return f"`{name.replace('`', '``')}`"


@dataclass(frozen=True)
class Snapshot:
    """A collection at one version, open for any number of scans.

    Arrow's threads let go of what they read when they please, even after the interpreter has ended; a buffer of
    Python's then aborts the process (apache/arrow#39862). So files are read by Arrow's own file systems. Where it has
    none for a place, nothing is read ahead, and every scan is read to its end by the caller's thread.

    :param dataset: the files without deletion vectors.
    :param masked: those with deletion vectors, where a collection may have them.
    """

    dataset: pads.Dataset
    native: bool
    masked: MaskedFiles | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    def rows(self, columns: Sequence[str] | None = None, only: pc.Expression | None = None) -> pa.Table:
        """Those that ``only`` admits, in no order; files that cannot hold any are not opened."""
        rows = self.dataset.to_table(columns and list(columns), filter=only, **self._manner)
        if self.masked is None:
            return rows
        return pa.concat_tables([rows, *self.masked.tables(rows.schema.names, only, self._manner)])

    def schema_of(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([self.schema.field(name) for name in columns])

    def scan(
        self, columns: Sequence[str], only: pc.Expression | None = None, *, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The same, one batch at a time; only a few batches are in memory."""
        if self.native:
            ahead = {"batch_readahead": 2, "fragment_readahead": 4, "batch_size": batch_rows}
            yield from self.dataset.to_batches(list(columns), filter=only, **ahead)
            if self.masked is not None:
                yield from self.masked.batches(columns, only, ahead)
            return
        for rows in self._whole_tables(columns, only):
            yield from rows.to_batches(max_chunksize=batch_rows)

    def _whole_tables(self, columns: Sequence[str], only: pc.Expression | None) -> Iterator[pa.Table]:
        for file in self.dataset.get_fragments(filter=only):
            yield file.to_table(self.schema, list(columns), filter=only, **self._manner)
        if self.masked is not None:
            yield from self.masked.tables(columns, only, self._manner)

    @property
    def _manner(self) -> dict[str, Any]:
        if self.native:
            return {}
        return {"use_threads": False, "fragment_scan_options": pads.ParquetFragmentScanOptions(pre_buffer=False)}


def open_snapshot(root: str, path: str, version: int, shape: pa.Schema | None = None) -> Snapshot:
    """:param shape: the columns that there are, by the spec of the tick that is read; those of the collection by
    default. It may have columns that the spec no longer has, and has not got new ones before a row with them: NULL.
    """
    uri = collection_uri(root, path)
    try:
        return snapshot_of(DeltaTable(uri, version=version), uri, shape)
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise NotReadable(
            f"collection {path} has no readable version {version}: {brief(error)}", hint="mzshare status"
        ) from error


def snapshot_of(table: DeltaTable, uri: str, shape: pa.Schema | None = None) -> Snapshot:
    """A table as it is loaded."""
    filesystem = native_filesystem(uri)
    if has_vectors(table):
        files = deltalog.open_filesystem(uri)
        columns = shape or pa.schema(table.schema().to_arrow())
        plain, masked = split_files(files, table.version(), columns, filesystem or files)
        return Snapshot(plain, filesystem is not None, masked)
    dataset = table.to_pyarrow_dataset(filesystem=filesystem)
    return Snapshot(dataset.replace_schema(shape) if shape else dataset, filesystem is not None)


def native_filesystem(uri: str) -> pafs.FileSystem | None:
    """Arrow's own file system for ``uri``; None if Arrow has none for its scheme."""
    path = local_path(uri)
    if path is not None:
        return pafs.SubTreeFileSystem(abspath(path), pafs.LocalFileSystem())
    try:
        filesystem, path = pafs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return pafs.SubTreeFileSystem(path, filesystem)


def choose_columns(
    present: Sequence[str],
    asked: Sequence[str] | None,
    system: Sequence[str] = (),
    *,
    with_system_columns: bool = False,
) -> list[str]:
    """What was asked for, in that order; ``system`` columns only by name or by ``with_system_columns``."""
    if asked is None:
        return [name for name in present if with_system_columns or name not in system]
    unknown = [name for name in asked if name not in present]
    if unknown:
        raise NotReadable(f"there is no column {', '.join(unknown)}; there are: {', '.join(present)}")
    if len({*asked}) < len(asked):
        twice = next(name for number, name in enumerate(asked) if name in asked[:number])
        raise NotReadable(f"column {twice} is asked for twice")
    added = [name for name in system if with_system_columns and name not in asked]
    return [*asked, *added]


def _first(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        if left is None:
            yield batch
        elif left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows
        if left is not None and left <= 0:
            return
