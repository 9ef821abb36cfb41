"""The hash by which the index knows a key: 64 bits over the values of its columns, in their order.

It is kept in scratch only and may change with any version; ``storage/fanout/hashing.py`` has the one that is stored.
Two keys may have the same hash, so nobody may take equal hashes for equal keys.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_mzshare.storage.fanout.hashing import Words, digest

_SEED = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(8)] + [2**64 - 1], np.uint64)
"""What counts of a word of which so many bytes are left."""
_WORD = 8
LONG = 128
"""Bytes. Values up to here are mixed word by word, all rows at once; longer ones are rare, and digested one by one."""


def key_hashes(keys: pa.Table) -> Words:
    """Equal for equal keys whichever way Arrow holds them (views, large offsets, dictionaries, slices, chunks).

    A numeric column must have its own scale, as it has in all files of a collection.
    """
    parts = [_of_batch(batch) for batch in keys.combine_chunks().to_batches() if batch.num_rows]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _of_batch(batch: pa.RecordBatch) -> Words:
    lane = np.full(batch.num_rows, _SEED)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        lane = _with_bytes(lane, column) if _is_bytes(column.type) else _with_words(lane, column)
    return lane


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    more = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(test(kind) for test in (*tests, *more))


def _with_words(lane: Words, column: pa.Array) -> Words:
    values = digest(column)
    for word in values.words:
        if values.nulls is not None:
            word = np.where(values.nulls, _NULL, word)
        lane = _mix(lane ^ word)
    return lane


def _with_bytes(lane: Words, column: pa.Array) -> Words:
    """The length first, so that bytes cannot move from one column to the next one unnoticed."""
    if column.type not in (pa.string(), pa.binary()):
        column = column.cast(pa.large_binary())
    starts, lengths, data = _bytes_of(column)
    words = lengths.astype(np.uint64)
    if column.null_count:
        nulls = np.asarray(column.is_null())
        lengths = np.where(nulls, 0, lengths)
        words[nulls] = _NULL
    lane = _mix(lane ^ words)
    long = np.flatnonzero(lengths > LONG)
    if long.size:
        lane[long] = _mix(lane[long] ^ _digested(column, long))
        lengths = np.where(lengths > LONG, 0, lengths)
    return _with_short(lane, starts, lengths, data)


def _with_short(lane: Words, starts: npt.NDArray[np.int64], left: npt.NDArray[np.int64], data: Words) -> Words:
    """One word of each value that has one, then the next word of each value that is longer."""
    rows = np.flatnonzero(left > 0)
    whole = rows.size == left.size
    starts, left = (starts, left) if whole else (starts[rows], left[rows])
    while rows.size:
        words = data[starts] & _MASKS[np.minimum(left, _WORD)]
        if whole:
            lane = _mix(lane ^ words)
        else:
            lane[rows] = _mix(lane[rows] ^ words)
        longer = left > _WORD
        whole = whole and bool(longer.all())
        if not whole:
            rows, starts, left = rows[longer], starts[longer], left[longer]
        starts, left = starts + _WORD, left - _WORD
    return lane


def _bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Words]:
    """Where values begin, how long they are, and the word that begins at each byte."""
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    # A word at the last byte reaches beyond it.
    padded = np.zeros(end - begin + _WORD, np.uint8)
    if end > begin:
        padded[: end - begin] = np.frombuffer(data, np.uint8)[begin:end]
    words: Words = np.ndarray((end - begin + 1,), "<u8", padded, strides=(1,))
    return offsets[:-1] - begin, np.diff(offsets), words


def _digested(column: pa.Array, rows: npt.NDArray[np.intp]) -> Words:
    values = column.take(pa.array(rows)).cast(pa.large_binary()).to_pylist()
    return np.frombuffer(b"".join([blake2b(each, digest_size=_WORD).digest() for each in values]), "<u8")


def _mix(lane: Words) -> Words:
    """In place; a bijection of 64 bits in which every input bit reaches every output bit."""
    lane ^= lane >> _SHIFTS[0]
    lane *= _FACTORS[0]
    lane ^= lane >> _SHIFTS[1]
    lane *= _FACTORS[1]
    lane ^= lane >> _SHIFTS[2]
    return lane
