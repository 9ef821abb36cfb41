"""Compares what upstream says a range holds with what the collections hold, record by record. Reads nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, Lanes, RowHash, hash_rows

ROLES = ("data", "errors")

_HALF = 1 << 64
MISSING, DOUBLE, DIFFERS, NOT_UPSTREAM = "missing", "double", "differs", "not upstream"


At = tuple[int, ...]
"""A place within its lane."""


class Difference(NamedTuple):
    """``what``: ``missing``, ``double``, ``differs`` or ``not upstream``."""

    at: At
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
    """The rows of one part of a lane, by place: in which collection each is, and its hash."""

    places: tuple[npt.NDArray[Any], ...]
    """A column for each number of a place, the one that counts most first; of a decimal, its upper 64 bits and then its
    lower ones."""
    roles: npt.NDArray[np.int8]
    lanes: Lanes

    @classmethod
    def of(cls, parts: Mapping[str, Iterable[pa.RecordBatch]], place: Place, how: RowHash) -> Rows:
        """From batches of both collections in any order; all columns but the tick count."""
        nothing = pa.RecordBatch.from_pylist([], arrow_schema(place.stored))
        found = [(number, batch) for number, role in enumerate(ROLES) for batch in parts[role]]
        keys = [_keys(number, batch, place, how) for number, batch in [(0, nothing), *found]]
        columns: list[npt.NDArray[Any]] = [np.concatenate(each) for each in zip(*keys, strict=True)]
        order = np.lexsort(columns[:-3][::-1])
        *places, roles, lo, hi = (column[order] for column in columns)
        return cls(tuple(places), roles, Lanes(lo, hi))

    def sums(self) -> Sums:
        lo, hi = self.lanes
        in_data = self.roles == 0
        hashes = [hash_rows(Lanes(lo[chosen], hi[chosen])) for chosen in (in_data, ~in_data)]
        return Sums(int(in_data.sum()), int((~in_data).sum()), *hashes)

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return (*self.places, self.roles, *self.lanes)


def _keys(role: int, batch: pa.RecordBatch, place: Place, how: RowHash) -> list[npt.NDArray[Any]]:
    lanes = how.of_rows(batch)
    placed = [word for column in place.within_lane for word in place_words(batch.column(column.name))]
    return [*placed, np.full(batch.num_rows, role, np.int8), lanes.lo, lanes.hi]


def place_words(column: pa.Array) -> list[npt.NDArray[Any]]:
    if not pa.types.is_decimal(column.type):
        return [column.to_numpy(zero_copy_only=False)]
    halves = [divmod(int(value), _HALF) for value in column.to_pylist()]
    return [np.array([upper for upper, _ in halves], np.int64), np.array([lower for _, lower in halves], np.uint64)]


def differences(upstream: Rows, found: Rows, place: Place) -> dict[str, list[At]]:
    """The places at which they differ, by kind; empty where they are the same. ``upstream`` has no place twice."""
    if _same(upstream, found):
        return {}
    columns, numbers = _numbered(upstream, found)
    wanted, there = np.split(numbers, [len(upstream.roles)])
    present, counts = np.unique(there, return_counts=True)
    kinds = {
        MISSING: np.setdiff1d(wanted, present, assume_unique=True),
        NOT_UPSTREAM: np.setdiff1d(present, wanted, assume_unique=True),
        DOUBLE: present[counts > 1],
        DIFFERS: _changed(upstream, found, wanted, there),
    }
    return {kind: _told([c[np.sort(chosen)] for c in columns], place) for kind, chosen in kinds.items() if len(chosen)}


def first_of(kinds: Mapping[str, Sequence[At]]) -> Difference | None:
    """The lowest place; a row that is there twice is told as that, whatever else is wrong with it."""
    order = (DOUBLE, MISSING, NOT_UPSTREAM, DIFFERS)
    found = [Difference(kinds[kind][0], kind) for kind in order if kind in kinds]
    return min(found, key=lambda each: each.at, default=None)


def _same(upstream: Rows, found: Rows) -> bool:
    return all(np.array_equal(ours, theirs) for ours, theirs in zip(upstream.columns, found.columns, strict=True))


def _numbered(upstream: Rows, found: Rows) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]]:
    """All places in order, each once; and the number among them of each row, upstream's first."""
    columns = [np.concatenate(both) for both in zip(upstream.places, found.places, strict=True)]
    order = np.lexsort(columns[::-1])
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[order[1:]] != column[order[:-1]]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    return [column[order[begins]] for column in columns], numbers


def _changed(
    upstream: Rows, found: Rows, wanted: npt.NDArray[np.int64], there: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Places that both have, in another collection or with other values."""
    common, ours, theirs = np.intersect1d(wanted, there, return_indices=True)
    unequal = np.zeros(len(common), np.bool_)
    for one, other in zip(upstream.columns, found.columns, strict=True):
        unequal |= one[ours] != other[theirs]
    return common[unequal]


def _told(columns: Sequence[npt.NDArray[Any]], place: Place) -> list[At]:
    words = iter([column.tolist() for column in columns])
    values = []
    for column in place.within_lane:
        numbers = next(words)
        if column.is_wide:
            numbers = [upper * _HALF + lower for upper, lower in zip(numbers, next(words), strict=True)]
        values.append(numbers)
    return list(zip(*values, strict=True))
