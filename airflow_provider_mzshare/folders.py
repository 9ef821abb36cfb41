"""Folders that are ours: made for their owner alone, unless the user says otherwise. What is there keeps its mode."""

from __future__ import annotations

from pathlib import Path

PRIVATE = 0o077
"""As a umask: nothing for the group and for others."""


def make_folder(folder: Path, mask: int = PRIVATE) -> None:
    """Create the folder and its missing parents with this umask; ``Path.mkdir`` would create parents with another."""
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another process created it meanwhile
        path.chmod(0o777 & ~mask)
    folder.mkdir(exist_ok=True)
