"""Collections of the model of snapshots: a log of commits, each put at one version or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mzshare.core.ticklog.state import Snapshot
from tests.support.snapshot_database import Change, Rows, Violation, fold


@dataclass(frozen=True)
class Entry:
    """:param time: of the last tick that it carries. :param snapshot: the one whose rows it has."""

    time: int
    changes: tuple[Change, ...]
    snapshot: str | None = None


class Collection:
    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.entries: list[Entry] = []
        self.rows: list[Rows] = [{}]
        self.in_flight: list[tuple[int, Entry]] = []

    @property
    def stored(self) -> int | None:
        return self.entries[-1].time if self.entries else None

    @property
    def snapshot(self) -> Snapshot | None:
        """The one that it begins with."""
        found = [entry.snapshot for entry in self.entries if entry.snapshot]
        return Snapshot.from_json(found[0]) if found else None

    def put(self, on: int, entry: Entry) -> bool:
        if on != len(self.entries):
            return False
        if entry.snapshot and self.entries:
            raise Violation(f"{self.name}: a snapshot comes after {self.entries[-1].time}")
        self.rows.append(fold(self.kind, self.rows[-1], entry.changes))
        self.entries.append(entry)
        return True

    def land(self) -> bool:
        return self.put(*self.in_flight.pop(0))

    def rows_at(self, time: int) -> Rows:
        return self.rows[sum(1 for entry in self.entries if entry.time <= time)]


def as_changes(relation: int, rows: Rows) -> tuple[Change, ...]:
    return tuple(Change(relation, "set", key, *row) for key, found in rows.items() for row in found)
