"""Removes files that no read from ``since`` on can need. Never removes a file that may still be committed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.fs as pafs

from airflow_provider_mzshare.core.ticklog.log_upkeep import log_removals, may_go_unnamed
from airflow_provider_mzshare.errors import BadCollection
from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.commit import MAX_FILE_AGE_S
from airflow_provider_mzshare.storage.collections.durability import sync_filesystem

MIN_AGE_UNNAMED = timedelta(hours=24)
"""Twice the age at which a writer no longer commits its own files."""
GRACE = timedelta(hours=1)


@dataclass(frozen=True)
class Expiry:
    """What was removed, or in a dry run would be; paths are relative to the collection."""

    data_files: tuple[str, ...] = ()
    log_files: tuple[str, ...] = ()
    bytes: int = 0


def expire(
    collection: Collection,
    *,
    keep_from_version: int,
    now: datetime,
    min_age_unnamed: timedelta = MIN_AGE_UNNAMED,
    grace: timedelta = GRACE,
    dry_run: bool = False,
) -> Expiry:
    """Remove log entries and data files that no version from ``keep_from_version`` on needs.

    ``keep_from_version`` answers for ``since`` as it stood ``grace`` ago: when it moved, only the caller knows. Here
    ``grace`` only refuses a version younger than that, where ``since`` cannot have stood so long.

    :param now: an aware time; ages are taken against storage's own times.
    """
    # The folder is listed before the log is read: a file that is committed in between is known to be named.
    present = audit.data_files(collection)
    collection.refresh()
    if not 0 <= keep_from_version <= collection.delta_version:
        raise BadCollection(collection.collection_id, f"there is no version {keep_from_version} to keep")
    if not _has_stood(collection, keep_from_version, now - grace):
        return Expiry()
    data = _unneeded_data(collection, keep_from_version, present, now - min_age_unnamed)
    log = _unneeded_log(collection, keep_from_version)
    if not dry_run and (data or log):
        # What is kept must be on the disk before the files that it replaces are removed.
        sync_filesystem(collection.root)
        # Data first: after a crash, the log entry still tells a file that was named once from one not yet committed.
        for info in (*data, *log):
            with contextlib.suppress(FileNotFoundError):
                collection.filesystem.delete_file(info.path)
    return Expiry(
        tuple(sorted(i.path for i in data)), tuple(sorted(i.path for i in log)), sum(i.size for i in (*data, *log))
    )


def _has_stood(collection: Collection, version: int, since: datetime) -> bool:
    info = collection.filesystem.get_file_info(deltalog.entry_path(version))
    return bool(info.type == pafs.FileType.File and info.mtime <= since)


def _unneeded_data(
    collection: Collection, keep_from: int, present: list[pafs.FileInfo], written_before: datetime
) -> list[pafs.FileInfo]:
    """Files that the log has removed, of any age; files that no entry ever named, only if they are old.

    A removed file is never added again. Entries that earlier runs have used are no longer in the log, so only newer
    entries are read. All entries since ``keep_from`` are read only if there are old files that nothing names.
    """
    # Loading the version that is kept proves that it can be read without the files that are removed.
    gone = audit.removed_files(collection, to_version=keep_from)
    old = [i for i in present if i.path not in gone and i.mtime <= written_before and _is_late(collection, i)]
    known = set(audit.active_files(collection, collection.delta_version)) if old else set()
    if any(info.path not in known for info in old):
        known |= audit.named_files(collection, from_version=keep_from)
    never = {info.path for info in old} - known
    return [i for i in present if i.path in gone or i.path in never]


def _is_late(collection: Collection, info: pafs.FileInfo) -> bool:
    """Can no commit that sleeps still name a file that no entry names? Of a collection with vectors: a commit is put at
    one version only, and its writer has loaded the version before that while the file was young. So the log must have
    gone on since."""
    if not collection.has_vectors:
        return True
    newest = collection.filesystem.get_file_info(deltalog.entry_path(collection.delta_version)).mtime
    young = timedelta(seconds=MAX_FILE_AGE_S)
    # When the file was no longer young, the newest version was one from before the newest entry of now.
    passed = newest is not None and newest > info.mtime + young
    listed = collection.delta_version - int(passed)
    return may_go_unnamed(young, min_age=young, newest_when_listed=listed, newest=collection.delta_version)


def _unneeded_log(collection: Collection, keep_from: int) -> list[pafs.FileInfo]:
    """Log files before the newest checkpoint that ``keep_from`` can be loaded from; none without such a checkpoint.

    In the order of their removal: whoever finds an entry can tell by what is before it whether it is in a hole.
    """
    log = deltalog.list_log(collection.filesystem)
    # Readers fail if the checkpoint that ``_last_checkpoint`` names is missing, even if there is a newer one.
    pointed = deltalog.last_checkpoint(collection.filesystem)

    def is_usable(version: int) -> bool:
        return pointed is not None and version <= pointed and _is_whole(collection, log.checkpoints[version])

    gone = log_removals(log.entries, log.checkpoints, keep_from=keep_from, is_usable=is_usable)
    paths = [path for version in gone.checkpoints for path in deltalog.checkpoint_parts(collection.filesystem, version)]
    paths += [deltalog.entry_path(version) for version in gone.entries]
    return list(collection.filesystem.get_file_info(paths)) if paths else []


def _is_whole(collection: Collection, path: str) -> bool:
    """Is this checkpoint complete without older entries? It must have protocol, metadata and our transaction."""
    table = deltalog.checkpoint_columns(collection.filesystem, path, ("protocol", "metaData", "txn"))
    return table is not None and any(
        txn and txn.get("appId") == collection.collection_id for txn in table.column("txn").to_pylist()
    )
