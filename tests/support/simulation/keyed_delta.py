"""The Delta log of a keyed collection in memory: files of rows, and every version is looked at when it comes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from airflow_provider_mzshare.core.ticklog.state import Tick
from tests.support.simulation.delta import Delta, Entry
from tests.support.simulation.keyed import HASH_MASK, Files, Row, compaction, expected, hashed, is_fence
from tests.support.simulation.mutants import Violation


class Snapshot(NamedTuple):
    """One version, as a handle has loaded it."""

    version: int
    stored: int | None
    files: Files


class KeyedDelta(Delta):
    """``content`` has the records that were applied; ``rows`` what became of them."""

    def __init__(self, name: str, kind: str, ticks: Sequence[Tick]) -> None:
        super().__init__(name)
        self.kind, self._ticks = kind, ticks
        self.files: list[Files] = [{}]
        self.rows: list[frozenset[Row]] = [frozenset()]
        self._counted, self._hashed, self._last_file = 0, 0, 0
        self._expected: dict[int, frozenset[Row]] = {}
        self._quiet: list[tuple[int, int, int]] = []

    def load(self) -> Snapshot:
        return Snapshot(len(self.entries), self.stored(self.name) or None, self.files[-1])

    def new_file(self) -> str:
        self._last_file += 1
        return f"f{self._last_file}"

    def put(self, on: int, entry: Entry) -> bool:
        """At the version after ``on``, if it is free."""
        if on != len(self.entries):
            return False
        self.append(entry)
        return True

    def put_late(self, on: int, entry: Entry) -> None:
        self.in_flight.append((on, entry))

    def note_no_effect(self, first: int, last: int, events: int) -> None:
        """A writer has found that these events of these ticks change no row, and commits nothing."""
        self._quiet.append((first, last, events))

    @property
    def without_effect(self) -> int:
        """Events of ticks that no commit with rows carries."""
        return reduce(or_, (events for _, _, events in self._quiet), 0)

    def append(self, entry: Entry) -> None:
        assert entry.change is not None
        stored = self.stored(self.name)
        self._take(entry)
        change = entry.change
        self._change_files(change)
        self._counted, self._hashed = self._counted + change.rows, (self._hashed + change.hash) & HASH_MASK
        if not is_fence(change):
            self._quiet = [one for one in self._quiet if one[1] < entry.first or entry.time < one[0]]
        self._check()
        if 0 < entry.time <= stored:
            raise Violation(f"{self.name}: {entry.time} comes after {stored}")

    def _change_files(self, change: Any) -> None:
        files = {name: rows for name, rows in self.files[-1].items() if name not in change.removed}
        self.files.append({**files, **change.added})

    def newest_rows(self) -> list[Row]:
        return [row for file in self.files[-1].values() for row in file]

    def rows_at(self, version: int) -> frozenset[Row]:
        """As a reader finds them."""
        return self.rows[version]

    def _check(self) -> None:
        rows = self.newest_rows()
        self.rows.append(frozenset(rows))
        if len({row.key for row in rows}) != len(rows):
            raise Violation(f"{self.name}: a key has two rows: {sorted(rows)}")
        if (self._counted, self._hashed) != (len(rows), hashed(rows)):
            raise Violation(f"{self.name}: the commits count {self._counted} rows, there are {len(rows)}")
        wanted = self.expected(self.content[-1])
        if self.rows[-1] != wanted:
            raise Violation(f"{self.name}: rows are {sorted(rows)}, not {sorted(wanted)}")

    def expected(self, events: int) -> frozenset[Row]:
        """All these are of minted ticks, so more ticks change nothing."""
        if events not in self._expected:
            self._expected[events] = expected(self.kind, events, self._ticks)
        return self._expected[events]

    def upkeep(self) -> None:
        """Two files become one; a single one gets another name."""
        files = self.files[-1]
        self.append(Entry("", 0, 0, 0, change=compaction(files, sorted(files)[:2], self.new_file())))
