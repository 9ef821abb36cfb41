"""The rows of a collection's files on the local disk, uncompressed and mapped: what a row was before it changed.

Scratch: nothing is flushed to the disk, and what an earlier process has left in the folder is removed. It does not know
which rows are live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.storage.collections.vectors.index import files_of, rows_of
from airflow_provider_mzshare.storage.fanout.hashing import Words

CHUNK_ROWS = 1 << 18
"""Rows are taken chunk by chunk. Fewer rows make more calls; more would have to be gathered in memory first."""
CHUNK_BYTES = 64 << 20
_SUFFIX = ".arrow"


class _File(NamedTuple):
    """:param begins: the first row of each chunk, and after the last one the number of rows."""

    path: Path
    size: int
    schema: pa.Schema
    chunks: list[pa.RecordBatch]
    begins: npt.NDArray[np.int64]


class Mirror:
    """:param folder: is made if it is not there, and belongs to this mirror alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, _File] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"*{_SUFFIX}"):
            left.unlink()

    def __contains__(self, file_number: int) -> bool:
        return file_number in self._files

    @property
    def disk_bytes(self) -> int:
        return sum(file.size for file in self._files.values())

    def put(self, file_number: int, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        """The rows of a file, in their order. Raises OSError if the disk is full, and leaves nothing behind then.

        :param schema: the columns to keep, which all batches have, perhaps in another form.
        """
        if file_number in self._files:
            raise ValueError(f"file {file_number} is in the mirror already")
        path = self._folder / f"{file_number}{_SUFFIX}"
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for chunk in _chunks(batches, schema):
                    writer.write_batch(chunk)
            self._files[file_number] = _opened(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def take(self, locations: Words, shape: pa.Schema) -> pa.Table:
        """The rows in the order of the locations, in one chunk; columns that a file does not have are NULL.

        Raises LookupError for a row that is not there.
        """
        order = np.argsort(locations, kind="stable")
        ordered = locations[order]
        files = files_of(ordered)
        cuts = np.flatnonzero(np.diff(files)) + 1
        parts: list[pa.RecordBatch] = []
        for rows, number in zip(
            np.split(rows_of(ordered), cuts), files[np.append(0, cuts)[: files.size]], strict=False
        ):
            parts.extend(_take(self._files[int(number)], rows, shape))
        table = pa.Table.from_batches(parts, shape).combine_chunks()
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        return table.take(pa.array(places))

    def drop(self, file_number: int) -> None:
        """Raises LookupError if the file is not there."""
        self._files.pop(file_number).path.unlink()

    def close(self) -> None:
        for number in list(self._files):
            self.drop(number)


def _chunks(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in chunks that are neither many nor huge."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(_in_form(batch, schema))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield from _joined(waiting, schema)
            waiting, rows, size = [], 0, 0
    yield from _joined(waiting, schema)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    return joined


def _in_form(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    return batch.select(schema.names).cast(schema)


def _opened(path: Path) -> _File:
    """The chunks keep the mapping, so that the file itself need not stay open."""
    with pa.memory_map(str(path)) as source:
        size = source.size()
        reader = pa.ipc.open_file(source)
        chunks = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        begins = np.cumsum([0, *(chunk.num_rows for chunk in chunks)])
        return _File(path, size, reader.schema, chunks, begins)


def _take(file: _File, rows: npt.NDArray[np.int64], shape: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Chunk by chunk: Arrow's own way over all chunks costs what the file weighs. :param rows: sorted."""
    if rows.size and rows[-1] >= file.begins[-1]:
        raise IndexError(f"row {rows[-1]:,} of {file.path.name}, which has {file.begins[-1]:,}")
    present = [name for name in shape.names if name in file.schema.names]
    cuts = np.searchsorted(rows, file.begins)
    for number in np.flatnonzero(np.diff(cuts)):
        wanted = rows[cuts[number] : cuts[number + 1]] - file.begins[number]
        yield _shaped(file.chunks[number].select(present).take(pa.array(wanted)), shape)


def _shaped(batch: pa.RecordBatch, shape: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(shape):
        return batch
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = []
    for field in shape:
        column = columns.get(field.name)
        if column is None:
            column = pa.nulls(batch.num_rows, field.type)
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=shape)
