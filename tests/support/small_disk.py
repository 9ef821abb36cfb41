"""A real file system that is soon full, for any user: mounted here, or in a namespace where the user is root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

INSIDE = "TEST_NAMESPACE"
"""Set where a test runs in a mount namespace of its own."""


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """``folder`` on a file system of ``size`` bytes, in memory. Tests that use it are marked ``mounts``."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        # Lazily: whoever still holds a file there lets go of the rest with it.
        _run("umount", "--lazy", str(folder))


def remount(folder: Path, how: str) -> None:
    """``ro`` or ``rw``."""
    _run("mount", "-o", f"remount,{how}", str(folder))


def fill(folder: Path, *, leave: int = 0) -> Path:
    """Take all room of the file system but ``leave`` bytes; removing the file gives it back."""
    filler = folder / ".filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, shutil.disk_usage(folder).free - leave))
    return filler


@cache
def may_mount() -> bool:
    try:
        with tempfile.TemporaryDirectory() as folder, small_disk(Path(folder), 4096):
            return True
    except subprocess.CalledProcessError:
        return False


def run_in_namespace(test: str, root: Path) -> None:
    """The same test once more, where this user is root of its own mounts. Nothing is skipped for want of rights."""
    assert INSIDE not in os.environ, "this user may not mount a tmpfs even in a user namespace of its own"
    command = [sys.executable, "-m", "pytest", "-qp", "no:cacheprovider", test]
    ran = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", *command],
        cwd=root,
        env={**os.environ, INSIDE: "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
