"""The hash of rows: 128 bits a row over names, types, values and place, summed modulo 2^128; it guards against
faults, not against forgers.

A collection keeps the version that it was made with. All versions add up in the same way and differ in what a row is.

Version 1: every column but ``_mz_tick`` counts. A value becomes one or two 64-bit words (its bit pattern; a decimal's
128 bits; BLAKE2b of text and bytes), two lanes mix the words with a seed made from the column's name and type, a row is
the mix of the sums of its columns' lanes, and a set of rows is the exact sum of ``hi << 64 | lo`` modulo 2^128. So
neither the order of rows or columns matters nor how they were cut into batches or files, and a row that is there twice
shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.core.schema import HASH_VERSION, TICK
from airflow_provider_mzshare.errors import UnknownHashVersion

MODULUS = 1 << 128
UNHASHED = TICK
"""The tick of a row is not hashed: a backfill may group ticks."""

Words = npt.NDArray[np.uint64]

_LOW = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9), np.uint64(27), np.uint64(0x94D049BB133111EB), np.uint64(31))
_HIGH = (np.uint64(33), np.uint64(0xFF51AFD7ED558CCD), np.uint64(29), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(32))
_HALF = np.uint64(32)
_HALF_MASK = np.uint64(0xFFFFFFFF)


class Lanes(NamedTuple):
    lo: Words
    hi: Words


class Digest(NamedTuple):
    """The values of a column as words, before its name is mixed in: so tables with other names for it share them."""

    words: tuple[Words, ...]
    nulls: npt.NDArray[np.bool_] | None
    type_tag: str


@dataclass(frozen=True)
class RowHash:
    """One version of the hash. Each column is mixed by itself, so that tables share it; then columns become rows."""

    version: int
    digest: Callable[[pa.Array], Digest]
    column_lanes: Callable[[str, Digest], Lanes]
    row_lanes: Callable[[Iterable[Lanes], int], Lanes]

    def of_rows(self, batch: pa.RecordBatch) -> Lanes:
        """The lanes of each row of a collection."""
        columns = zip(batch.schema.names, batch.columns, strict=True)
        lanes = (self.column_lanes(name, self.digest(column)) for name, column in columns if name != UNHASHED)
        return self.row_lanes(lanes, batch.num_rows)


def row_hash(version: int) -> RowHash:
    """Raises UnknownHashVersion for a version that is newer than this program."""
    if version not in VERSIONS:
        raise UnknownHashVersion(version, VERSIONS)
    return VERSIONS[version]


def hash_table(data: pa.Table | pa.RecordBatch, version: int | None = None) -> int:
    """The sum over all rows of a collection, or of a part of it. Without a version it is that of new collections."""
    how = row_hash(HASH_VERSION if version is None else version)
    batches = data.to_batches() if isinstance(data, pa.Table) else [data]
    return sum(hash_rows(how.of_rows(batch)) for batch in batches) % MODULUS


def hash_rows(rows: Lanes) -> int:
    return ((_exact_sum(rows.hi) << 64) + _exact_sum(rows.lo)) % MODULUS


def _exact_sum(lane: Words) -> int:
    low = int((lane & _HALF_MASK).sum(dtype=np.uint64))
    return low + (int((lane >> _HALF).sum(dtype=np.uint64)) << 32)


# ── version 1 ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def row_lanes(columns: Iterable[Lanes], rows: int) -> Lanes:
    """The last mix combines the values of a row: without it, two rows could swap values unnoticed."""
    lo, hi = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for lanes in columns:
        lo += lanes.lo
        hi += lanes.hi
    return Lanes(_mix(lo, _LOW), _mix(hi, _HIGH))


def column_lanes(name: str, column: Digest) -> Lanes:
    seeds = _seeds(name, column.type_tag)
    lo, hi = (_fold(column.words, seed, mixer) for seed, mixer in zip(seeds[:2], (_LOW, _HIGH), strict=True))
    if column.nulls is not None:
        lo[column.nulls], hi[column.nulls] = seeds[2:]
    return Lanes(lo, hi)


def _fold(words: tuple[Words, ...], seed: np.uint64, mixer: tuple[np.uint64, ...]) -> Words:
    lane = _mix(words[0] ^ seed, mixer)
    for word in words[1:]:
        lane = _mix(lane ^ word, mixer)
    return lane


def _mix(lane: Words, mixer: tuple[np.uint64, ...]) -> Words:
    """In place; a bijection of 64 bits in which every input bit reaches every output bit."""
    first, multiply, second, multiply_again, third = mixer
    lane ^= lane >> first
    lane *= multiply
    lane ^= lane >> second
    lane *= multiply_again
    lane ^= lane >> third
    return lane


@cache
def _seeds(name: str, type_tag: str) -> npt.NDArray[np.uint64]:
    """The seeds of the two lanes, and the two words for NULL."""
    return np.frombuffer(blake2b(f"{name}\0{type_tag}".encode(), digest_size=32).digest(), "<u8")


# ── values to words ───────────────────────────────────────────────────────────────────────────────────────────────────


def digest(column: pa.Array) -> Digest:
    """Equal for equal values whichever way Arrow holds them (views, large offsets, dictionaries, slices)."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    nulls = np.asarray(column.is_null()) if column.null_count else None
    tag, words = _words(column)
    return Digest(words, nulls, tag)


def _words(column: pa.Array) -> tuple[str, tuple[Words, ...]]:
    kind = column.type
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})", _decimal_words(column)
    if pa.types.is_floating(kind):
        return str(kind), (_float_words(column),)
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
        return "timestamptz" if kind.tz else "timestamp", (_integer_words(micros),)
    if pa.types.is_date32(kind):
        return "date", (_integer_words(column.view(pa.int32())),)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return str(kind), (_integer_words(column),)
    for tag, plain, same in (("text", pa.string(), _TEXTS), ("bytea", pa.binary(), _BYTES)):
        if kind in same:
            return tag, _bytes_words(column.cast(plain))
    raise TypeError(f"columns of type {kind} have no hash")


_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())
_BLANK = blake2b(digest_size=16)


def _integer_words(column: pa.Array) -> Words:
    numbers: npt.NDArray[Any] = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers.view(np.uint64)


def _float_words(column: pa.Array) -> Words:
    """-0.0 counts as 0.0 and every NaN as the same one."""
    numbers: npt.NDArray[Any] = column.fill_null(0).to_numpy(zero_copy_only=False) + column.type.to_pandas_dtype()(0)
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(f"u{numbers.itemsize}").astype(np.uint64)


def _decimal_words(column: pa.Array) -> tuple[Words, ...]:
    wide = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    pairs = np.frombuffer(wide.buffers()[1], "<u8").reshape(-1, 2)[wide.offset : wide.offset + len(wide)]
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _bytes_words(column: pa.Array) -> tuple[Words, ...]:
    encoded = column.cast(pa.binary()).dictionary_encode()
    digests = _digests(encoded.dictionary.to_pylist())
    pairs = np.frombuffer(digests or bytes(16), "<u8").reshape(-1, 2)
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return pairs[indices, 0], pairs[indices, 1]


def _digests(values: Iterable[bytes]) -> bytes:
    """A copy of a blank state costs a quarter less than making one anew."""
    found = []
    for value in values:
        state = _BLANK.copy()
        state.update(value)
        found.append(state.digest())
    return b"".join(found)


VERSIONS: Mapping[int, RowHash] = {1: RowHash(1, digest, column_lanes, row_lanes)}
"""All versions that may be stored. A version never changes: another way to hash is a new entry."""

FIRST = 1
"""The version of a hash that is stored without one."""
