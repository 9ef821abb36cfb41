"""What lies in a partition's folder, whatever the catalog says: which segments there are, and the removal of one."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import folder_of
from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.collections.vectors.puts import names_of_objects, remove_object

_NAME = re.compile(r"([0-9]{10,})-([0-9]{8,})\.journal")


def list_epochs(root: str, journal: JournalId, partition: int, *, after: int = 0) -> int:
    """The greatest epoch that any segment file of the partition carries; 0 if none does.

    :param after: only greater ones count.
    """
    return max((epoch for epoch, _ in list_segments(root, journal, partition, after=after)), default=0)


def list_segments(root: str, journal: JournalId, partition: int, *, after: int = 0) -> list[tuple[int, int]]:
    """Epoch and number of each segment file, in order. There may be some that were never announced.

    :param after: without those of this epoch and of earlier ones. An object store does not list them.
    """
    folder = f"{folder_of(journal)}/{partition}"
    local = local_path(root)
    if local is None:
        names = names_of_objects(root, folder, after=f"{after + 1:010d}")
    else:
        names = _names_of_files(local, folder)
    found = [(int(match[1]), int(match[2])) for name in names if (match := _NAME.fullmatch(name))]
    return sorted(each for each in found if each[0] > after)


def remove_segment(root: str, path: str) -> None:
    """Remove a segment that nobody needs, and its index. One that is gone already is no error.

    :param path: below the warehouse.
    """
    local = local_path(root)
    if local is None:
        remove_object(root, path)
        return
    # The index first: it would be found by nobody afterwards.
    for name in (path + index.SUFFIX, path):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(local, name))


def _names_of_files(root: str, folder: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, folder))
    except FileNotFoundError:
        # Raised again where the warehouse is not there either.
        os.stat(root)
        return []
