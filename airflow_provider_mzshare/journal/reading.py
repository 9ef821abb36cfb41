"""Reads what is announced of a journal's segments, in bounded pieces, and finds what is damaged. Runs in executors.

Nothing beyond the announced length is ever looked at: a writer may be at work there, or a dead one has left something.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.journal import blocks, index
from airflow_provider_mzshare.journal.blocks import BLOCK_HEADER, SEGMENT_HEADER, BadBytes, Block, NewerVersion
from airflow_provider_mzshare.journal.files import Source, Window, local_path_of, open_source

_LOOK = 16 << 10
"""Read at once where only headers are looked at."""
_GATHERED_ROWS, _GATHERED_BYTES = 4096, 256 << 10
"""Small blocks are given together, up to so much."""


@dataclass(frozen=True)
class Extent:
    """Messages of one segment."""

    path: str
    """Absolute, or a URI."""
    first: int
    """The offset of the segment's first message."""
    length: int
    """How many of its bytes are announced."""
    lower: int
    upper: int
    """Offsets: the messages of ``[lower, upper)``."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Extent:
        return cls(**plain)


class DamagedSegment(TerminalError):
    """Announced bytes of a journal are gone, or not those that were announced. What needs them cannot go on.

    :param byte: where in the file. :param problem: a sentence.
    """

    hint = "put the file back from a backup of the warehouse; mzshare status says which tables need it"

    def __init__(self, path: str, byte: int, problem: str) -> None:
        self.path, self.byte, self.problem = path, byte, problem
        super().__init__(f"the journal's file {path} is damaged at byte {byte}: {problem}")


class NewerSegment(TerminalError):
    """A file that a newer version of this program has written."""

    hint = "upgrade mzshare here to the version that wrote it"

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"the journal's file {path} is of {problem}")


def read(extent: Extent) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The extent's messages, each batch with the offset of its first. Raises OSError if storage fails."""
    return _gathered(_read(extent))


def prologue(path: str, length: int) -> bytes:
    """What the segment's messages need beside themselves to be decoded. :param length: announced bytes."""
    with opened(path, length) as segment:
        return segment.header(segment.look).prologue


def checksum_of(path: str, length: int) -> int:
    """CRC-32 of all announced bytes, to be compared with the catalog's."""
    checksum, at = 0, 0
    with opened(path, length) as segment:
        while at < length:
            size = min(segment.most, length - at)
            checksum = zlib.crc32(segment.part(segment.ahead, at, size), checksum)
            at += size
    return checksum


class _Piece(NamedTuple):
    """Messages of one block."""

    first: int
    messages: pa.RecordBatch
    """Without columns that are all NULL."""
    block: Block


def _read(extent: Extent) -> Iterator[_Piece]:
    if extent.lower < extent.first:
        raise ValueError(f"offset {extent.lower} is in an earlier segment than {extent.path}")
    if extent.lower >= extent.upper:
        return
    with opened(extent.path, extent.length) as segment:
        at, offset = segment.seek(extent.first, extent.lower)
        while offset < extent.upper:
            block = segment.block(segment.ahead, at, offset)
            messages = segment.messages(at, block)
            if offset < extent.lower or block.end > extent.upper:
                messages = messages.slice(max(0, extent.lower - offset))
                offset = block.end - len(messages)
                messages = messages.slice(0, extent.upper - offset)
            yield _Piece(offset, messages, block)
            at, offset = at + BLOCK_HEADER + block.padded, block.end


