"""Collections for tests: small ticks written the way the fan-out does, and what a read of them must give."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import CommitResult, FileWritten, NewFiles, commit_tick
from airflow_provider_mzshare.storage.collections.rows import read_batches
from airflow_provider_mzshare.storage.fanout.plan import bounded_columns

NAME = CollectionId("u1-g1-data-0a1b2c3d")
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("text", pa.string()),
        ("_mz_tick", pa.int64()),
        ("_mz_partition", pa.int32()),
        ("_mz_offset", pa.int64()),
    ]
)
ROWS = 3
"""Rows of every tick."""


def new_collection(root: Path, name: CollectionId = NAME, schema: pa.Schema = SCHEMA) -> Collection:
    create_collection(str(root), name, schema)
    return Collection.open(str(root), name)


def tick_rows(tick: int) -> list[dict[str, object]]:
    """What tick number ``tick`` holds: the same for whoever writes it."""
    offsets = range((tick - 1) * ROWS, tick * ROWS)
    return [
        {"n": offset, "text": f"row {offset}", "_mz_tick": tick, "_mz_partition": offset % 2, "_mz_offset": offset}
        for offset in offsets
    ]


def rows_of(ticks: Sequence[int]) -> list[dict[str, object]]:
    return sorted((row for tick in ticks for row in tick_rows(tick)), key=_order)


def write_file(collection: Collection, table: pa.Table, *, written_at: float | None = None) -> FileWritten:
    """A Parquet file in the collection's folder that no commit names yet."""
    name = f"part-{uuid.uuid4()}.parquet"
    path = Path(collection.uri, name)
    pq.write_table(table, path)
    names = bounded_columns(table.schema)
    stats = {
        "numRecords": table.num_rows,
        "minValues": {name: min(table.column(name).to_pylist()) for name in names},
        "maxValues": {name: max(table.column(name).to_pylist()) for name in names},
        "nullCount": dict.fromkeys(names, 0),
    }
    return FileWritten(name, path.stat().st_size, json.dumps(stats), written_at or time.time())


def tick_file(collection: Collection, tick: int, *, written_at: float | None = None) -> FileWritten:
    return write_file(collection, pa.Table.from_pylist(tick_rows(tick), SCHEMA), written_at=written_at)


def time_of(tick: int) -> int:
    return 1_700_000_000_000 + tick * 1000


def write_tick(
    collection: Collection,
    tick: int,
    *,
    files: Sequence[FileWritten] | None = None,
    knows: Callable[[int], bool] = lambda _: True,
    force: bool = False,
    repaired: bool = False,
    job: str = "ingest-1",
) -> CommitResult:
    """Execute a tick as a holder does: write its file, then commit it."""
    return commit_tick(
        collection,
        mz_timestamp=time_of(tick),
        content=NewFiles([tick_file(collection, tick)] if files is None else files),
        metadata={"mz_tick": str(tick), "mz_job": job, "mz_source": "u0", "mz_rows": str(ROWS)},
        knows=knows,
        force=force,
        repaired=repaired,
    )


def read_rows(collection: Collection, version: int | None = None) -> list[dict[str, object]]:
    """All rows at a version (the newest, read anew, by default), in the order of their positions."""
    if version is None:
        collection.refresh()
        version = collection.delta_version
    table = read_arrow(collection.root, collection.collection_id, version, with_system_columns=True)
    return sorted(table.to_pylist(), key=_order)


def _order(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in system_names(list(row)))


def read_arrow(root: str, path: str, version: int, **wanted: Any) -> pa.Table:
    """All rows at a version, as ``read_batches`` gives them."""
    return read_batches(root, path, version, **wanted).read_all()
