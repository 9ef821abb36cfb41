"""Notes how far a backfill is within a group, for people, in step with its heartbeat and beside its work."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, Reading
from airflow_provider_mzshare.storage.apps.snapshots import SnapshotReading

log = logging.getLogger(__name__)


class Reporter:
    """A thread of its own: the heartbeat must not wait for a JVM that is busy.

    :param look: how far the group or the snapshot has been read; None when there is nothing to report.
    """

    def __init__(
        self,
        look: Callable[[], Reading | SnapshotReading | None],
        store: BackfillStore,
        holder: Holder,
        *,
        seconds: float,
    ) -> None:
        self._look, self._store, self._holder, self._seconds = look, store, holder, seconds
        self._noted: Reading | SnapshotReading | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mzshare-progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._seconds):
            try:
                self.note()
            except Exception as error:  # noqa: BLE001  nothing depends on it: the next look tells more
                log.debug("%s could not record its progress: %s", self._holder.job_id, error)

    def note(self) -> None:
        """Write only a changed number, in one short transaction."""
        reading = self._look()
        if reading is None or reading == self._noted:
            return
        if isinstance(reading, SnapshotReading):
            self._store.note_snapshot_read(self._holder, reading.snapshot_id, reading.read)
        else:
            self._store.note_reading(self._holder, reading)
        self._noted = reading
