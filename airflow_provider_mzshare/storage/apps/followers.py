"""Executes, beside the ticks, the backfills of tables that have left them because their index was not there.

Each has a thread with a lease, a reader and an executor of its own, as the app of a backfill has. What it shares with
the ingestion app is Spark, and the indexes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from airflow_provider_mzshare.core.ids import BackfillId
from airflow_provider_mzshare.core.ticklog.backfill_rules import inside
from airflow_provider_mzshare.core.ticklog.state import SourceState

log = logging.getLogger(__name__)

Execute = Callable[[BackfillId, threading.Event], None]


class Followers:
    """Use it from one thread.

    :param execute: one run over a backfill, until its tables are members again, or the event is set.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._stop = threading.Event()
        self._threads: dict[BackfillId, threading.Thread] = {}

    def look(self, state: SourceState) -> None:
        """With each look at the catalog. A run that has ended too early is followed by another."""
        self._threads = {one: thread for one, thread in self._threads.items() if thread.is_alive()}
        for backfill_id in sorted(inside(state) - self._threads.keys()):
            thread = threading.Thread(target=self._run, args=(backfill_id,), name=f"mzshare-{backfill_id}")
            self._threads[backfill_id] = thread
            thread.start()

    def close(self) -> None:
        """After what is being committed now."""
        self._stop.set()
        for thread in self._threads.values():
            thread.join()

    def _run(self, backfill_id: BackfillId) -> None:
        if self._stop.is_set():
            return
        try:
            self._execute(backfill_id, self._stop)
        except Exception:
            log.exception("%s will be executed again", backfill_id)
