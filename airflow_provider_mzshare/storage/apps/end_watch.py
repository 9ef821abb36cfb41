"""Looks now and then where the upstream ends, as long as keyed tables depend on it (``core/ticklog/tombstones``)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from airflow_provider_mzshare.connectors.base import Compaction, Upstream
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.core.ticklog.stores import EndStore
from airflow_provider_mzshare.errors import MzShareError

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""How often the upstream is asked where it ends; more often where tombstones are kept for a short time only."""
LOOKS = 20
"""So many looks, at least, while a tombstone is kept."""
ASK_SECONDS = 60.0
"""How often it is asked whether it compacts."""


class EndWatch:
    """Use it from one thread."""

    def __init__(self, upstream: Upstream, store: EndStore, job_id: JobId) -> None:
        self._upstream, self._store, self._job_id = upstream, store, job_id
        self._asked: float | None = None
        self._next = 0.0
        self.compaction: Compaction | None = None
        """How the upstream compacts, as far as is known."""

    def look(self, state: SourceState, *, now: bool = False) -> Mapping[ItemId, str]:
        """Which tables were stalled by what was seen, and why.

        :param now: look whenever it was last done: a read is about to begin.
        """
        if not any(table.keyed for table in state.tables.values()):
            return {}
        if not now and time.monotonic() < self._next:
            return {}
        try:
            return self._look()
        except MzShareError as error:
            # Without a new end, the last one counts: tables stall in time. Without any, nothing can be known.
            if not state.ends:
                raise
            log.warning("%s could not see where the upstream ends: %s", self._job_id, error.line)
            self._next = time.monotonic() + 1.0
            return {}

    def _look(self) -> Mapping[ItemId, str]:
        begun = time.monotonic()
        if self._asked is None or begun - self._asked >= self._apart(ASK_SECONDS):
            self.compaction = self._upstream.compaction()
            self._asked = begun
        found, begun = self.compaction, time.monotonic()
        end = self._upstream.end_offsets()
        stalled = self._store.see_end(
            end,
            ago_ms=round((time.monotonic() - begun) * 1000) + 1,
            kept_ms=found.kept_ms if found else None,
            lag_ms=found.lag_ms if found else 0,
        )
        self._next = time.monotonic() + self._apart(LOOK_SECONDS)
        for table_id, reason in stalled.items():
            log.error("%s: %s stalled: %s", self._job_id, table_id, reason)
        return stalled

    def _apart(self, seconds: float) -> float:
        """Seconds between two looks."""
        found = self.compaction
        return ASK_SECONDS if found is None else min(seconds, (found.kept_ms + found.lag_ms) / 1000 / LOOKS)
