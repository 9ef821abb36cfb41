"""How messages are weighed and cut: into parts that fit into memory and into one announcement. Decides nothing else."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.journal.messages import MESSAGES

NO_MESSAGES = pa.RecordBatch.from_pylist([], MESSAGES)
ROW = 40
"""What a message weighs beside its bytes, about what it takes in memory."""

Row = tuple[bytes | None, bytes | None, int | None, list[dict[str, Any]] | None]
"""Key, value, timestamp in microseconds, headers."""
Sizes = npt.NDArray[np.int64]


def sizes(keys: pa.Array, values: pa.Array, headers: pa.Array) -> Sizes:
    """Bytes of each message's key, value and headers."""
    found = _lengths(keys) + _lengths(values)
    if headers.null_count < len(headers):
        pairs = headers.flatten()
        lengths = _lengths(pairs.field("name")) + _lengths(pairs.field("value"))
        parents = pc.list_parent_indices(headers).to_numpy()
        found += np.bincount(parents, weights=lengths, minlength=len(headers)).astype(np.int64)
    return found


def _lengths(values: pa.Array) -> Sizes:
    return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(), dtype=np.int64)


def weights(messages: pa.RecordBatch) -> Sizes:
    return sizes(messages.column("key"), messages.column("value"), messages.column("headers")) + ROW


def weight(messages: pa.RecordBatch) -> int:
    return int(weights(messages).sum())


def weight_at_most(messages: pa.RecordBatch) -> int:
    """Of what is counted again and again: what Arrow holds is more than the bytes of the messages, by a little."""
    return int(messages.nbytes) + ROW * int(messages.num_rows)


def cut(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """Parts that weigh up to ``limit`` each; a message that weighs more is a part by itself.

    They are cut at the same messages, whatever the batches were: so who sends all again sends the same parts.
    """
    held: list[pa.RecordBatch] = []
    room = limit
    for batch in batches:
        sums = np.cumsum(weights(batch))
        start, before = 0, 0
        while start < batch.num_rows:
            fits = int(np.searchsorted(sums, before + room, side="right"))
            if fits == start and not held:
                fits += 1
            if fits > start:
                held.append(batch.slice(start, fits - start))
                room -= int(sums[fits - 1]) - before
                start, before = fits, int(sums[fits - 1])
            if start < batch.num_rows:
                yield joined(held)
                held, room = [], limit
    if held:
        yield joined(held)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Together they must be small enough for one batch."""
    if len(batches) == 1:
        return batches[0]
    (one,) = pa.Table.from_batches(batches, MESSAGES).combine_chunks().to_batches() or [NO_MESSAGES]
    return one


def digest(messages: pa.RecordBatch) -> str:
    """Of what they hold, the same however they came. A timestamp that was not given does not count."""
    stamps = messages.column("timestamp").cast(pa.int64()).to_pylist()
    keys, values, headers = (messages.column(name).to_pylist() for name in ("key", "value", "headers"))
    return digest_of_rows(zip(keys, values, stamps, headers, strict=True))


def digest_of_rows(rows: Iterable[Row]) -> str:
    """The same."""
    found = hashlib.sha256()
    for key, value, stamp, headers in rows:
        found.update(_NO_STAMP if stamp is None else struct.pack(">?q", True, stamp))
        found.update(_framed(key) + _framed(value) + _framed_headers(headers))
    return found.hexdigest()


_NO_STAMP = struct.pack(">?", False)


def _framed(value: bytes | None) -> bytes:
    return struct.pack(">q", -1) if value is None else struct.pack(">q", len(value)) + value


def _framed_headers(headers: list[dict[str, Any]] | None) -> bytes:
    if headers is None:
        return struct.pack(">q", -1)
    pairs = [_framed(one["name"].encode()) + _framed(one["value"]) for one in headers]
    return struct.pack(">q", len(pairs)) + b"".join(pairs)


def stamped(messages: pa.RecordBatch, now_us: int) -> pa.RecordBatch:
    """With this time where none was given."""
    stamps = messages.column("timestamp")
    if not stamps.null_count:
        return messages
    at = messages.schema.get_field_index("timestamp")
    return messages.set_column(at, MESSAGES.field(at), pc.fill_null(stamps, pa.scalar(now_us, stamps.type)))
