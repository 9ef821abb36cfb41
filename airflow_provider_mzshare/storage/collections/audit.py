"""What the log of a collection says was done, and which files it names: for repair, maintenance and tests."""

from __future__ import annotations

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.errors import BadCollection
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.log import TickCommit
from airflow_provider_mzshare.storage.collections.vectors.live_files import LogIncomplete, live_files
from airflow_provider_mzshare.storage.fanout.plan import EVENTS

_OURS = ("_change_data/", f"{EVENTS}/")


def transactions(collection: Collection) -> list[TickCommit]:
    """The ticks in the log, oldest first, as far back as it still has its entries."""
    collection.refresh()
    commits = (entry.tick(collection.collection_id) for entry in deltalog.read_part(collection.filesystem))
    return [commit for commit in commits if commit]


def named_files(
    collection: Collection, *, from_version: int | None = None, to_version: int | None = None
) -> frozenset[str]:
    """The data files and vectors that some version of a range needs, and the change files of the range's entries; by
    default, of all versions that can be read.

    A file of a later version either is in the first version or was added by a later entry, so no file is missed.
    """
    collection.refresh()
    first = _oldest_readable(collection) if from_version is None else from_version
    last = collection.delta_version if to_version is None else to_version
    named = set(active_files(collection, first))
    if oldest := deltalog.read_entry(collection.filesystem, first):
        named.update(oldest.changes())
    for version in range(first + 1, last + 1):
        entry = deltalog.read_entry(collection.filesystem, version)
        if entry is None:
            raise BadCollection(collection.collection_id, f"log entry {version} is missing")
        named.update((*entry.added(), *entry.vectors(), *entry.changes()))
    return frozenset(named)


def removed_files(collection: Collection, *, to_version: int) -> frozenset[str]:
    """Files and vectors that a version no longer has, and change files of entries before it, as far back as the log
    goes. No later version needs them: what was removed is never added again."""
    removed: set[str] = set()
    entries = deltalog.read_part(collection.filesystem, to_version=to_version)
    # And that of the checkpoint with which the log begins. Whosever it is: what is needed is left out in the end.
    if entries and (first := deltalog.read_entry(collection.filesystem, entries[0].version - 1)):
        entries.insert(0, first)
    for entry in entries:
        removed.update((*entry.removed(), *entry.removed_vectors(), *entry.vectors()))
        removed.update(entry.changes() if entry.version < to_version else ())
    return frozenset(removed - set(active_files(collection, to_version)))


def active_files(collection: Collection, version: int) -> list[str]:
    """The files that a read at ``version`` needs: those with rows, and those with vectors."""
    try:
        actions = DeltaTable(collection.uri, version=version).get_add_actions()
        files = live_files(collection.filesystem, version).files if collection.has_vectors else {}
    except (DeltaError, OSError, LogIncomplete) as error:
        raise BadCollection(collection.collection_id, f"version {version} cannot be read: {brief(error)}") from error
    vectors = {file.vector.path for file in files.values() if file.vector and file.vector.path}
    return [*(str(path) for path in actions.column("path").to_pylist()), *sorted(vectors)]


def data_files(collection: Collection) -> list[pafs.FileInfo]:
    """Every data file in the collection's folder, also those that no commit names: vectors, change files, events."""
    infos = collection.filesystem.get_file_info(pafs.FileSelector("", recursive=True))
    return [i for i in infos if i.type == pafs.FileType.File and _is_data(i.path)]


def _is_data(path: str) -> bool:
    return not path.startswith(("_", ".")) or path.startswith(_OURS)


def unnamed_files(collection: Collection) -> frozenset[str]:
    """Data files that no readable version names: not committed yet, or left over from an attempt that failed."""
    # The folder is listed before the log is read: a file that is committed in between is not taken for a leftover.
    present = {info.path for info in data_files(collection)}
    return frozenset(present - named_files(collection))


def _oldest_readable(collection: Collection) -> int:
    log = deltalog.list_log(collection.filesystem)
    if 0 in log.entries or not log.checkpoints:
        return 0
    return min(log.checkpoints)
