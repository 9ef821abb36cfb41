"""Adds up changes: of equal rows their counts, so that what was taken away and came again is gone. Memory is bounded.

What does not fit into memory goes to files, cut into parts by a hash of the rows; each part is then added up by itself.
Parts that are still too large are cut again. The files are scratch, and gone when the sum is closed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.storage.collections.vectors.key_hashes import key_hashes

DIFF = "mz_diff"
"""The last column of changes: how often the row comes, or with a minus goes."""
LIMIT = 32 << 20
"""Bytes of rows that are added up in memory."""
_BITS = 4
"""Of the hash, for each time that rows are cut into parts."""
_DEEPEST = 64 // _BITS - 1


class Sum:
    """Changes that are added up. A context: its files go with it.

    :param schema: of the changes; the last column is ``DIFF``.
    """

    def __init__(self, schema: pa.Schema, *, limit: int = LIMIT, depth: int = 0, folder: Path | None = None) -> None:
        self._schema, self._limit, self._depth, self._folder = schema, limit, depth, folder
        self._held: list[pa.RecordBatch] = []
        self._size = 0
        self._parts: list[_Part] | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Sum:
        return self

    def __exit__(self, *exc: object) -> None:
        self._opened.close()

    def add(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._size += batch.nbytes
        if self._size <= self._limit:
            return
        self._keep(self._added())
        # Rows that are all alike can be cut into no parts; they also need no more room than one of them.
        if self._size > self._limit // 2 and self._depth < _DEEPEST:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What is left, in no order. Nothing is added after it."""
        if self._parts is None:
            rows = self._added()
            yield from rows.filter(pc.not_equal(rows.column(DIFF), 0)).to_batches()
            return
        self._spill()
        for part in self._parts:
            with Sum(self._schema, limit=self._limit, depth=self._depth + 1, folder=self._folder) as one:
                for batch in part.batches():
                    one.add(batch)
                yield from one.batches()

    def _added(self) -> pa.Table:
        rows = pa.Table.from_batches(self._held, self._schema)
        names = self._schema.names[:-1]
        numbered = rows.rename_columns([*(str(number) for number in range(len(names))), DIFF])
        # Only in this thread: Arrow's threads could release what they read after the interpreter has ended.
        grouped = numbered.group_by(numbered.column_names[:-1], use_threads=False).aggregate([(DIFF, "sum")])
        columns = [grouped.column(name) for name in (*numbered.column_names[:-1], f"{DIFF}_sum")]
        return pa.Table.from_arrays(columns, schema=self._schema) if rows.num_rows else rows

    def _keep(self, rows: pa.Table) -> None:
        # Batches that are small beside what they refer to would be counted as what they are, and hold more.
        self._held = rows.combine_chunks().to_batches()
        self._size = sum(batch.nbytes for batch in self._held)

    def _spill(self) -> None:
        if self._parts is None:
            if self._folder is None:
                made = self._opened.enter_context(tempfile.TemporaryDirectory(prefix="mzshare-changes-"))
                self._folder = Path(made)
            folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(dir=self._folder)))
            self._parts = [_Part(folder / str(number), self._schema, self._opened) for number in range(1 << _BITS)]
        rows = pa.Table.from_batches(self._held, self._schema)
        self._held, self._size = [], 0
        hashes = key_hashes(rows.select(self._schema.names[:-1]))
        numbers = (hashes >> np.uint64(_BITS * self._depth)) & np.uint64((1 << _BITS) - 1)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange((1 << _BITS) + 1))
        for part, begin, end in zip(self._parts, ends[:-1], ends[1:], strict=True):
            part.write(rows.take(pa.array(order[begin:end])))


class _Part:
    """Rows in a file, which is opened when the first come."""

    def __init__(self, path: Path, schema: pa.Schema, opened: ExitStack) -> None:
        self._path, self._schema, self._opened = path, schema, opened
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._writer is None:
            sink = self._opened.enter_context(pa.OSFile(str(self._path), "wb"))
            self._writer = self._opened.enter_context(pa.ipc.new_stream(sink, self._schema))
        self._writer.write_table(rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._writer is None:
            return
        self._writer.close()
        with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as stream:
            yield from stream
        self._path.unlink()
