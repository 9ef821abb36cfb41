"""What the members of a batch share: columns, and rows that several members take. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.formats.base import Errors
from airflow_provider_mzshare.storage.fanout.hashing import Digest, Lanes, RowHash, hash_rows
from airflow_provider_mzshare.storage.fanout.plan import bounded_columns
from airflow_provider_mzshare.storage.fanout.splicing import Chunk, Encoding, encode

_FEW = 8

Made = TypeVar("Made")
Bounds = Mapping[str, tuple[int, int]]
"""The least and the greatest value, by column."""


@dataclass(frozen=True)
class Rows:
    """Rows of one collection, their hash, and the bounds that the log has of its columns."""

    batch: pa.RecordBatch
    hash: int
    bounds: Bounds
    chunk: Callable[[int, Encoding], Chunk] = field(compare=False, repr=False)
    """A column, by its number, as it stands in files; encoded once for all tables that have it."""


@dataclass(eq=False)
class SharedColumn:
    """A column of the batch that any number of tables share, with its errors by row."""

    values: pa.Array
    errors: Errors = field(default_factory=dict)
    _digests: dict[int, Digest] = field(default_factory=dict)
    _lanes: dict[tuple[int, str], Lanes] = field(default_factory=dict)

    def lanes(self, name: str, how: RowHash) -> Lanes:
        if how.version not in self._digests:
            self._digests[how.version] = how.digest(self.values)
        if (how.version, name) not in self._lanes:
            self._lanes[how.version, name] = how.column_lanes(name, self._digests[how.version])
        return self._lanes[how.version, name]


class Chosen:
    """The rows that some members take, nearly always all. What is made from them for one member serves the next."""

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self._mask, self._all = mask, bool(mask.all())
        self.is_empty = not mask.any()
        self._values: dict[SharedColumn, pa.Array] = {}
        self._chunks: dict[tuple[SharedColumn, Encoding], Chunk] = {}
        self._hashes: dict[Hashable, int] = {}
        self._bounds: Bounds | None = None

    @cached_property
    def _filter(self) -> pa.Array:
        return pa.array(self._mask)

    def values(self, column: SharedColumn) -> pa.Array:
        if self._all:
            return column.values
        if column not in self._values:
            self._values[column] = column.values.filter(self._filter)
        return self._values[column]

    def chunk(self, column: SharedColumn, how: Encoding) -> Chunk:
        if (column, how) not in self._chunks:
            self._chunks[column, how] = encode(self.values(column), how)
        return self._chunks[column, how]

    def hash(self, columns: Mapping[str, SharedColumn], how: RowHash) -> int:
        """The hash of these rows for a table with these columns, in any order."""
        key = (how.version, frozenset(columns.items()))
        if key not in self._hashes:
            lanes = how.row_lanes((column.lanes(name, how) for name, column in columns.items()), len(self._mask))
            taken = lanes if self._all else Lanes(lanes.lo[self._mask], lanes.hi[self._mask])
            self._hashes[key] = hash_rows(taken)
        return self._hashes[key]

    def bounds(self, batch: pa.RecordBatch) -> Bounds:
        """The bounds of these rows, for any member: the columns that have bounds are the same for all."""
        if self._bounds is None:
            self._bounds = bounds_of(batch)
        return self._bounds


class Few(Generic[Made]):
    """Keeps the last few values only, because each may be as large as the batch, and tables may all differ."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Made] = {}

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self._kept:
            if len(self._kept) == _FEW:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = make()
        return self._kept[key]


def bounds_of(batch: pa.RecordBatch) -> Bounds:
    found = ((name, pc.min_max(batch.column(name)).as_py()) for name in bounded_columns(batch.schema))
    return {name: (each["min"], each["max"]) for name, each in found}
