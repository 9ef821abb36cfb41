"""The ingestion app's part in a cutover: a short wait before a tick for a backfill that is one tick behind.

It never waits for a backfill without heartbeats, and asks the catalog nothing while no table converges.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection

from airflow_provider_mzshare.core.ids import BackfillId, JobId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import Generation, Lease, SourceState
from airflow_provider_mzshare.errors import TransientError

log = logging.getLogger(__name__)

POLL_SECONDS = 0.02


def longest_wait(settings: SourceSettings) -> float:
    """How many seconds a tick may wait for converging tables."""
    wait = settings.cutover_wait_ms
    return (settings.trigger_interval_ms / 4 if wait is None else wait) / 1000


class Hearts:
    """Which backfills are alive: their lease got a heartbeat within the lease time, by the clock of this process."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._seen: dict[BackfillId, Lease] = {}
        self._moved: dict[BackfillId, float] = {}

    def look(self, state: SourceState, now: float) -> None:
        for backfill_id, backfill in state.backfills.items():
            before = self._seen.get(backfill_id)
            if before is not None and before != backfill.lease:
                self._moved[backfill_id] = now
            self._seen[backfill_id] = backfill.lease
        for gone in self._seen.keys() - state.backfills.keys():
            del self._seen[gone]
            self._moved.pop(gone, None)

    def beating(self, backfills: Collection[BackfillId], now: float) -> list[BackfillId]:
        return [b for b in backfills if now - self._moved.get(b, float("-inf")) <= self._lease_seconds]


class Convergence:
    """Whether any table converges, and how long the next tick waits for it.

    :param load: the source as it is now.
    :param indexed: the keyed tables that may be cut over (``rules.may_come_in``).
    """

    def __init__(
        self,
        load: Callable[[], SourceState],
        job_id: JobId,
        *,
        lease_seconds: float,
        indexed: Callable[[], Collection[Generation] | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._load, self._job_id, self._clock, self._sleep = load, job_id, clock, sleep
        self._hearts, self._indexed = Hearts(lease_seconds), indexed
        self._somebody = False

    def look(self, state: SourceState) -> None:
        """Called with each look at the catalog: remembers whether any table converges."""
        self._hearts.look(state, self._clock())
        self._somebody = bool(backfill_rules.coming(state))

    def wait(self, seconds: float) -> float:
        """Wait before a mint until backfills one tick behind have caught up, have no heartbeat, or the time is up."""
        if not self._somebody or not seconds:
            return 0.0
        began = self._clock()
        waited_for: set[BackfillId] = set()
        while self._clock() - began < seconds and (close := self._worth_waiting()):
            waited_for.update(close)
            self._sleep(POLL_SECONDS)
        waited = self._clock() - began if waited_for else 0.0
        if waited_for:
            log.info("%s waited %.0f ms for %s", self._job_id, waited * 1000, ", ".join(sorted(waited_for)))
        return waited

    def _worth_waiting(self) -> list[BackfillId]:
        try:
            state = self._load()
        except TransientError:  # the mint will fail in the same way, and report it
            return []
        self._hearts.look(state, self._clock())
        return self._hearts.beating(backfill_rules.awaited(state, self._indexed()), self._clock())
