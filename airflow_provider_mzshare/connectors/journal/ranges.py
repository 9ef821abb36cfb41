"""Finds the parts of files that hold a range, by the catalog's list of segments."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mzshare.connectors.journal.parts import Part
from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import UpstreamChanged
from airflow_provider_mzshare.journal.reading import DamagedSegment, Extent

GONE = "journal_gone"
DAMAGED = "journal_damaged"


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
        path = f"{self._root.rstrip('/')}/{path_of(self._store.journal, segment)}"
        extent = Extent(path, segment.first, segment.length, lower, upper)
        return Part(segment.partition, extent, segment.payload / segment.messages)


def damaged(error: DamagedSegment) -> UpstreamChanged:
    """What needs the file stalls, and says which file it is."""
    return UpstreamChanged(
        DAMAGED,
        error.message,
        hint="put the file back from a backup, then ALTER TABLE … RESUME, or start the source again",
    )


def told_of_damage(parts: Sequence[Part], error: BaseException) -> bool:
    """Whether Spark reports a file of these as damaged: it passes on no more than the text of an error."""
    text = str(error)
    return DamagedSegment.__name__ in text and any(part.extent.path in text for part in parts)
