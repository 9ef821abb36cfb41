"""Durability on a local disk: delta-rs does not fsync, so the writer flushes the file system. Nothing for URIs."""

from __future__ import annotations

import ctypes
import os
import tempfile
from urllib.parse import unquote, urlsplit


def local_path(root: str) -> str | None:
    """The path of a warehouse on a local disk; None for an object store, whose answers are durable."""
    parts = urlsplit(root)
    if parts.scheme == "file":
        return unquote(parts.path)
    return None if "://" in root else root


def flush_path(path: str | os.PathLike[str]) -> None:
    """Return once a file's bytes, or a folder's names, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


PROBE_BYTES = 1024 * 1024


def probe_storage(root: str) -> None:
    """Write, flush and remove a small file below a local ``root``. Raises OSError; says nothing about URIs."""
    path = local_path(root)
    if path is None:
        return
    with tempfile.NamedTemporaryFile(dir=path, prefix=".mzshare-probe-") as file:
        file.write(b"\0" * PROBE_BYTES)
        file.flush()
        os.fsync(file.fileno())


def sync_filesystem(root: str) -> None:
    """Return once everything written to the file system that holds ``root`` is on the disk. Raises OSError.

    Twice a tick: before the Delta commits, so that no log entry names a file that a power cut empties, and before the
    tick's commit in the catalog, so that the catalog never knows more than the disk.
    """
    path = local_path(root)
    if path is None:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
