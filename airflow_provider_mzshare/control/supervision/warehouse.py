"""Collections' folders in the warehouse: which are there, and the removal of one. Never touches anything else there."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.settings import is_local
from airflow_provider_mzshare.storage.collections.log import open_filesystem

_COLLECTION = re.compile(r"u[1-9][0-9]*-g[1-9][0-9]*-[a-z]+-[0-9a-f]+")


def collection_folders(root: str) -> frozenset[str]:
    if is_local(root):
        names = [path.name for path in Path(root).iterdir()] if Path(root).is_dir() else []
    else:
        found = open_filesystem(root).get_file_info(pafs.FileSelector("", recursive=False, allow_not_found=True))
        names = [info.path.strip("/") for info in found]
    return frozenset(name for name in names if _COLLECTION.fullmatch(name))


def remove_collection(root: str, name: str) -> None:
    if not _COLLECTION.fullmatch(name):
        raise TerminalError(f"{name!r} is not the folder of a collection")
    if is_local(root):
        remove_folder(Path(root) / name)
    else:
        open_filesystem(root).delete_dir(name)


def remove_folder(path: Path) -> None:
    """Remove the folder and everything in it. Several may do so at once: files that are gone already are no error."""
    while path.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(path)
