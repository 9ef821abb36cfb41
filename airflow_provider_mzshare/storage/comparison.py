"""Compares what upstream says a range holds with what the collections hold, record by record. Reads nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.storage.fanout.hashing import (
    MODULUS,
    UNHASHED,
    Lanes,
    Words,
    column_lanes,
    digest,
    hash_rows,
    row_lanes,
)

ROLES = ("data", "errors")

MISSING, DOUBLE, DIFFERS, NOT_UPSTREAM = "missing", "double", "differs", "not upstream"


class Difference(NamedTuple):
    """``what``: ``missing``, ``double``, ``differs`` or ``not upstream``."""

    offset: int
    what: str


class Sums(NamedTuple):
    """Rows of both collections and the sums of their hashes."""

    rows: int = 0
    errors: int = 0
    data_hash: int = 0
    errors_hash: int = 0

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums(
            self.rows + other.rows,
            self.errors + other.errors,
            (self.data_hash + other.data_hash) % MODULUS,
            (self.errors_hash + other.errors_hash) % MODULUS,
        )


@dataclass(frozen=True)
class Rows:
    """The rows of one part of a partition, by offset: in which collection each is, and its hash."""

    offsets: npt.NDArray[np.int64]
    roles: npt.NDArray[np.int8]
    lanes: Lanes

    @classmethod
    def of(cls, parts: Mapping[str, Iterable[pa.RecordBatch]]) -> Rows:
        """From batches of both collections in any order; all columns but the tick count."""
        found: list[_Keys] = [_keys(number, batch) for number, role in enumerate(ROLES) for batch in parts[role]]
        columns: list[npt.NDArray[Any]] = [np.concatenate(each) for each in zip(*[_NOTHING, *found], strict=True)]
        order = np.argsort(columns[0], kind="stable")
        offsets, roles, lo, hi = (column[order] for column in columns)
        return cls(offsets, roles, Lanes(lo, hi))

    def sums(self) -> Sums:
        lo, hi = self.lanes
        in_data = self.roles == 0
        hashes = [hash_rows(Lanes(lo[chosen], hi[chosen])) for chosen in (in_data, ~in_data)]
        return Sums(int(in_data.sum()), int((~in_data).sum()), *hashes)

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return (self.offsets, self.roles, *self.lanes)


_Keys = tuple[npt.NDArray[np.int64], npt.NDArray[np.int8], Words, Words]
_NOTHING: _Keys = (np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.uint64), np.empty(0, np.uint64))


def _keys(role: int, batch: pa.RecordBatch) -> _Keys:
    offsets = batch.column("_mz_offset").to_numpy(zero_copy_only=False)
    columns = zip(batch.schema.names, batch.columns, strict=True)
    lanes = row_lanes((column_lanes(n, digest(c)) for n, c in columns if n != UNHASHED), batch.num_rows)
    return offsets, np.full(batch.num_rows, role, np.int8), lanes.lo, lanes.hi


def differences(upstream: Rows, found: Rows) -> dict[str, npt.NDArray[np.int64]]:
    """The offsets at which they differ, by kind; empty where they are the same. ``upstream`` has no offset twice."""
    if _same(upstream, found):
        return {}
    offsets, counts = np.unique(found.offsets, return_counts=True)
    kinds = {
        MISSING: np.setdiff1d(upstream.offsets, offsets, assume_unique=True),
        NOT_UPSTREAM: np.setdiff1d(offsets, upstream.offsets, assume_unique=True),
        DOUBLE: offsets[counts > 1],
        DIFFERS: _changed(upstream, found),
    }
    return {kind: np.sort(places) for kind, places in kinds.items() if len(places)}


def first_of(kinds: Mapping[str, npt.NDArray[np.int64]]) -> Difference | None:
    """The lowest offset; a row that is there twice is told as that, whatever else is wrong with it."""
    order = (DOUBLE, MISSING, NOT_UPSTREAM, DIFFERS)
    found = [Difference(int(kinds[kind][0]), kind) for kind in order if kind in kinds]
    return min(found, key=lambda each: each.offset, default=None)


def _same(upstream: Rows, found: Rows) -> bool:
    return all(np.array_equal(ours, theirs) for ours, theirs in zip(upstream.columns, found.columns, strict=True))


def _changed(upstream: Rows, found: Rows) -> npt.NDArray[np.int64]:
    """Offsets that both have, in another collection or with other values."""
    common, ours, theirs = np.intersect1d(upstream.offsets, found.offsets, return_indices=True)
    unequal = np.zeros(len(common), np.bool_)
    for one, other in zip(upstream.columns, found.columns, strict=True):
        unequal |= one[ours] != other[theirs]
    return common[unequal]
