"""Compaction where rows change: written beside the ticks, with a map from every old row to its new place.

Puts nothing: the thread that commits ticks puts it on the newest version, and carries over what was taken away since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import bitmap_of, read_vector, rows_of, staying
from airflow_provider_mzshare.storage.collections.vectors.entries import new_entry_id
from airflow_provider_mzshare.storage.collections.vectors.files import RowsFile, read_rows
from airflow_provider_mzshare.storage.collections.vectors.index import GONE, files_of, locations_of
from airflow_provider_mzshare.storage.collections.vectors.index import rows_of as rows_at
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile
from airflow_provider_mzshare.storage.collections.vectors.mirror import Mirror
from airflow_provider_mzshare.storage.collections.vectors.puts import flush

Locations = npt.NDArray[np.uint64]
_CHUNK_ROWS = 262_144
WORN = 0.2
"""A file of which so large a part is gone is written anew, whatever its size: each tick that takes away one of its rows
writes its whole vector."""
TIER = 2.0
"""A file is merged with smaller ones if it is at most so many times as large as all of them together."""


@dataclass(frozen=True)
class Rewritten:
    """Files that are on the disk and not named yet, for the rows of ``inputs``.

    :param inputs: the rows that were left out of each, as its vector had them when it was read.
    :param outputs: what takes their place; nothing if no row is left.
    :param numbers: of the outputs, in the mirror.
    :param mapping: by input, where each of its rows is now; ``GONE`` if it was left out.
    :param mirror: the one that has the rows of the outputs already; None for a collection without vectors.
    """

    inputs: Mapping[str, BitMap]
    outputs: Sequence[LiveFile]
    numbers: Mapping[str, int]
    mapping: Mapping[str, Locations]
    mirror: Mirror | None
    entry_id: str = field(default_factory=new_entry_id)

    def carried(self, gone: Mapping[str, BitMap]) -> dict[str, BitMap]:
        """Rows of inputs as rows of outputs. :param gone: by input, the rows that were taken away since it was read."""
        parts = [self.mapping[path][rows_of(rows)] for path, rows in gone.items()]
        locations = np.concatenate([np.array([], np.uint64), *parts])
        numbers = files_of(locations)
        found = {path: locations[numbers == np.uint64(number)] for path, number in self.numbers.items()}
        return {path: bitmap_of(rows_at(rows)) for path, rows in found.items() if len(rows)}


def choose(files: Iterable[LiveFile], *, min_files: int, target_size: int) -> list[LiveFile]:
    """The files to be written anew: those that are worn out, and small ones of about the same size.

    A large file among small ones is left alone until the small ones together have its size: so a row is written a
    number of times that grows with the logarithm of the table's size.
    """
    worn, small = [], []
    for file in files:
        if file.deleted and (file.rows is None or file.deleted >= WORN * file.rows):
            worn.append(file)
        elif file.size < target_size:
            small.append(file)
    small.sort(key=lambda file: file.size)
    tier, size = 0, 0
    for number, file in enumerate(small):
        if file.size > TIER * max(size, small[0].size):
            break
        tier, size = number + 1, size + file.size
    chosen = small[:tier] if tier >= max(2, min_files) else []
    return [*worn, *chosen]


class Rewriting:
    """:param schema: the columns of the collection.
    :param number: gives a number for each new file, for the mirror.
    :param mirror: gets the rows of the new files, too.
    """

    def __init__(
        self,
        collection: Collection,
        schema: pa.Schema,
        mirror: Mirror | None,
        number: Iterator[int],
        *,
        target_size: int,
    ) -> None:
        self._collection, self._schema, self._mirror = collection, schema, mirror
        self._number, self._target = number, target_size
        self._mapping: dict[str, Locations] = {}

    def run(self, inputs: Sequence[LiveFile]) -> Rewritten:
        files = self._collection.filesystem
        left_out = {file.path: read_vector(files, file.vector) if file.vector else BitMap() for file in inputs}
        outputs: list[LiveFile] = []
        numbers: dict[str, int] = {}
        chunks = self._chunks(inputs, left_out)
        while (first := next(chunks, None)) is not None:
            number, file = next(self._number), RowsFile(self._collection.uri, files, self._schema)
            with closing(file):
                batches = self._written(file, number, chain([first], chunks))
                if self._mirror is not None:
                    self._mirror.put(number, batches, self._schema)
                else:
                    deque(batches, maxlen=0)
            outputs.append(file.finished())
            numbers[file.path] = number
        # Here, since they are large: no tick is to wait for them.
        flush(self._collection.uri, numbers)
        return Rewritten(left_out, outputs, numbers, self._mapping, self._mirror)

    def _written(self, file: RowsFile, number: int, chunks: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
        """Write pieces into a file until it is large enough; what is written goes on to the mirror."""
        for rows, places in chunks:
            for path, old, new in places:
                self._mapping[path][old] = locations_of(number, new + np.uint64(file.rows))
            file.write(rows)
            yield from rows.to_batches()
            if file.size >= self._target:
                return

    def _chunks(self, inputs: Sequence[LiveFile], left_out: Mapping[str, BitMap]) -> Iterator[Chunk]:
        """Rows that stay, in large pieces, and where in its piece each of them is."""
        parts: list[pa.Table] = []
        places: list[Place] = []
        rows = 0
        for file in inputs:
            for first, batch in self._rows(file):
                old = first + np.flatnonzero(staying(left_out[file.path], first, batch.num_rows)).astype(np.uint64)
                # Merges write views of text, from which Arrow cannot take rows.
                parts.append(_conformed(batch, self._schema).take(pa.array(old - np.uint64(first))))
                places.append((file.path, old, np.arange(rows, rows + len(old), dtype=np.uint64)))
                rows += len(old)
                if rows >= _CHUNK_ROWS:
                    yield pa.concat_tables(parts), places
                    parts, places, rows = [], [], 0
        if rows:
            yield pa.concat_tables(parts), places

    def _rows(self, file: LiveFile) -> Iterator[tuple[int, pa.RecordBatch]]:
        self._mapping[file.path] = np.full(file.rows or 0, GONE, np.uint64)
        if file.rows is not None and file.deleted >= file.rows:
            return
        first = 0
        for batch in read_rows(self._collection.uri, self._collection.filesystem, file.path):
            yield first, batch
            first += batch.num_rows


Place = tuple[str, Locations, Locations]
"""A file, rows of it, and where in the piece they are."""
Chunk = tuple[pa.Table, list[Place]]


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """In the collection's columns: those that the file is too old for are NULL."""
    columns = [
        batch.column(each.name).cast(each.type)
        if each.name in batch.schema.names
        else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
