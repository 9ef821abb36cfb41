"""A Delta log in memory. It behaves as the real one was measured to behave."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.simulation.mutants import Violation


class Entry(NamedTuple):
    """A commit.

    :param app: the application id.
    :param time: its transaction version; 0 for upkeep, which carries none.
    :param first: the time of the first tick it carries.
    :param rows: see topic.py.
    :param spec: the version of the spec that they were made with.
    :param change: of a keyed collection: its files, a Change or a VectorChange.
    """

    app: str
    time: int
    first: int
    rows: int
    spec: int = 0
    change: Any = None


class Delta:
    """A commit is refused when another one of its application id came since the table was loaded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[Entry] = []
        self.content = [0]
        """The rows at each version; version 0 is the empty table."""
        self.made_with: dict[int, int] = {}
        """The rows by the version of the spec that they were made with."""
        self._stored: dict[str, int] = {}
        self._commits: dict[str, int] = {}
        self.in_flight: list[tuple[int, Entry]] = []
        """Commits whose answer did not come and that may still land, each at the version it was sent for."""

    def stored(self, app: str) -> int:
        return self._stored.get(app, 0)

    def loaded(self, app: str) -> int:
        """What a handle knows of its application id's commits."""
        return self._commits.get(app, 0)

    def append(self, entry: Entry) -> None:
        before = self.content[-1]
        if before & entry.rows:
            raise Violation(f"{self.name}: rows {before & entry.rows:b} are there twice")
        self._take(entry)

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.content.append(self.content[-1] | entry.rows)
        self.made_with[entry.spec] = self.made_with.get(entry.spec, 0) | entry.rows
        if entry.time:
            self._stored[entry.app] = entry.time
            self._commits[entry.app] = self._commits.get(entry.app, 0) + 1

    def send(self, entry: Entry) -> None:
        self.in_flight.append((len(self.entries), entry))

    def land(self) -> bool:
        """What was sent arrives now; it lands unless its version is taken."""
        version, entry = self.in_flight.pop(0)
        if version != len(self.entries):
            return False
        self.append(entry)
        return True

    def lose(self, rows: int) -> None:
        """Files are removed: whatever version names them has lost their rows."""
        self.content = [content & ~rows for content in self.content]

    def upkeep(self) -> None:
        """Compaction of files: a version of its own, and no other rows."""
        self.append(Entry("", 0, 0, 0))

    def version_of(self, time: int) -> int:
        for version in range(len(self.entries), 0, -1):
            if self.entries[version - 1].time == time:
                return version
        raise Violation(f"{self.name}: no entry carries {time}")
