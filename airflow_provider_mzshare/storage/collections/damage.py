"""What of a collection's log is damaged, and which files it names as far as it can be read. Repairs nothing.

The log's files are read directly, because a library that finds a damaged log says nothing else about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.fs as pafs
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.errors import BadCollection, MzShareError, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import log
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import Vector
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of

_NAMED = 5
"""How many damages one message names."""


@dataclass(frozen=True)
class Damage:
    """``file`` is relative to the collection; ``problem`` goes on where its name ends."""

    file: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file} {self.problem}"


class DamagedCollection(BadCollection):
    """Part of it is gone or cannot be read. A retry does not help: its table needs RESNAPSHOT."""

    def __init__(self, collection: str, damages: tuple[Damage, ...]) -> None:
        self.damages, self.named = damages, in_collection(collection, damages)
        super().__init__(collection, f"it is damaged: {told(damages)}")
        self.hint = "mzshare check TABLE, and ALTER TABLE … RESNAPSHOT"


def in_collection(collection_id: str, damages: Iterable[Damage]) -> tuple[Damage, ...]:
    """With the collection's folder in their names: a table has several."""
    return tuple(Damage(f"{collection_id}/{damage.file}", damage.problem) for damage in damages)


def told(damages: tuple[Damage, ...]) -> str:
    more = f"; and {len(damages) - _NAMED} more" if len(damages) > _NAMED else ""
    return "; ".join(str(damage) for damage in damages[:_NAMED]) + more


def brief(error: BaseException) -> str:
    """A library's message without the structures and stack traces that it appends."""
    if isinstance(error, MzShareError):
        return error.message
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.partition("{")[0].strip().rstrip(":")[:200]


def unreadable(uri: str, collection_id: str, error: Exception) -> BadCollection | WarehouseUnreachable:
    """Why a collection cannot be loaded: its log is damaged, or the warehouse cannot be reached at present."""
    if not fault_of(error):
        try:
            if damages := tuple(LogCheck(log.open_filesystem(uri)).damages):
                return DamagedCollection(collection_id, damages)
        except (OSError, DeltaError) as other:
            error = other
    return WarehouseUnreachable(collection_id, brief(error))


@dataclass(frozen=True)
class Added:
    """A data file as the log describes it; ``rows`` is None if the log does not say, ``vector`` if it has none."""

    size: int
    rows: int | None
    vector: Vector | None = None


class LogCheck:
    """Everything of a log that can be read, and a list of what cannot."""

    def __init__(self, filesystem: pafs.FileSystem) -> None:
        self._files = filesystem
        self.listed = log.list_log(filesystem)
        self._part = tuple(version for version in self.listed.entries if version >= self.base)
        self.entries: dict[int, log.Entry] = {}
        self.damages: list[Damage] = [*self._missing(), *self._unreadable()]

    @property
    def newest(self) -> int:
        return max(self._part, default=-1)

    @property
    def base(self) -> int:
        """The oldest version that can be loaded: 0, or that of a checkpoint if older entries were removed."""
        oldest = min(self.listed.entries, default=0)
        return 0 if oldest == 0 else min(self.listed.checkpoints, default=0)

    def _missing(self) -> Iterator[Damage]:
        entries = self._part
        if not entries:
            yield Damage(log.LOG, "has no entries")
            return
        if entries[0] > 0 and not any(version >= entries[0] - 1 for version in self.listed.checkpoints):
            yield Damage(log.entry_path(entries[0] - 1), "is missing, and no checkpoint replaces it")
        for version in sorted(set(range(entries[0], entries[-1])) - set(entries)):
            yield Damage(log.entry_path(version), "is missing")
        pointed = f"{log.LOG}/_last_checkpoint"
        try:
            last = log.last_checkpoint(self._files)
        except (ValueError, KeyError, TypeError):
            yield Damage(pointed, "is not whole")
            return
        if last is not None and last not in self.listed.checkpoints:
            yield Damage(pointed, f"points to checkpoint {last}, which is missing")

    def _unreadable(self) -> Iterator[Damage]:
        for version in self._part:
            try:
                entry = log.read_entry(self._files, version)
            except (ValueError, TypeError):
                yield Damage(log.entry_path(version), "is not whole: it holds no valid JSON")
                continue
            if entry is None or not any("commitInfo" in action for action in entry.actions):
                yield Damage(log.entry_path(version), "is not whole: it holds no commit")
            else:
                self.entries[version] = entry
        for path in self.listed.checkpoints.values():
            if log.checkpoint_columns(self._files, path, ("protocol", "metaData")) is None:
                yield Damage(path, "is not whole: it is not a readable checkpoint")

    # ── what it names ─────────────────────────────────────────────────────────────────────────────────────────────────

    def needed(self, first: int, last: int) -> dict[str, list[Added]]:
        """The files that some version from ``first`` to ``last`` needs, as far as the log can be read; a file may have
        had several vectors."""
        named = {path: [added] for path, added in self.active(first).items()}
        for version in range(first + 1, last + 1):
            if entry := self.entries.get(version):
                for path, added in _adds(entry).items():
                    named.setdefault(path, []).append(added)
        return named

    def active(self, version: int) -> dict[str, Added]:
        found = self._of_checkpoint() if self.base else {}
        for number in range(self.base + 1 if self.base else 0, version + 1):
            if entry := self.entries.get(number):
                for path in entry.removed():
                    found.pop(path, None)
                found |= _adds(entry)
        return found

    def properties(self) -> Mapping[str, str]:
        """Those of the table, as the newest entry or else the oldest checkpoint has them."""
        for version in sorted(self.entries, reverse=True):
            for action in self.entries[version].actions:
                if "metaData" in action:
                    return dict(action["metaData"].get("configuration") or {})
        path = self.listed.checkpoints.get(self.base)
        columns = log.checkpoint_columns(self._files, path, ("metaData",)) if path else None
        rows = columns.column("metaData").to_pylist() if columns is not None else []
        return next((dict(row["configuration"] or {}) for row in rows if row), {})

    def _of_checkpoint(self) -> dict[str, Added]:
        columns = log.checkpoint_columns(self._files, self.listed.checkpoints[self.base], ("add",))
        rows = columns.column("add").to_pylist() if columns is not None else []
        return {row["path"]: _added(row) for row in rows if row}


def _adds(entry: log.Entry) -> dict[str, Added]:
    return {action["add"]["path"]: _added(action["add"]) for action in entry.actions if "add" in action}


def _added(add: Mapping[str, Any]) -> Added:
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    return Added(add["size"], stats.get("numRecords"), Vector.from_log(add.get("deletionVector")))
