"""Opens the files of journals to be read: on a local disk, or in an object store by Arrow. Knows nothing of what is in
them.

Files are read and never mapped: of a mapped file, a bad sector or a lost mount ends the whole process.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePath
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as pafs

FILESYSTEMS_KEPT = 256
_FOLDERS = 3
"""Between a segment and the warehouse: ``journals``, the journal and the partition."""


class Source(Protocol):
    """A file that is open."""

    ahead: int
    """How much is best read at first, when it is not known how much is wanted,"""
    most: int
    """and when much is."""

    def read_into(self, target: memoryview, at: int) -> int:
        """As many bytes as there are from ``at`` on, up to the size of ``target``; return how many."""
        ...

    def close(self) -> None: ...


def local_path_of(path: str) -> str | None:
    """None for an object store."""
    if "://" not in path:
        return path
    if not path.startswith("file://"):
        return None
    return str(pafs.FileSystem.from_uri(path)[1])


def open_source(path: str) -> Source:
    """Open a segment, an absolute path or a URI.

    Raises FileNotFoundError for one that is missing, and another OSError where the whole warehouse is away.
    """
    local = local_path_of(path)
    if local is None:
        return _Object(path)
    try:
        return _File(local)
    except FileNotFoundError:
        _check_mounted(local)
        raise


def _check_mounted(path: str) -> None:
    """As ``storage/collections/faults.py``: a warehouse that is gone or has no folders is on a disk that is away."""
    root = [*PurePath(path).parents][: _FOLDERS + 1][-1]
    with suppress(OSError), os.scandir(root) as found:
        if any(each.is_dir() for each in found):
            return
    raise OSError(errno.ENODEV, "the warehouse is gone or empty; is its disk mounted?", str(root))


class _File:
    ahead, most = 256 << 10, 1 << 20
    """More does not stay in the processor's cache until it is decoded."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def read_into(self, target: memoryview, at: int) -> int:
        done = 0
        while done < len(target) and (got := os.preadv(self._descriptor, [target[done:]], at + done)):
            done += got
        return done

    def close(self) -> None:
        os.close(self._descriptor)


class _Object:
    ahead = most = 8 << 20
    """Each read is a request."""

    def __init__(self, uri: str) -> None:
        folder, _, name = uri.rpartition("/")
        filesystem, inner = _filesystem(folder)
        self._file = filesystem.open_input_file(f"{inner}/{name}")
        self._size: int = self._file.size()

    def read_into(self, target: memoryview, at: int) -> int:
        wanted = max(0, min(len(target), self._size - at))
        if wanted:
            self._file.seek(at)
            self._file.readinto(target[:wanted])
        return wanted

    def close(self) -> None:
        self._file.close()


@lru_cache(FILESYSTEMS_KEPT)
def _filesystem(folder: str) -> tuple[pafs.FileSystem, str]:
    """Kept, because to set one up takes requests of its own."""
    # Arrow does not know Hadoop's name of S3.
    filesystem, path = pafs.FileSystem.from_uri(re.sub("^s3a:", "s3:", folder))
    return filesystem, path


class Window:
    """A file's bytes up to a limit, read ahead in pieces that grow while they are read one after the other.

    What it gives are parts of its buffers; nothing is copied but the beginning of a part whose end is not there yet.
    """

    def __init__(self, source: Source, limit: int, ahead: int, most: int) -> None:
        """:param ahead: bytes of the first piece. :param most: of the largest that was not asked for."""
        self._source, self._limit, self._ahead, self._most = source, limit, ahead, most
        self._start = 0
        self._buffer = pa.py_buffer(b"")

    def view(self, at: int, size: int) -> pa.Buffer:
        """``size`` bytes from ``at`` on, below the limit. Raises EOFError with the file's end if it ends before."""
        if at < self._start or at + size > self._start + self._buffer.size:
            self._load(at, size)
        return self._buffer.slice(at - self._start, size)

    def _load(self, at: int, size: int) -> None:
        wanted = max(size, min(self._ahead, self._limit - at))
        self._ahead = max(self._ahead, min(self._ahead * 2, self._most))
        buffer = pa.allocate_buffer(wanted)
        target = memoryview(buffer).cast("B")
        kept = self._start + self._buffer.size - at
        if kept > 0 and at >= self._start:
            target[:kept] = memoryview(self._buffer.slice(at - self._start)).cast("B")
        else:
            kept = 0
        got = kept + self._source.read_into(target[kept:], at + kept)
        if got < size:
            raise EOFError(at + got)
        self._start, self._buffer = at, buffer.slice(0, got)
