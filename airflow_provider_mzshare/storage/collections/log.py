"""The entries of one Delta log, read as they lie in storage; nothing here writes or decides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler

from airflow_provider_mzshare.core.ticklog.log_upkeep import log_part
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of

LOG = "_delta_log"
METADATA_PREFIX = "mz_"
ENTRY_ID = "mz_entry"
"""In every entry that we write ourselves: tells it from any other that may stand at the same version."""

_ENTRY = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(\.[^/]*)?\.parquet")
_ANY_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(\.[^/]*)?\.(parquet|json)")
"""Also the forms that other writers make, and that are not read here."""


@dataclass(frozen=True)
class TickCommit:
    """A log entry that carries a tick: its own version, the tick's time, and what the writer noted about it."""

    version: int
    mz_timestamp: int
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class Entry:
    """One commit of the log."""

    version: int
    actions: tuple[Mapping[str, Any], ...]

    def added(self) -> Iterator[str]:
        return (action["add"]["path"] for action in self.actions if "add" in action)

    def removed(self) -> Iterator[str]:
        return (action["remove"]["path"] for action in self.actions if "remove" in action)

    def vectors(self) -> Iterator[str]:
        """The files with the deletion vectors that files have from here on."""
        return self._vectors("add")

    def removed_vectors(self) -> Iterator[str]:
        """Those that files had up to here. The entry that gave them may be long gone."""
        return self._vectors("remove")

    def _vectors(self, kind: str) -> Iterator[str]:
        found = (Vector.from_log(action[kind].get("deletionVector")) for action in self.actions if kind in action)
        return (vector.path for vector in found if vector and vector.path)

    def changes(self) -> Iterator[str]:
        """The files of the change feed: what the commit did to rows. No read of rows needs them."""
        return (action["cdc"]["path"] for action in self.actions if "cdc" in action)

    @property
    def entry_id(self) -> str | None:
        """What tells an entry of our own from any other at its version; None for those that others wrote."""
        infos = (action["commitInfo"] for action in self.actions if "commitInfo" in action)
        return next((info.get(ENTRY_ID) for info in infos), None)

    def tick(self, app_id: str) -> TickCommit | None:
        """The tick this entry carries for ``app_id``, if any."""
        times = [a["txn"]["version"] for a in self.actions if "txn" in a and a["txn"]["appId"] == app_id]
        if not times:
            return None
        info: Mapping[str, Any] = next((a["commitInfo"] for a in self.actions if "commitInfo" in a), {})
        noted = {key: str(value) for key, value in info.items() if key.startswith(METADATA_PREFIX) and key != ENTRY_ID}
        return TickCommit(self.version, times[-1], noted)


@dataclass(frozen=True)
class LogFiles:
    """What lies in the log folder: versions that have their entry, and versions that have a checkpoint.

    A commit that comes late may land where an entry was removed long ago. No reader sees it, and no version builds upon
    it. So only ``part`` is the log.
    """

    entries: tuple[int, ...]
    checkpoints: Mapping[int, str]

    @property
    def part(self) -> tuple[int, ...]:
        """The entries that are part of the log."""
        return tuple(sorted(log_part(self.entries, self.checkpoints)))


def read_part(filesystem: pafs.FileSystem, *, to_version: int | None = None) -> list[Entry]:
    """The entries that are part of the log, oldest first. They are read before the listing that tells which are: an
    entry that is read later may have come into a hole that was made since."""
    found = (v for v in list_log(filesystem).entries if to_version is None or v <= to_version)
    read = [entry for entry in (read_entry(filesystem, version) for version in found) if entry]
    part = frozenset(list_log(filesystem).part)
    return [entry for entry in read if entry.version in part]


def open_filesystem(uri: str) -> pafs.FileSystem:
    """The storage below a table, with paths relative to it: one way for local disks and object stores."""
    return pafs.PyFileSystem(DeltaStorageHandler(uri))


def entry_path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def has_entry(filesystem: pafs.FileSystem, version: int) -> bool:
    return bool(filesystem.get_file_info(entry_path(version)).type == pafs.FileType.File)


