"""Finds the parts of files that hold a range, by the catalog's list of segments."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.segments import GONE, part_of
from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.journal.parts import Part


class Ranges:
    """:param root: the warehouse that the journal's files are in."""

    def __init__(self, store: JournalStore, root: str) -> None:
        self._store, self._root = store, root

    def parts(self, lower: Position, upper: Position) -> list[Part]:
        """All of ``[lower, upper)``, partition after partition. Raises if the catalog does not have all of it."""
        found: list[Part] = []
        for name in upper:
            first, last = lower[name], upper[name]
            if first < last:
                found += self._lane(int(name), first, last)
        return found

    def _lane(self, partition: int, first: int, last: int) -> list[Part]:
        parts, at = [], first
        for segment in self._store.segments(partition, first, last):
            if segment.first > at:
                break
            parts.append(self.part(segment, max(segment.first, first), min(segment.end, last)))
            at = min(segment.end, last)
        if at < last:
            raise UpstreamChanged(
                GONE, f"partition {partition}: the journal does not have the records from {at} to {last} any more"
            )
        return parts

    def part(self, segment: Segment, lower: int, upper: int) -> Part:
        return part_of(self._root, self._store.journal, segment, lower, upper)
