"""Where a segment's bytes go: a file on a local disk that grows, or an object that is put once. Knows no content."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Protocol

import pyarrow as pa

from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.storage.collections.durability import flush_path, local_path
from airflow_provider_mzshare.storage.collections.vectors.puts import put_if_absent

_BUFFERED = 1 << 20


class Sink(Protocol):
    once: bool
    """Whether the first flush is the last."""

    def write(self, data: bytes | pa.Buffer) -> None: ...

    def note(self, offset: int, byte: int) -> None:
        """A block whose first message has this offset begins at this byte."""
        ...

    def flush(self) -> None:
        """Return once all that was written is durable, under its name. FileExistsError where the name was taken."""
        ...

    def close(self) -> None:
        """What was not flushed may be lost."""
        ...


def create_sink(root: str, path: str, *, begins: bool, umask: int | None = None) -> Sink:
    """Raises FileExistsError, or leaves that to the first flush.

    :param root: the warehouse. :param path: below it.
    :param umask: of files and folders that are made on a disk; None: the process's.
    :param begins: whether the file may be the first in its folder. Else a folder that is missing is not made: its disk
        is away, or its files are gone.
    """
    local = local_path(root)
    if local is None:
        return _Object(root, path)
    try:
        if begins:
            _make_folders(local, path, umask)
        return _File(local, path, umask)
    except FileNotFoundError as error:
        why = "the journal's folder is gone; is the warehouse's disk mounted?"
        raise OSError(errno.ENODEV, why, str(Path(local, path).parent)) from error


def _folders_of(path: str) -> list[str]:
    """From the one that has the file up to the warehouse, which is the last."""
    return [str(folder) for folder in PurePosixPath(path).parents]


def _make_folders(root: str, path: str, umask: int | None) -> None:
    """Not the warehouse itself: one that is gone must not come back empty."""
    for folder in map(Path(root).joinpath, reversed(_folders_of(path)[:-1])):
        with suppress(FileExistsError):
            os.mkdir(folder, _mode(0o777, umask))
            if umask is not None:
                os.chmod(folder, _mode(0o777, umask))


def _create(file: str, flags: int, umask: int | None) -> int:
    """Its descriptor. At no time others may do more with it than they may in the end."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, _mode(0o666, umask))
    if umask is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) != _mode(0o666, umask):
        os.fchmod(descriptor, _mode(0o666, umask))
    return descriptor


def _mode(most: int, umask: int | None) -> int:
    return most if umask is None else most & ~umask


class _File:
    once = False

    def __init__(self, root: str, path: str, umask: int | None) -> None:
        self._root, self._path, self._umask = root, path, umask
        self._file = os.path.join(root, path)
        self._descriptor = _create(self._file, os.O_EXCL, umask)
        self._waiting = bytearray()
        self._is_named = self._is_closed = False
        self._noted = 0

    def write(self, data: bytes | pa.Buffer) -> None:
        self._waiting += memoryview(data)
        if len(self._waiting) >= _BUFFERED:
            self._write_out()

    def note(self, offset: int, byte: int) -> None:
        if byte - self._noted < index.EVERY:
            return
        self._noted = byte
        # An aid only: without it, readers walk from block to block.
        with suppress(OSError):
            descriptor = _create(self._file + index.SUFFIX, os.O_APPEND, self._umask)
            try:
                os.write(descriptor, index.entry(offset, byte))
            finally:
                os.close(descriptor)

    def flush(self) -> None:
        self._write_out()
        os.fdatasync(self._descriptor)
        if not self._is_named:
            # Also folders that were there: another process may have made them, and died before it flushed them.
            for folder in _folders_of(self._path):
                flush_path(os.path.join(self._root, folder))
            self._is_named = True

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            # What is left to be told is of bytes that nobody will announce.
            with suppress(OSError):
                os.close(self._descriptor)

    def _write_out(self) -> None:
        with memoryview(self._waiting) as data:
            done = 0
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        self._waiting.clear()


class _Object:
    once = True

    def __init__(self, root: str, path: str) -> None:
        self._root, self._path = root, path
        self._content = bytearray()

    def write(self, data: bytes | pa.Buffer) -> None:
        self._content += memoryview(data)

    def note(self, offset: int, byte: int) -> None:
        pass

    def flush(self) -> None:
        if put_if_absent(self._root, self._path, bytes(self._content)) == "refused":
            raise FileExistsError(errno.EEXIST, "the object is there already", f"{self._root}/{self._path}")

    def close(self) -> None:
        self._content = bytearray()
