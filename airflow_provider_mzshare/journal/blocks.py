"""What the files of a journal are made of: a header, and blocks of messages. Bytes to values and back; opens nothing.

A segment begins with its header and a prologue, which is all that its messages need beside themselves to be decoded.
Blocks follow. A block is a header of 64 bytes and its payload: the messages as an Arrow record batch without its
schema, and without the columns that are all NULL; as a whole in zstd where that saves an eighth. Every part begins at a
multiple of 8 bytes, so Arrow can use uncompressed payloads where they lie. The first block of what was flushed at once
says so: where one begins, all before it was announced. A block without messages, behind all that is announced, says no
more than that, and nobody reads it. Each checksum covers all bytes of its part,
the padding too, so no bit of a segment can flip unnoticed.

In all versions a header has the same size, and its checksum and version in the same places: so a file of a newer
version is told from one that is damaged. A checksum stands before what it covers, because the CRC of bytes with their
own CRC behind them is the same for all bytes, and so the checksum of the whole segment would say nothing of headers.

What a message costs beside its own bytes: alone in its block, with 200 bytes and a timestamp, about 200; from some
fifty messages in a block on, less than 20 before compression.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.journal.messages import MESSAGES

VERSION = 1
MAX_RAW = 4 << 20
MAX_MESSAGES = 20_000
"""A block with more than one message has at most so much: who wants one message reads its whole block."""
COMPRESSED_FROM = 256
"""Bytes: an Arrow batch of one message is mostly its own description, which is much alike."""

_SEGMENT = struct.Struct("<8sIH2xIq8s4x")
_BLOCK = struct.Struct("<4sIBxHqIIIIIqqq")
SEGMENT_HEADER, BLOCK_HEADER = _SEGMENT.size, _BLOCK.size
# As in PNG: what takes the file for a text spoils these bytes first.
_SEGMENT_MAGIC, _BLOCK_MAGIC = b"\x89MZJ\r\n\x1a\n", b"\x89MZB"
_CHECKSUM = struct.Struct("<I")
_SEGMENT_COVERED, _BLOCK_COVERED = len(_SEGMENT_MAGIC) + _CHECKSUM.size, len(_BLOCK_MAGIC) + _CHECKSUM.size
"""From these bytes on, a checksum covers the header."""
_ALIGNED = 8
_PADDING = [bytes(-size % _ALIGNED) for size in range(_ALIGNED)]

_ZSTD, _POSITIONS, _BOUNDARY, _BEGINS = 1, 2, 4, 8
_COLUMN = 1 << 8
"""The flag of the first column, and then one for each."""


class BadBytes(ValueError):
    """These are not the bytes that were written. The message goes on where a place was named."""


class NewerVersion(ValueError):
    """A newer version of this program wrote them."""


class SegmentHeader(NamedTuple):
    first: int
    """The offset of the first message."""
    prologue: bytes
    size: int
    """Of the header with its prologue: there the blocks begin."""


class Block(NamedTuple):
    """What its header says."""

    first: int
    messages: int
    before_boundary: int
    """How many of its messages, from its first on, lie before ``boundary``."""
    stored: int
    """Bytes of its payload in the file, without padding."""
    raw: int
    """Bytes of its payload before compression."""
    checksum: int
    flags: int
    low: int | None = None
    """The lowest of the upstream's own positions in it."""
    high: int | None = None
    boundary: int | None = None
    """All that the upstream has below this position of its own is in this block and those before it."""

    @property
    def end(self) -> int:
        return self.first + self.messages

    @property
    def begins(self) -> bool:
        """Whether something that was flushed at once begins with it. Files of former versions do not say so."""
        return bool(self.flags & _BEGINS)

    @property
    def columns(self) -> int:
        """Which ones its payload has: equal for blocks with the same."""
        return self.flags // _COLUMN

    @property
    def padded(self) -> int:
        """Bytes in the file between its header and the next block."""
        return self.stored + -self.stored % _ALIGNED


class Encoded(NamedTuple):
    block: Block
    parts: tuple[bytes | pa.Buffer, ...]
    """Its bytes, in order."""

    @property
    def size(self) -> int:
        return BLOCK_HEADER + self.block.padded


# ── segments ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_segment(first: int, salt: bytes, prologue: bytes) -> bytes:
    """The header of a segment, with its prologue.

    :param salt: 8 bytes that no other writer has, so that two segments that begin alike are not alike.
    """
    head = _SEGMENT.pack(_SEGMENT_MAGIC, 0, VERSION, len(prologue), first, salt)
    covered = head[_SEGMENT_COVERED:] + prologue + _pad(len(prologue))
    return _SEGMENT_MAGIC + _CHECKSUM.pack(zlib.crc32(covered)) + covered


def size_of_segment_header(head: bytes | pa.Buffer) -> int:
    """With its prologue. Its checksum is not known to be right yet.

    :param head: the first ``SEGMENT_HEADER`` bytes.
    """
    magic, _, _, length, *_ = _SEGMENT.unpack(head)
    if magic != _SEGMENT_MAGIC:
        raise BadBytes("no segment of a journal begins there")
    return SEGMENT_HEADER + int(length) + -int(length) % _ALIGNED


def decode_segment(data: bytes) -> SegmentHeader:
    """:param data: as many bytes as ``size_of_segment_header`` says."""
    _, checksum, version, length, first, _ = _SEGMENT.unpack(data[:SEGMENT_HEADER])
    if zlib.crc32(data[_SEGMENT_COVERED:]) != checksum:
        raise BadBytes("the segment's header does not have its checksum")
    _check_version(version)
    return SegmentHeader(first, data[SEGMENT_HEADER : SEGMENT_HEADER + length], len(data))


# ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(
    messages: pa.RecordBatch, first: int, boundary: int | None = None, *, begins: bool = False
) -> Iterator[Encoded]:
    """Messages as blocks.

    :param first: the offset of the first message.
    :param boundary: see ``Block``; of the last block. :param begins: the same, of the first.
    """
    pieces = list(_pieces(messages)) if messages.num_rows else []
    for number, piece in enumerate(pieces, 1):
        flags = _BEGINS if begins and number == 1 else 0
        yield _encode(piece, first, boundary if number == len(pieces) else None, flags)
        first += piece.num_rows


def encode_end(end: int) -> bytes:
    """A block without messages: all before this offset is announced."""
    return _head(Block(end, 0, 0, 0, 0, 0, _BEGINS))


def _pieces(messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = messages.num_rows
    if rows == 1 or (rows <= MAX_MESSAGES and messages.nbytes <= MAX_RAW):
        yield messages
        return
    for half in (messages.slice(0, rows // 2), messages.slice(rows // 2)):
        yield from _pieces(half)


def _encode(messages: pa.RecordBatch, first: int, boundary: int | None, flags: int) -> Encoded:
    # Arrow does not know how many rows a batch without columns has.
    present = [number for number, column in enumerate(messages.columns) if column.null_count < len(column)] or [0]
    flags += sum(_COLUMN << number for number in present)
    payload = raw = messages.select(present).serialize()
    if raw.size >= COMPRESSED_FROM:
        compressed = _codec().compress(raw)
        if compressed.size <= raw.size - raw.size // 8:
            payload, flags = compressed, flags | _ZSTD
    padding = _pad(payload.size)
    low, high = _bounds(messages)
    block = Block(
        first,
        messages.num_rows,
        _before(messages, boundary),
        payload.size,
        raw.size,
        zlib.crc32(padding, zlib.crc32(payload)),
        flags | (_POSITIONS if low is not None else 0) | (_BOUNDARY if boundary is not None else 0),
        low,
        high,
        boundary,
    )
    return Encoded(block, (_head(block), payload, padding))


def _head(block: Block) -> bytes:
    positions = block.low or 0, block.high or 0, block.boundary or 0
    covered = _BLOCK.pack(_BLOCK_MAGIC, 0, VERSION, block.flags, *block[:6], *positions)[_BLOCK_COVERED:]
    return _BLOCK_MAGIC + _CHECKSUM.pack(zlib.crc32(covered)) + covered


def decode_head(head: pa.Buffer) -> Block:
    """:param head: ``BLOCK_HEADER`` bytes."""
    magic, checksum, version, flags, *numbers, low, high, boundary = _BLOCK.unpack(head)
    if magic != _BLOCK_MAGIC:
        raise BadBytes("no block of messages begins there")
    if zlib.crc32(memoryview(head)[_BLOCK_COVERED:]) != checksum:
        raise BadBytes("the block's header does not have its checksum")
    _check_version(version)
    positions = (low, high) if flags & _POSITIONS else (None, None)
    return Block._make((*numbers, flags, *positions, boundary if flags & _BOUNDARY else None))


def decode(block: Block, payload: pa.Buffer) -> pa.RecordBatch:
    """The messages of a block, without columns that are all NULL. They may use the bytes of ``payload`` where they lie.

    :param payload: with its padding.
    """
    if zlib.crc32(payload) != block.checksum:
        raise BadBytes("the block's messages do not have its checksum")
    raw = payload.slice(0, block.stored)
    try:
        if block.flags & _ZSTD:
            raw = _codec().decompress(raw, decompressed_size=block.raw)
        found = pa.ipc.read_record_batch(raw, _stored_schema(block.columns))
    except (pa.ArrowException, OSError) as error:
        # Arrow has OSError for bytes that are not zstd.
        raise BadBytes(f"the block's messages cannot be decoded: {error}") from error
    if found.num_rows != block.messages:
        raise BadBytes(f"the block has {found.num_rows} messages, and its header says {block.messages}")
    return found


def with_all_columns(messages: pa.RecordBatch) -> pa.RecordBatch:
    """As ``MESSAGES`` has them."""
    found = dict(zip(messages.schema.names, messages.columns, strict=True))
    columns = [found[each.name] if each.name in found else pa.nulls(len(messages), each.type) for each in MESSAGES]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGES)


def payload_bytes(messages: pa.RecordBatch) -> int:
    """Bytes of keys, values and headers, as ``Segment.payload`` counts them."""
    headers = messages.column("headers")
    columns = [messages.column("key"), messages.column("value")]
    if headers.null_count < len(headers):
        columns += headers.flatten().flatten()
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)


# ── parts of them ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _bounds(messages: pa.RecordBatch) -> tuple[int | None, int | None]:
    positions = messages.column("position")
    if positions.null_count == len(positions):
        return None, None
    ends = pc.min_max(positions)
    return ends["min"].as_py(), ends["max"].as_py()


def _before(messages: pa.RecordBatch, boundary: int | None) -> int:
    if boundary is None:
        return 0
    # A message without a position came before the boundary, as far as anybody can know.
    below = pc.indices_nonzero(pc.fill_null(pc.less(messages.column("position"), boundary), True))
    return below[-1].as_py() + 1 if len(below) else 0


def _check_version(version: int) -> None:
    if version != VERSION:
        raise NewerVersion(f"version {version}, and the newest that this mzshare reads is {VERSION}")


def _pad(size: int) -> bytes:
    return _PADDING[size % _ALIGNED]


def _codec() -> pa.Codec:
    # Not kept: nobody says that threads may share one, and it costs less than a microsecond.
    return pa.Codec("zstd", compression_level=1)


@lru_cache
def _stored_schema(columns: int) -> pa.Schema:
    return pa.schema([field for number, field in enumerate(MESSAGES) if columns & (1 << number)])
