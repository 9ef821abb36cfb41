"""Which files are opened, as the kernel tells it: by whatever library of this process, or by another process."""

from __future__ import annotations

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPENED, _OVERFLOW, _FOLDER = 0x20, 0x4000, 0x4000_0000
_HEAD = struct.Struct("iIII")
_NONBLOCKING = 0o4000


@contextmanager
def opened(folder: Path) -> Iterator[Counter[str]]:
    """How often each file below a folder was opened, by its path in it; filled when the block ends.

    A folder that was listed is there too, and its path ends in a slash. Folders that are made meanwhile are not seen.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(_NONBLOCKING)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    found: Counter[str] = Counter()
    try:
        watched = {}
        for where, _, _ in os.walk(folder):
            number = libc.inotify_add_watch(queue, os.fsencode(where), _OPENED)
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", where)
            watched[number] = Path(where)
        yield found
        found.update(str(path.relative_to(folder)) + end for path, end in _events(queue, watched))
    finally:
        os.close(queue)


def _events(queue: int, watched: dict[int, Path]) -> Iterator[tuple[Path, str]]:
    while True:
        try:
            told = os.read(queue, 1 << 20)
        except BlockingIOError:
            return
        while told:
            number, mask, _, length = _HEAD.unpack_from(told)
            name = os.fsdecode(told[_HEAD.size : _HEAD.size + length].rstrip(b"\0"))
            told = told[_HEAD.size + length :]
            if mask & _OVERFLOW:
                raise OSError("the kernel could not tell all files that were opened")
            # A folder is told twice: by itself without a name, and by the folder around it.
            if not (mask & _FOLDER and name):
                yield watched[number] / name, "/" if mask & _FOLDER else ""
