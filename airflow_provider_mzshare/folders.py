"""Folders that are ours: made for their owner alone, unless the user says otherwise. What is there keeps its mode."""

from __future__ import annotations

from pathlib import Path

PRIVATE = 0o077
"""As a umask: nothing for the group and for others."""


def make_folder(folder: Path, mask: int = PRIVATE) -> None:
    """With all that is missing above it, which ``Path.mkdir`` would leave to the process' umask."""
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another made it meanwhile
        path.chmod(0o777 & ~mask)
    folder.mkdir(exist_ok=True)
