"""Finds the upstream's own positions in a segment: by the headers of its blocks, and in one block if they do not tell.

Positions do not fall in a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.journal.blocks import BLOCK_HEADER, Block
from airflow_provider_mzshare.journal.files import local_path_of
from airflow_provider_mzshare.journal.reading import DamagedSegment, OpenSegment, opened


class Mark(NamedTuple):
    """The messages below this position are those below this offset."""

    position: int
    offset: int


def offset_of(path: str, first: int, length: int, position: int) -> int | None:
    """The offset of the first message at or beyond a position; None: all are below it.

    :param first: the offset of the segment's first message. :param length: announced bytes.
    """
    with opened(path, length) as segment:
        for at, block in _blocks(segment, path, first, length, position):
            if block.boundary == position:
                return block.first + block.before_boundary
            if block.high is None or block.high < position:
                continue
            if block.low is not None and block.low >= position:
                return block.first
            positions = segment.messages(at, block).column("position").to_numpy(zero_copy_only=False)
            return block.first + int(positions.searchsorted(position))
    return None


def marks(path: str, first: int, length: int, lower: int) -> list[Mark]:
    """The boundaries beyond ``lower`` that the segment's blocks tell, in order."""
    with opened(path, length) as segment:
        return [
            Mark(block.boundary, block.first + block.before_boundary)
            for _, block in _blocks(segment, path, first, length, lower)
            if block.boundary is not None and block.boundary > lower
        ]


def _blocks(segment: OpenSegment, path: str, first: int, length: int, position: int) -> Iterator[tuple[int, Block]]:
    """Where each block begins, from one on before which all is below ``position``."""
    at, offset = _indexed(segment, path, length, position) or (segment.header(segment.look).size, first)
    while at < length:
        block = segment.block(segment.look, at, offset)
        yield at, block
        at, offset = at + BLOCK_HEADER + block.padded, block.end


def _indexed(segment: OpenSegment, path: str, length: int, position: int) -> tuple[int, int] | None:
    """Byte and offset of the last block in the index that begins below ``position``, if its entries can be used."""
    local = local_path_of(path)
    found = [(byte, offset) for offset, byte in index.entries(local) if 0 <= byte < length] if local else []
    lower, upper = 0, len(found)
    while lower < upper:
        middle = (lower + upper) // 2
        try:
            low = segment.block(segment.look, *found[middle]).low
        except DamagedSegment:
            return None
        lower, upper = (middle + 1, upper) if low is not None and low < position else (lower, middle)
    return found[lower - 1] if lower else None
