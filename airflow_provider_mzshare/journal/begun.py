"""Finds how far a segment was begun, announced or not. Nothing is damage here: what a dead writer has left is looked at
as far as it is whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

from airflow_provider_mzshare.journal import blocks
from airflow_provider_mzshare.journal.blocks import BLOCK_HEADER, SEGMENT_HEADER, BadBytes, NewerVersion
from airflow_provider_mzshare.journal.files import Source, Window, open_source

_LOOK = 16 << 10
_NO_LIMIT = 1 << 62


def last_begun(path: str, length: int = 0, end: int = 0) -> int | None:
    """The offset at which the segment begins, or what was flushed into it last; None if nothing can be told.

    :param path: absolute, or a URI.
    :param length: of its bytes, as they are announced. Only what is behind them is looked at. :param end: their end.
    """
    found = None
    with suppress(FileNotFoundError, EOFError, BadBytes, NewerVersion), closing(open_source(path)) as source:
        for found in _begun(source, length, end):  # noqa: B007  The last one before the file ends, or is torn.
            pass
    return found


def _begun(source: Source, at: int, offset: int) -> Iterator[int]:
    window = Window(source, _NO_LIMIT, _LOOK, _LOOK)
    if not at:
        size = blocks.size_of_segment_header(window.view(0, SEGMENT_HEADER))
        header = blocks.decode_segment(window.view(0, size).to_pybytes())
        at, offset = size, header.first
        yield offset
    block = blocks.decode_head(window.view(at, BLOCK_HEADER))
    if not block.begins:
        return  # A writer of a former version does not say where it begins.
    while block.first == offset:
        if block.begins:
            yield offset
        at, offset = at + BLOCK_HEADER + block.padded, block.end
        block = blocks.decode_head(window.view(at, BLOCK_HEADER))
