"""The folder of a collection with deletion vectors in memory: its files, its log with holes, its checkpoints.

``entries`` is what has happened, one entry per version. ``log`` is what lies in the folder: maintenance takes entries
away, and who comes late may put one where there was one before. Every version is looked at when it comes, and every
file when it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_provider_mzshare.core.ticklog.state import Tick
from tests.support.simulation.delta import Entry
from tests.support.simulation.keyed import Row
from tests.support.simulation.keyed_delta import KeyedDelta, Snapshot
from tests.support.simulation.mutants import Violation
from tests.support.simulation.vectors import CREATED, Files, LiveFile, Names, VectorChange, rewrite


class Storage:
    """What all collections have in common."""

    def __init__(self) -> None:
        self.hour = 0
        self.is_foreign = False
        """Somebody else removes log entries, so that old versions may not be read."""
        self.seen_late: int | None = None
        """Which names a listing looks at when others have come between: see ``list_log``. By chance if None."""


class VectorDelta(KeyedDelta):
    def __init__(self, name: str, kind: str, ticks: Sequence[Tick], storage: Storage) -> None:
        super().__init__(name, kind, ticks)
        self.storage = storage
        self.names = Names()
        self.objects: dict[str, Any] = {}
        """The files that are there."""
        self.contents: dict[str, Any] = {}
        """Of all files that ever were there: whoever has a mirror needs no file for the rows in it."""
        self.born: dict[str, int] = {}
        self.live: list[Files] = [{}]
        """The files of each version."""
        self.log: dict[int, Entry] = {0: Entry("", 0, 0, 0, change=CREATED)}
        self.landed = {0: storage.hour}
        """When each version came."""
        self.checkpoints: set[int] = set()
        self.in_holes = 0
        """How many entries were put where no log is any more."""

    @property
    def newest(self) -> int:
        return len(self.entries)

    def load(self) -> Snapshot:
        """From the newest checkpoint, so that holes are not met."""
        return Snapshot(self.newest, self.stored(self.name) or None, {})

    # ── what is written ───────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, name: str, content: Any) -> None:
        self.objects[name] = self.contents[name] = content
        self.born[name] = self.storage.hour

    def put(self, on: int, entry: Entry) -> bool:
        """Where there is no entry, whatever there was before."""
        version = on + 1
        if version in self.log:
            return False
        assert version <= self.newest + 1, "nobody plans on a version that has not been"
        self.log[version] = entry
        if version <= self.newest:
            self.in_holes += 1
            return True
        self.landed[version] = self.storage.hour
        self.append(entry)
        return True

    def overwrite(self, on: int, entry: Entry) -> bool:
        """As storage does that knows no conditional put: whoever has read what stood there has read something else."""
        if not self.put(on, entry):
            self.log[on + 1] = entry
            self.check_readable(on + 1)
        return True

    def land(self) -> bool:
        return self.put(*self.in_flight.pop(0))

    def append(self, entry: Entry) -> None:
        self.log[self.newest + 1] = entry
        self.landed.setdefault(self.newest + 1, self.storage.hour)
        super().append(entry)
        self._check_changes(entry.change)

    def _change_files(self, change: VectorChange) -> None:
        if missing := sorted(change.names() - self.objects.keys()):
            raise Violation(f"{self.name}: an entry names {missing}, which are not there")
        self.live.append(self.after(self.live[-1], change))

    def after(self, files: Files, change: VectorChange) -> Files:
        """As the entry says it. Vectors are read whether or not they are still there: see ``are_there``."""
        left = {path: file for path, file in files.items() if path not in change.removed}
        new = {path: LiveFile(v, self.contents[v][path]) if v else LiveFile() for path, v in change.added.items()}
        return {**left, **new}

    def newest_rows(self) -> list[Row]:
        return list(self._rows(self.live[-1]))

    def _rows(self, files: Files) -> Iterator[Row]:
        for path, file in files.items():
            yield from (row for number, row in enumerate(self.contents[path]) if number not in file.gone)

    def _check_changes(self, change: VectorChange) -> None:
        """The change feed of each version makes its rows from those of the version before."""
        if change.changes is None:
            is_same = self.rows[-1] == self.rows[-2]
        else:
            rows = {row.key: row for row in self.rows[-2]}
            told = all(rows.get(key) == old for key, old, _ in self.contents[change.changes])
            rows |= {key: new for key, _, new in self.contents[change.changes]}
            is_same = told and self.rows[-1] == {row for row in rows.values() if row is not None}
        if not is_same:
            raise Violation(f"{self.name} version {self.newest}: the change feed tells something else")

    def upkeep(self) -> None:
        """Somebody else's compaction. It may have no input: then it is an entry like any other."""
        files = self.live[-1]
        done = rewrite(sorted(files)[:2], files, self.contents, self.names, mirror=0, hour=0)
        change = done.change({}, self.names)._replace(entry_id=None)
        for name, content in done.outputs.items():
            self.write(name, content)
        self.append(Entry("", 0, 0, 0, change=change))

    # ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────

    def are_there(self, files: Files) -> bool:
        return all(name in self.objects for name in files_of(files))

    def is_loadable(self, version: int) -> bool:
        """From a checkpoint, and the entries after it: all are there, and they are those that were put."""
        base = max((at for at in self.checkpoints if at <= version), default=None)
        after = range(0 if base is None else base + 1, version + 1)
        return all(at in self.log and (at == 0 or self.log[at] is self.entries[at - 1]) for at in after)

    def check_readable(self, version: int) -> None:
        if not self.is_loadable(version):
            if self.storage.is_foreign:
                return
            raise Violation(f"{self.name}: version {version} cannot be loaded: {sorted(self.log)}")
        if missing := sorted(name for name in files_of(self.live[version]) if name not in self.objects):
            raise Violation(f"{self.name}: version {version} needs {missing}, which were removed")

    def rows_at(self, version: int) -> frozenset[Row]:
        self.check_readable(version)
        return self.rows[version]

    # ── what is removed ───────────────────────────────────────────────────────────────────────────────────────────────

    def remove(self, name: str, *, keep_from: int) -> None:
        """:param keep_from: the oldest version that may still be read."""
        # What somebody else's clean-up has made unreadable is nobody's loss any more.
        kept = [v for v in range(keep_from, self.newest + 1) if not self.storage.is_foreign or self.is_loadable(v)]
        needed = any(name in files_of(self.live[version]) for version in kept)
        told = (self.entries[v - 1] for v in kept if v > keep_from and self.log.get(v) is self.entries[v - 1])
        changes = {entry.change.changes for entry in told}
        if needed or name in changes:
            raise Violation(f"{self.name}: {name} is removed, and versions from {keep_from} on need it")
        self.objects.pop(name, None)

    def add_checkpoint(self, version: int) -> None:
        self.checkpoints.add(version)

    def remove_checkpoint(self, version: int) -> None:
        self.checkpoints.discard(version)

    def remove_entry(self, version: int) -> None:
        self.log.pop(version, None)

    def needed(self, keep_from: int) -> set[str]:
        """All files that reads from a version on need, and what that version itself has changed."""
        files = {name for version in range(keep_from, self.newest + 1) for name in files_of(self.live[version])}
        changes = {entry.change.changes for entry in self.entries[max(0, keep_from - 1) :]}
        return files | {name for name in changes if name}


def files_of(files: Files) -> set[str]:
    return {*files, *(file.vector for file in files.values() if file.vector)}