def _gathered(pieces: Iterator[_Piece]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Small ones together: where each message had a flush of its own, it is a block of its own."""
    waiting: list[_Piece] = []
    rows = size = 0
    for piece in pieces:
        rows, size = rows + len(piece.messages), size + piece.block.raw
        if waiting and (rows > _GATHERED_ROWS or size > _GATHERED_BYTES):
            yield waiting[0].first, _together(waiting)
            waiting, rows, size = [], len(piece.messages), piece.block.raw
        waiting.append(piece)
    if waiting:
        yield waiting[0].first, _together(waiting)


def _together(pieces: list[_Piece]) -> pa.RecordBatch:
    """Those with the same columns first: to fill in the others costs more than to join."""
    alike = groupby(pieces, lambda piece: piece.block.columns)
    return _joined([blocks.with_all_columns(_joined([each.messages for each in group])) for _, group in alike])


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


@contextmanager
def opened(path: str, length: int) -> Iterator[OpenSegment]:
    try:
        source = open_source(path)
    except FileNotFoundError as error:
        raise DamagedSegment(path, 0, "it is missing") from error
    try:
        yield OpenSegment(path, length, source)
    finally:
        source.close()


class OpenSegment:
    """The announced bytes of a segment that is open."""

    def __init__(self, path: str, length: int, source: Source) -> None:
        self._path, self._length = path, length
        self.most = source.most
        self.ahead = Window(source, length, source.ahead, source.most)
        """To read on from where it is."""
        self.look = Window(source, length, _LOOK, _LOOK)
        """To look at some bytes here and there."""

    def part(self, window: Window, at: int, size: int) -> pa.Buffer:
        if at + size > self._length:
            announced = f"{self._length} bytes are announced, and what begins there has {size} bytes"
            raise DamagedSegment(self._path, at, announced)
        try:
            return window.view(at, size)
        except EOFError as end:
            problem = f"it ends there, and {self._length} bytes are announced"
            raise DamagedSegment(self._path, end.args[0], problem) from end

    def header(self, window: Window) -> blocks.SegmentHeader:
        try:
            size = blocks.size_of_segment_header(self.part(window, 0, SEGMENT_HEADER))
            return blocks.decode_segment(self.part(window, 0, size).to_pybytes())
        except (BadBytes, NewerVersion) as error:
            raise self._told(0, error) from error

    def seek(self, first: int, lower: int) -> tuple[int, int]:
        """The byte and the first offset of the block that has the message ``lower``."""
        header = self.header(self.ahead if lower == first else self.look)
        if header.first != first:
            problem = f"its first message has the offset {header.first}, and that of the catalog {first}"
            raise DamagedSegment(self._path, 0, problem)
        at, offset = header.size, first
        if lower == first:
            return at, offset
        at, offset = self._indexed(lower) or (at, offset)
        while (block := self.block(self.look, at, offset)).end <= lower:
            at, offset = at + BLOCK_HEADER + block.padded, block.end
        return at, offset

    def _indexed(self, lower: int) -> tuple[int, int] | None:
        """As the index has it, if a block with that offset begins there."""
        local = local_path_of(self._path)
        found = index.nearest(local, lower, self._length) if local is not None else None
        if found is None:
            return None
        offset, at = found
        try:
            self.block(self.look, at, offset)
        except DamagedSegment:
            return None
        return at, offset

    def block(self, window: Window, at: int, offset: int) -> Block:
        if at == self._length:
            raise DamagedSegment(self._path, at, f"its blocks end with offset {offset}, and more is announced")
        try:
            block = blocks.decode_head(self.part(window, at, BLOCK_HEADER))
        except (BadBytes, NewerVersion) as error:
            raise self._told(at, error) from error
        if block.first != offset:
            raise DamagedSegment(self._path, at, f"offset {offset} was to be there, and it is {block.first}")
        return block

    def messages(self, at: int, block: Block) -> pa.RecordBatch:
        payload = self.part(self.ahead, at + BLOCK_HEADER, block.padded)
        try:
            return blocks.decode(block, payload)
        except BadBytes as error:
            raise self._told(at, error) from error

    def _told(self, at: int, error: BadBytes | NewerVersion) -> TerminalError:
        if isinstance(error, NewerVersion):
            return NewerSegment(self._path, str(error))
        return DamagedSegment(self._path, at, str(error))
