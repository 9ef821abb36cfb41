"""Folders of collections and of journals in the warehouse: which are there, and the removal of one.

Never touches anything else there.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from airflow_provider_mzshare.core.ids import JournalId, journal_of
from airflow_provider_mzshare.core.journal.state import folder_of
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


def journal_folders(root: str) -> frozenset[JournalId]:
    """The journals whose folders are there."""
    above = folder_of(JournalId("")).rstrip("/")
    if is_local(root):
        folder = Path(root) / above
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    else:
        found = open_filesystem(root).get_file_info(pafs.FileSelector(above, recursive=False, allow_not_found=True))
        names = [info.base_name for info in found]
    journals = [JournalId(f"journal:{name}") for name in names]
    return frozenset(journal for journal in journals if journal_of(journal) == journal)


def remove_journal(root: str, journal: JournalId) -> None:
    """One that has no folder, or not any more, is no error."""
    if journal_of(journal) != journal:
        raise TerminalError(f"{journal!r} is not a journal")
    if is_local(root):
        remove_folder(Path(root) / folder_of(journal))
    else:
        with suppress(FileNotFoundError):
            open_filesystem(root).delete_dir(folder_of(journal))


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
