"""The files of a collection at one version, with their deletion vectors: replayed from its log.

delta-rs loads the same, and does not tell of vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_mzshare.errors import BadCollection
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector


class LogIncomplete(ValueError):
    """The log does not have every entry that a version needs."""


@dataclass(frozen=True)
class LiveFile:
    """A data file as the log names it.

    :param rows: in the file, those that its vector takes away included; None if the log does not say.
    :param modified: milliseconds since 1970.
    """

    path: str
    size: int
    stats: str
    modified: int
    vector: Vector | None = None

    @classmethod
    def from_log(cls, add: Mapping[str, Any]) -> LiveFile:
        vector = Vector.from_log(add.get("deletionVector"))
        return cls(add["path"], add["size"], add.get("stats") or "", add.get("modificationTime") or 0, vector)

    @property
    def rows(self) -> int | None:
        found: int | None = json.loads(self.stats).get("numRecords") if self.stats else None
        return found

    @property
    def deleted(self) -> int:
        return self.vector.cardinality if self.vector else 0

    def with_vector(self, vector: Vector | None) -> LiveFile:
        return replace(self, vector=vector)


@dataclass(frozen=True)
class LiveFiles:
    """:param files: by their paths."""

    version: int
    files: Mapping[str, LiveFile] = field(default_factory=dict)

    def followed_by(self, entry: deltalog.Entry) -> LiveFiles:
        """The files after the next entry."""
        if entry.version != self.version + 1:
            raise LogIncomplete(f"entry {entry.version} does not follow version {self.version}")
        files = dict(self.files)
        for path in entry.removed():
            files.pop(path, None)
        files.update((add["path"], LiveFile.from_log(add)) for add in _adds(entry))
        return LiveFiles(entry.version, files)


def live_files(filesystem: pafs.FileSystem, version: int) -> LiveFiles:
    """The files at ``version``, from the newest checkpoint at or before it and the entries after that.

    Raises LogIncomplete where an entry is missing: entries below a gap are no part of the log.
    """
    listed = deltalog.list_log(filesystem)
    base = max((at for at in listed.checkpoints if at <= version), default=None)
    found = _empty() if base is None else LiveFiles(base, _of_checkpoint(filesystem, base))
    for number in range(found.version + 1, version + 1):
        entry = deltalog.read_entry(filesystem, number)
        if entry is None:
            raise LogIncomplete(f"log entry {number} is missing")
        found = found.followed_by(entry)
    return found


def files_at(collection: Collection) -> LiveFiles:
    """The files of the version that is loaded."""
    try:
        return live_files(collection.filesystem, collection.delta_version)
    except LogIncomplete as error:
        raise BadCollection(collection.collection_id, str(error)) from error


def _empty() -> LiveFiles:
    """Before the first entry."""
    return LiveFiles(-1)


def _adds(entry: deltalog.Entry) -> Iterable[Mapping[str, Any]]:
    return (action["add"] for action in entry.actions if "add" in action)


def _of_checkpoint(filesystem: pafs.FileSystem, version: int) -> dict[str, LiveFile]:
    """All parts of it, if it has several."""
    files: dict[str, LiveFile] = {}
    for path in deltalog.checkpoint_parts(filesystem, version):
        with filesystem.open_input_file(path) as file:
            # Only in this thread: Arrow's threads could release the file's bytes after the interpreter has ended.
            adds = pq.ParquetFile(file, pre_buffer=False).read(["add"], use_threads=False).column("add")
        files.update((add["path"], LiveFile.from_log(add)) for add in adds.drop_null().to_pylist())
    return files
