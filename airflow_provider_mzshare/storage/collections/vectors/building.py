"""Fills index and mirror with the rows of a collection's files. Who reads the files, and which, is not known here.

Each file is read once: its rows are hashed on their way into the mirror.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.storage.collections.vectors import key_hashes as hashing
from airflow_provider_mzshare.storage.collections.vectors.index import IndexBuilder, KeyIndex, locations_of
from airflow_provider_mzshare.storage.collections.vectors.mirror import Mirror
from airflow_provider_mzshare.storage.fanout.hashing import Words


class FileRows(NamedTuple):
    """:param batches: all rows, in their order. :param deleted: the rows that a vector has taken away, sorted."""

    number: int
    batches: Iterable[pa.RecordBatch]
    deleted: npt.NDArray[Any]


class Takes(Protocol):
    """An index, or one that is being built."""

    def add(self, hashes: Words, locations: Words) -> None: ...


def build_index(
    files: Iterable[FileRows], keys: Sequence[str], schema: pa.Schema, mirror: Mirror, builder: IndexBuilder
) -> KeyIndex:
    """The index of all live rows, whose files are in the mirror afterwards.

    :param schema: of the collection; a file may lack columns of it.
    """
    for file in files:
        add_file(file, keys, schema, mirror, builder)
    return builder.finish()


def add_file(file: FileRows, keys: Sequence[str], schema: pa.Schema, mirror: Mirror, index: Takes) -> None:
    """The rows of one file enter the mirror, and those that are live the index."""
    batches = iter(file.batches)
    first = next(batches, None)
    if first is None:
        mirror.put(file.number, (), schema)
        return
    own = pa.schema([field for field in schema if field.name in first.schema.names])
    mirror.put(file.number, _indexed(file, chain([first], batches), keys, index), own)


def _indexed(
    file: FileRows, batches: Iterable[pa.RecordBatch], keys: Sequence[str], index: Takes
) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in batches:
        hashes = hashing.key_hashes(pa.Table.from_batches([batch.select(list(keys))]))
        rows = np.arange(begin, begin + batch.num_rows)
        near = slice(*np.searchsorted(file.deleted, [begin, begin + batch.num_rows]))
        rows = np.delete(rows, file.deleted[near].astype(np.int64) - begin)
        index.add(hashes if rows.size == hashes.size else hashes[rows - begin], locations_of(file.number, rows))
        yield batch
        begin += batch.num_rows
