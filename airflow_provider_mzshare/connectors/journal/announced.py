"""What is announced of a journal from a position on, for the file that its stream is planned by."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.announced import BATCHES_AHEAD, PAGE
from airflow_provider_mzshare.connectors.journal.ranges import Ranges
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.journal.parts import Part


class Ends:
    """:param max_records: of a batch."""

    def __init__(self, store: JournalStore, ranges: Ranges, max_records: int) -> None:
        self._store, self._ranges, self._ahead = store, ranges, max_records * BATCHES_AHEAD

    def __call__(self, low: Position) -> dict[str, object]:
        ends, parts = {}, []
        for found in self._store.partitions():
            reached, mine = self._reached(found.partition, low[found.partition], found.end)
            ends[str(found.partition)] = reached
            parts += mine
        return {"ends": ends, "parts": [part.to_plain() for part in parts]}

    def _reached(self, partition: int, low: int, end: int) -> tuple[int, list[Part]]:
        """How far the file tells of a partition, and where that is."""
        at, parts = low, []
        while at < end and at - low < self._ahead:
            page = self._store.segments(partition, at, end, limit=PAGE)
            if not page or page[0].first > at:
                # A hole: a bounded read of the pending tick, or the next look at the history, says what is gone.
                break
            for segment in page:
                last = min(segment.end, end)
                parts.append(self._ranges.part(segment, at, last))
                at = last
                if at - low >= self._ahead:
                    break
        return at, parts
