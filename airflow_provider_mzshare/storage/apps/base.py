"""What every app does around its work: take a lease, keep it, try again, say what holds it up, end in order.

After any error the log is read again; no transaction is repeated blindly.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from airflow_provider_mzshare.connectors.base import Connector, Reader, Upstream
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.core.ticklog.stores import LeaseStore
from airflow_provider_mzshare.errors import (
    CatalogBehind,
    Fenced,
    LeaseTaken,
    MzShareError,
    TerminalError,
    TransientError,
    UpstreamChanged,
)
from airflow_provider_mzshare.storage.apps.lease import Heartbeat, take_lease
from airflow_provider_mzshare.storage.collections.faults import SparkLost
from airflow_provider_mzshare.storage.writing.indexing import Indexing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often the catalog is asked for a stop, new settings, or the end of all tables."""
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits between failed attempts; the last value is used for all further ones."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class End:
    """Why the app ended: it was stopped, has no tables, is fenced, its source or tables stalled, or it failed.

    :param blameless: no table caused the failure, so it does not count as a death of the tables' app.
    """

    state: Literal["stopped", "finished", "fenced", "stalled", "failed"]
    error: str | None = None
    blameless: bool = False


@dataclass(frozen=True, kw_only=True)
class App(ABC):
    """One run of an app.

    :param connector: of its upstream and reader, for a thread that needs some of its own.
    :param root: the warehouse.
    :param folder: scratch of this job.
    :param indexing: makes the indexes of its keyed tables. Whoever made it closes it.
    :param stop: set by a signal handler: ends after the current tick.
    :param stop_requested: asks the catalog for the same.
    :param on_running: called when the run has done its first work, or has found that there is none.
    :param on_trouble: told what holds the app up, and None when that is over.
    """

    spark: SparkSession
    connector: Connector
    upstream: Upstream
    reader: Reader
    source_id: ItemId
    job_id: JobId
    root: str
    folder: Path
    indexing: Indexing
    lease_seconds: float
    heartbeat_seconds: float
    stop: threading.Event
    stop_requested: Callable[[], bool] = lambda: False
    on_running: Callable[[], None] = lambda: None
    on_trouble: Callable[[str | None], None] = lambda trouble: None

    @property
    @abstractmethod
    def leases(self) -> LeaseStore: ...

    @property
    @abstractmethod
    def subject(self) -> str:
        """The source or backfill that the lease is for, as the log names it."""

    @abstractmethod
    def hold(self, holder: Holder, heartbeat: Heartbeat) -> End:
        """Work while the lease is held."""

    def when_fenced(self, error: Fenced) -> End:
        return End("fenced", error.line)

    def run(self) -> End:
        try:
            holder = self.insist(
                lambda: take_lease(self.leases, self.job_id, seconds=self.lease_seconds, stop=self.stop)
            )
        except LeaseTaken as error:
            return End("stopped" if self.stop.is_set() else "fenced", error.line)
        except Fenced as error:
            return self.when_fenced(error)
        except MzShareError as error:
            return End("failed", error.line)
        log.info("%s holds %s, epoch %s", self.job_id, self.subject, holder.epoch)
        with Heartbeat(self.leases, holder, seconds=self.heartbeat_seconds) as heartbeat:
            end = self.hold(holder, heartbeat)
        if end.state != "fenced":
            self._release(holder)
        log.info("%s ended: %s %s", self.job_id, end.state, end.error or "")
        return end

    def insist(self, step: Callable[[], Result]) -> Result:
        """Try a step again until it succeeds or the app has to stop. Only a catalog that is away makes it fail."""
        for attempt in count():
            try:
                return step()
            except TransientError as error:
                log.warning("%s will try again: %s", self.job_id, error.line)
                if self.stop.wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]):
                    raise
        raise AssertionError("unreachable")

    def _release(self, holder: Holder) -> None:
        try:
            self.leases.release(holder)
        except Fenced:
            log.info("%s no longer has a lease to release", self.job_id)
        except MzShareError as error:
            log.warning("%s could not release its lease: %s", self.job_id, error)


class Holding(ABC):
    """What runs while the app holds the lease: pass after pass, until one returns an ``End``."""

    def __init__(self, app: App, holder: Holder, heartbeat: Heartbeat) -> None:
        self._app, self._holder, self._heartbeat = app, holder, heartbeat
        self._told: str | None = None

    @property
    @abstractmethod
    def progress(self) -> int:
        """A number that grows with the work done. Failures are counted since it last grew."""

    @abstractmethod
    def one_pass(self) -> End | None:
        """None: run another pass."""

    @abstractmethod
    def diagnose(self, error: Exception) -> MzShareError:
        """Explain an error of a library; raises when only a new process can go on."""

    @abstractmethod
    def stalled(self, reason: str, error: MzShareError) -> End | None:
        """Record that the upstream or the catalog does not match the log. None when there is still work to do."""

    @abstractmethod
    def close(self) -> None: ...

    def fenced(self, error: Fenced) -> End:
        return self._app.when_fenced(error)

    def run(self) -> End:
        failures = 0
        try:
            while True:
                before = self.progress
                try:
                    end = self._guarded_pass()
                    if end:
                        return end
                except TransientError as error:
                    failures = failures + 1 if self.progress == before else 1
                    log.warning("%s will try again: %s", self._app.job_id, error.line)
                    self.tell(error.line)
                    pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1]
                    if self._app.stop.wait(pause) or self._stop_requested():
                        return End("stopped")
        except Fenced as error:
            return self.fenced(error)
        except TerminalError as error:
            return End("failed", error.line, blameless=isinstance(error, SparkLost))
        finally:
            self.close()

    def _guarded_pass(self) -> End | None:
        """A pass that raises only our own errors: after a TransientError there is another pass; others end the app."""
        try:
            return self._explained_pass()
        except UpstreamChanged as error:
            return self.stalled(error.reason, error)
        except CatalogBehind as error:
            return self.stalled("catalog_behind", error)

    def _explained_pass(self) -> End | None:
        try:
            return self.one_pass()
        except MzShareError:
            self.check_lease()
            raise
        except Exception as error:
            try:
                ours = self.diagnose(error)
            except TransientError as away:
                ours = away
            self.check_lease()
            raise ours from error

    def check_lease(self) -> None:
        if self._heartbeat.fenced.is_set():
            raise Fenced(f"job {self._app.job_id} lost the lease of {self._app.subject}")

    def tell(self, trouble: str | None) -> None:
        """Record in the catalog what holds the app up. If the catalog itself is away, this is skipped."""
        if trouble != self._told:
            with suppress(TransientError):
                self._app.on_trouble(trouble)
                self._told = trouble

    def _stop_requested(self) -> bool:
        try:
            return self._app.stop_requested()
        except TransientError:
            return False
