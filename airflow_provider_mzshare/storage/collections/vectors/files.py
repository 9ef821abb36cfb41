"""Writes and reads the data files of a collection whose rows change: whole tables, in row order. Commits nothing."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.collections.rows import native_filesystem
from airflow_provider_mzshare.storage.collections.vectors.entries import now_ms
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile
from airflow_provider_mzshare.storage.fanout.plan import bounded_columns

CHANGES = "_change_data"
BATCH_ROWS = 262_144
"""As many as the mirror keeps together, so that they need not be gathered."""
OPTIONS = {"compression": "zstd", "compression_level": 1, "store_schema": False}
"""As the pass has them."""


def write_rows(uri: str, filesystem: pafs.FileSystem, rows: pa.Table) -> LiveFile:
    """A new data file that no entry names yet."""
    with closing(RowsFile(uri, filesystem, rows.schema)) as file:
        file.write(rows)
    return file.finished()


class RowsFile:
    """A data file that is being written. After ``close``, ``finished`` says what an entry needs to know of it.

    :param filesystem: the collection's folder, where it is not on a local disk.
    """

    def __init__(self, uri: str, filesystem: pafs.FileSystem, schema: pa.Schema) -> None:
        self.path = f"part-{uuid.uuid4()}.parquet"
        self._bounded = bounded_columns(schema)
        self._bounds: dict[str, tuple[int, int]] = {}
        self.rows = self.size = 0
        self._sink = _opened(uri, filesystem, self.path)
        self._writer = pq.ParquetWriter(self._sink, schema, **OPTIONS)

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=1 << 20)
        self.rows += rows.num_rows
        for name in self._bounded if rows.num_rows else ():
            ends = pc.min_max(rows.column(name)).as_py()
            low, high = self._bounds.get(name, (ends["min"], ends["max"]))
            self._bounds[name] = min(low, ends["min"]), max(high, ends["max"])
        self.size = self._sink.tell()

    def close(self) -> None:
        self._writer.close()
        if not self._sink.closed:
            self.size = self._sink.tell()
            self._sink.close()

    def finished(self) -> LiveFile:
        stats = {
            "numRecords": self.rows,
            "minValues": {name: low for name, (low, _) in self._bounds.items()},
            "maxValues": {name: high for name, (_, high) in self._bounds.items()},
            "nullCount": dict.fromkeys(self._bounds, 0),
        }
        return LiveFile(self.path, self.size, json.dumps(stats, separators=(",", ":")), now_ms())


def write_changes(uri: str, filesystem: pafs.FileSystem, rows: pa.Table) -> tuple[str, int]:
    """A change file, and its size."""
    if (root := local_path(uri)) is not None:
        # Not its parents: a folder that is gone must not come back empty.
        with suppress(FileExistsError):
            os.mkdir(os.path.join(root, CHANGES))
    path = f"{CHANGES}/cdc-{uuid.uuid4()}.parquet"
    with _opened(uri, filesystem, path) as sink:
        pq.write_table(rows, sink, **OPTIONS)
        return path, sink.tell()


def _opened(uri: str, filesystem: pafs.FileSystem, path: str) -> pa.NativeFile:
    """To be written to. On a local disk without delta-rs, which has a thread of its own for each part."""
    root = local_path(uri)
    return filesystem.open_output_stream(path) if root is None else pa.OSFile(os.path.join(root, path), "wb")


def read_rows(uri: str, filesystem: pafs.FileSystem, path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a data file in their order, those that a vector takes away included.

    :param filesystem: the collection's folder, where Arrow has no file system of its own for it.
    """
    native = native_filesystem(uri)
    with (native or filesystem).open_input_file(path) as source:
        # Arrow's threads must not let go of a buffer of Python's after the interpreter has ended.
        yield from pq.ParquetFile(source, pre_buffer=False).iter_batches(BATCH_ROWS, use_threads=native is not None)
