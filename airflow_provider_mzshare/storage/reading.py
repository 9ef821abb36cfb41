"""Rows of a collection at one exact version, as Arrow or in Spark. Which version answers is the catalog's business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections import collection_uri
from airflow_provider_mzshare.types.schema import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYSTEM_NAMES = tuple(name for name, _ in SYSTEM_COLUMNS)
_ORDER = [(name, "ascending") for name in SYSTEM_NAMES]


def read_arrow(
    root: str,
    path: str,
    version: int,
    *,
    columns: Sequence[str] | None = None,
    with_system_columns: bool = False,
    limit: int | None = None,
    ordered: bool = False,
) -> pa.Table:
    """The rows at ``version``. With ``ordered``, by tick, partition and offset; else in no order at all."""
    dataset = open_dataset(root, path, version)
    wanted = choose_columns(dataset.schema.names, columns, with_system_columns=with_system_columns)
    if not ordered:
        return dataset.to_table(wanted) if limit is None else dataset.head(limit, columns=wanted)
    scanned = [*wanted, *(name for name in SYSTEM_NAMES if name not in wanted)]
    only = _first_rows(dataset, limit) if limit is not None else None
    return dataset.to_table(scanned, filter=only).sort_by(_ORDER).slice(0, limit).select(wanted)


def read_batches(
    root: str, path: str, version: int, *, columns: Sequence[str] | None = None, with_system_columns: bool = False
) -> pa.RecordBatchReader:
    """The rows at ``version``, a batch at a time, in no order: for tables larger than memory."""
    dataset = open_dataset(root, path, version)
    wanted = choose_columns(dataset.schema.names, columns, with_system_columns=with_system_columns)
    return dataset.scanner(wanted).to_reader()


def read_spark(
    spark: SparkSession,
    root: str,
    path: str,
    version: int,
    *,
    columns: Sequence[str] | None = None,
    with_system_columns: bool = False,
) -> DataFrame:
    """The rows at ``version`` as a DataFrame, read by Spark's own Delta reader."""
    frame = spark.read.format("delta").option("versionAsOf", version).load(collection_uri(root, path))
    wanted = choose_columns(frame.columns, columns, with_system_columns=with_system_columns)
    return frame.select(*(frame[f"`{name}`"] for name in wanted))


def open_dataset(root: str, path: str, version: int) -> pads.Dataset:
    try:
        return DeltaTable(collection_uri(root, path), version=version).to_pyarrow_dataset()
    except (DeltaError, OSError) as error:
        raise NotReadable(
            f"collection {path} has no readable version {version}: {error}", hint="mzshare status"
        ) from error


def choose_columns(present: Sequence[str], asked: Sequence[str] | None, *, with_system_columns: bool) -> list[str]:
    """What was asked for, in that order; system columns only by name or by ``with_system_columns``."""
    if asked is None:
        return [name for name in present if with_system_columns or name not in SYSTEM_NAMES]
    unknown = [name for name in asked if name not in present]
    if unknown:
        raise NotReadable(f"there is no column {', '.join(unknown)}; there are: {', '.join(present)}")
    added = [name for name in SYSTEM_NAMES if with_system_columns and name not in asked]
    return [*asked, *added]


def _first_rows(dataset: pads.Dataset, limit: int) -> pc.Expression:
    """A filter for the first ``limit`` rows, found from the system columns alone: they cost next to nothing."""
    keys = dataset.to_table(list(SYSTEM_NAMES))
    if limit <= 0 or keys.num_rows == 0:
        return pc.scalar(limit > 0)
    last = keys.take(pc.select_k_unstable(keys, min(limit, keys.num_rows), sort_keys=_ORDER)[-1:]).to_pylist()[0]
    tick, partition, offset = (pc.field(name) for name in SYSTEM_NAMES)
    before_tick, in_tick = tick < last["_mz_tick"], tick == last["_mz_tick"]
    before_partition, in_partition = partition < last["_mz_partition"], partition == last["_mz_partition"]
    return before_tick | (in_tick & (before_partition | (in_partition & (offset <= last["_mz_offset"]))))
