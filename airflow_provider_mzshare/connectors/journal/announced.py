"""Writes down, for the process that plans a stream, what is announced: it has no catalog to ask."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

from airflow_provider_mzshare.connectors.journal.parts import Part
from airflow_provider_mzshare.connectors.journal.ranges import Ranges
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import MzShareError

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
BATCHES_AHEAD = 4
"""The file tells of so many batches after the one that was seen last: a long history must not be written down whole
each time. A stream is at most one batch further than what was seen of it."""
PAGE = 256
"""Segments asked for at once."""


class Announced:
    """A file, and the thread that keeps it up to date until ``close``.

    :param start: where the stream begins. :param max_records: of a batch.
    """

    def __init__(self, store: JournalStore, ranges: Ranges, file: Path, start: Position, max_records: int) -> None:
        self.file = file
        self._store, self._ranges, self._ahead = store, ranges, max_records * BATCHES_AHEAD
        self._low = start
        self._written = ""
        self._closed = threading.Event()
        self.look()
        self._thread = threading.Thread(target=self._run, name="mzshare-announced", daemon=True)
        self._thread.start()

    def seen(self, lower: Position) -> None:
        """A batch begins here: what is before it is not asked for again."""
        self._low = lower

    def look(self) -> None:
        text = json.dumps(self._now(), separators=(",", ":"))
        if text != self._written:
            fresh = self.file.with_suffix(".new")
            fresh.write_text(text)
            os.replace(fresh, self.file)
            self._written = text

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _now(self) -> dict[str, object]:
        low, ends, parts = self._low, {}, []
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

    def _run(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            try:
                self.look()
            except (MzShareError, OSError) as error:
                log.warning("what is announced cannot be looked up: %s", error)
