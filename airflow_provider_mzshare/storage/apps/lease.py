"""Taking and keeping the lease of a source or a backfill. Needs no common clock: only the taker's own monotonic one."""

from __future__ import annotations

import logging
import threading
import time

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.core.ticklog.stores import LeaseStore
from airflow_provider_mzshare.errors import Fenced, LeaseTaken

log = logging.getLogger(__name__)


def take_lease(store: LeaseStore, job_id: JobId, *, seconds: float, stop: threading.Event) -> Holder:
    """Claim a free lease at once, or one without heartbeats for ``seconds``; raise LeaseTaken if there are some.

    A lease that is released meanwhile is claimed at once too: somebody has found out that its holder is gone.
    """
    seen = store.lease()
    deadline = time.monotonic() + seconds
    while True:
        try:
            return store.claim(job_id, stood_still=seen if time.monotonic() >= deadline else None)
        except LeaseTaken:
            now = store.lease()
            if now.job_id is not None and (now != seen or stop.wait(min(0.25, seconds / 4))):
                raise


class Heartbeat:
    """Increments the lease's counter until closed; ``fenced`` is set when somebody else has taken the lease."""

    def __init__(self, store: LeaseStore, holder: Holder, *, seconds: float) -> None:
        self.fenced = threading.Event()
        self._store, self._holder, self._seconds = store, holder, seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mzshare-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._seconds):
            try:
                self._store.beat(self._holder)
            except Fenced as error:
                log.info("%s %s", self._holder.job_id, error)
                self.fenced.set()
                return
            except Exception as error:  # noqa: BLE001  a lapsed lease that nobody took stays ours: go on trying
                log.warning("%s missed a heartbeat: %s", self._holder.job_id, error)