def read_entry(filesystem: pafs.FileSystem, version: int) -> Entry | None:
    """One commit, or None where its entry is gone."""
    try:
        with filesystem.open_input_file(entry_path(version)) as file:
            text = file.read().decode()
    except FileNotFoundError:
        return None
    return Entry(version, tuple(json.loads(line) for line in text.splitlines() if line.strip()))


def versions_named(names: Iterable[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The versions whose entry is among these names of the log's folder, and those with a checkpoint in any form."""
    entries, checkpoints = set(), set()
    for name in names:
        if match := _ENTRY.fullmatch(name):
            entries.add(int(match[1]))
        elif match := _ANY_CHECKPOINT.fullmatch(name):
            checkpoints.add(int(match[1]))
    return tuple(sorted(entries)), tuple(sorted(checkpoints))


def list_log(filesystem: pafs.FileSystem) -> LogFiles:
    entries, checkpoints = [], {}
    for info in filesystem.get_file_info(pafs.FileSelector(LOG, allow_not_found=True)):
        name = info.path.rpartition("/")[2]
        if match := _ENTRY.fullmatch(name):
            entries.append(int(match[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            checkpoints[int(match[1])] = info.path
    return LogFiles(tuple(sorted(entries)), checkpoints)


def checkpoint_parts(filesystem: pafs.FileSystem, version: int) -> list[str]:
    """The files of a checkpoint: one, or several that belong together."""
    infos = filesystem.get_file_info(pafs.FileSelector(LOG))
    found = [
        info.path for info in infos if (match := _CHECKPOINT.fullmatch(info.base_name)) and int(match[1]) == version
    ]
    single = entry_path(version).replace(".json", ".checkpoint.parquet")
    return [single] if single in found else sorted(found)


def last_checkpoint(filesystem: pafs.FileSystem) -> int | None:
    """The checkpoint that readers begin with, from ``_last_checkpoint``; None if there is no such file."""
    try:
        with filesystem.open_input_file(f"{LOG}/_last_checkpoint") as file:
            return int(json.loads(file.read())["version"])
    except FileNotFoundError:
        return None


def checkpoint_columns(filesystem: pafs.FileSystem, path: str, names: Sequence[str]) -> pa.Table | None:
    """Columns of a checkpoint, each with a value somewhere; None where it cannot give them."""
    try:
        with filesystem.open_input_file(path) as file:
            # Only in this thread: Arrow's threads could release the file's bytes after the interpreter has ended.
            table = pq.ParquetFile(file, pre_buffer=False).read(list(names), use_threads=False).select(list(names))
    except (OSError, ValueError, KeyError) as error:
        if fault_of(error):
            raise
        return None
    needed = [name for name in names if name in ("protocol", "metaData")]
    return table if all(table.column(name).null_count < table.num_rows for name in needed) else None


def find_tick(filesystem: pafs.FileSystem, app_id: str, mz_timestamp: int, *, newest: int) -> TickCommit | None:
    """The entry that carries a tick, searched backwards from ``newest``; None if no remaining entry does.

    A tick's version is never "the newest version after my commit": a compaction may have come between.
    """
    for version in range(newest, -1, -1):
        entry = read_entry(filesystem, version)
        if entry is None:
            return None
        commit = entry.tick(app_id)
        if commit and commit.mz_timestamp <= mz_timestamp:
            return commit if commit.mz_timestamp == mz_timestamp else None
    return None


def ticks_after(filesystem: pafs.FileSystem, app_id: str, mz_timestamp: int, *, newest: int) -> list[TickCommit] | None:
    """The entries that carry ticks later than a time, oldest first; None where the log does not reach back so far."""
    found: list[TickCommit] = []
    for version in range(newest, -1, -1):
        entry = read_entry(filesystem, version)
        if entry is None:
            return None
        commit = entry.tick(app_id)
        if commit and commit.mz_timestamp <= mz_timestamp:
            break
        if commit:
            found.append(commit)
    return found[::-1]
