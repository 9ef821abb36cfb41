"""The index beside a segment on a local disk: where some of its blocks begin. An aid, which nobody may rely on.

It is never flushed and has no checksum: a power cut may leave it short or torn, or ahead of its segment. Who uses an
entry first looks whether the block that it names begins there.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

SUFFIX = ".index"
EVERY = 256 << 10
"""Bytes of the segment from one entry to the next, or a block if it is larger."""
_ENTRY = struct.Struct("<qq")


def entry(offset: int, byte: int) -> bytes:
    """A block whose first message has this offset begins at this byte."""
    return _ENTRY.pack(offset, byte)


def nearest(segment: str, offset: int, length: int) -> tuple[int, int] | None:
    """The entry of the last block that begins at or before ``offset``; None without any that can be used.

    :param segment: a local path. :param length: how many of its bytes may be read.
    """
    found = entries(segment)
    place = bisect_right(found, offset, key=lambda each: each[0]) - 1
    if place < 0:
        return None
    begins, byte = found[place]
    # Where entries are not in order, the search may have found any of them.
    return (begins, byte) if begins <= offset and 0 <= byte < length else None


def entries(segment: str) -> list[tuple[int, int]]:
    """All of them, offset and byte, as they are; none where there is no index. :param segment: a local path."""
    try:
        with open(segment + SUFFIX, "rb") as file:
            data = file.read()
    except OSError:
        return []
    return list(_ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]))
