"""The life of an ingestion app: take the lease, finish what was begun, stream ticks, stop when told.

After any error the log is read again and the pending tick is finished by a bounded read of its exact range; no
transaction is repeated blindly, and Spark's checkpoint is scratch.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from airflow_provider_mzshare.errors import (
    CatalogBehind,
    Fenced,
    LeaseTaken,
    MzShareError,
    TerminalError,
    TransientError,
    UpstreamChanged,
)
from airflow_provider_mzshare.storage.connectors import Upstream
from airflow_provider_mzshare.storage.ingestion.lease import Heartbeat, take_lease
from airflow_provider_mzshare.storage.ingestion.reader import KafkaReader
from airflow_provider_mzshare.storage.ingestion.ticking import Ticking
from airflow_provider_mzshare.storage.ticks.state import Holder
from airflow_provider_mzshare.storage.ticks.store import TickStore
from airflow_provider_mzshare.types.ids import ItemId, JobId
from airflow_provider_mzshare.types.specs import SourceSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
LOOK_SECONDS = 1.0
"""How often the catalog is asked for a stop, new settings, or the end of all tables."""
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Waits between failed attempts; the last one goes on."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class End:
    """Why the app ended: by request, for want of tables, fenced, with the source stalled, or failed."""

    state: Literal["stopped", "finished", "fenced", "stalled", "failed"]
    error: str | None = None


@dataclass(frozen=True)
class Ingestion:
    """One run of a source's shared app.

    :param root: the warehouse.
    :param folder: scratch of this job; every start of the query gets a new checkpoint folder in it.
    :param stop: set by a signal handler: ends after the current tick.
    :param stop_requested: asks the catalog for the same.
    :param on_running: called when the first tick of this run is committed.
    :param on_trouble: told what holds the app up, and None when that is over.
    """

    spark: SparkSession
    store: TickStore
    upstream: Upstream
    reader: KafkaReader
    source_id: ItemId
    job_id: JobId
    root: str
    folder: Path
    lease_seconds: float
    heartbeat_seconds: float
    stop: threading.Event
    stop_requested: Callable[[], bool] = lambda: False
    on_running: Callable[[], None] = lambda: None
    on_trouble: Callable[[str | None], None] = lambda trouble: None

    def run(self) -> End:
        try:
            holder = self.insist(
                lambda: take_lease(self.store, self.job_id, seconds=self.lease_seconds, stop=self.stop)
            )
        except LeaseTaken as error:
            return End("stopped" if self.stop.is_set() else "fenced", error.line)
        except MzShareError as error:
            return End("fenced" if isinstance(error, Fenced) else "failed", error.line)
        log.info("%s holds %s, epoch %s", self.job_id, self.source_id, holder.epoch)
        with Heartbeat(self.store, holder, seconds=self.heartbeat_seconds) as heartbeat:
            end = self.insist(lambda: _Holding(self, holder, heartbeat)).run()
        if end.state != "fenced":
            self._release(holder)
        log.info("%s ended: %s %s", self.job_id, end.state, end.error or "")
        return end

    def insist(self, step: Callable[[], Result]) -> Result:
        """Take a step that only a catalog that is away can hold up, until it is done or the app is to stop."""
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
            self.store.release(holder)
        except MzShareError as error:
            log.warning("%s could not release its lease: %s", self.job_id, error)


class _Holding:
    """What runs while the lease is held: pass after pass, each with a new start of the query."""

    def __init__(self, app: Ingestion, holder: Holder, heartbeat: Heartbeat) -> None:
        self._app, self._holder, self._heartbeat = app, holder, heartbeat
        self._ticking = Ticking(
            spark=app.spark,
            store=app.store,
            upstream=app.upstream,
            reader=app.reader,
            holder=holder,
            source_id=app.source_id,
            root=app.root,
            on_running=app.on_running,
        )
        self._passes = 0
        self._told: str | None = None

    def run(self) -> End:
        try:
            return self._run()
        except Fenced as error:
            return End("fenced", error.line)
        except UpstreamChanged as error:
            return self._stalled(error.reason, error)
        except CatalogBehind as error:
            return self._stalled("catalog_behind", error)
        except TerminalError as error:
            return End("failed", error.line)
        finally:
            self._ticking.close()

    def _run(self) -> End:
        failures = 0
        while True:
            before = self._ticking.committed
            try:
                end = self._pass()
                if end:
                    return end
            except Exception as error:  # noqa: BLE001  weighed below
                failures = failures + 1 if self._ticking.committed == before else 1
                self._weigh(error)
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1]
                if self._app.stop.wait(pause) or self._stop_requested():
                    return End("stopped")

    def _weigh(self, error: Exception) -> None:
        """Return when another attempt may help, raise when not. Errors that are not ours are looked into."""
        try:
            ours = error if isinstance(error, MzShareError) else self._ticking.diagnose(error)
        except TransientError as away:
            ours = away
        if self._heartbeat.fenced.is_set():
            raise Fenced(f"job {self._app.job_id} lost the lease of {self._app.source_id}") from error
        if not isinstance(ours, TransientError):
            raise ours
        log.warning("%s will try again: %s", self._app.job_id, ours.line)
        self._tell(ours.line)

    def _tell(self, trouble: str | None) -> None:
        """For whoever looks from outside; a catalog that is away cannot be told that it is."""
        if trouble != self._told:
            with suppress(TransientError):
                self._app.on_trouble(trouble)
                self._told = trouble

    def _stop_requested(self) -> bool:
        try:
            return self._app.stop_requested()
        except TransientError:
            return False

    def _stalled(self, reason: str, error: MzShareError) -> End:
        try:
            self._app.insist(lambda: self._app.store.stall(self._holder, reason, error.message))
        except Fenced as fenced:
            return End("fenced", fenced.line)
        except TransientError as away:
            return End("failed", away.line)
        return End("stalled", error.line)

    # ── one start of the query ────────────────────────────────────────────────────────────────────────────────────────

    def _pass(self) -> End | None:
        """Finish the pending ticks, then stream until something must change; None asks for another pass."""
        self._ticking.finish_pending()
        if not self._app.store.load().tables:
            return End("finished", "the source has no tables")
        self._ticking.check_upstream()
        self._passes += 1
        checkpoint = self._app.folder / f"checkpoint-{self._passes}"
        settings = self._app.store.settings()
        query = self._start(settings, checkpoint)
        try:
            return self._watch(query, settings)
        finally:
            self._ticking.quiesce()
            query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)

    def _start(self, settings: SourceSettings, checkpoint: Path) -> StreamingQuery:
        number, start = self._ticking.begin()
        partitions = self._app.upstream.describe().partitions
        log.info("%s streams %s from %s", self._app.job_id, self._app.source_id, start)
        frame = self._app.reader.stream(start, partitions, settings.max_records_per_tick)

        def on_batch(batch: DataFrame, batch_id: int) -> None:
            if not self._heartbeat.fenced.is_set():
                self._ticking.on_batch(number, batch, lambda: self._app.reader.batch_range(checkpoint, batch_id, start))

        return (
            frame.writeStream.queryName(f"{self._app.source_id}-{self._passes}")
            .trigger(processingTime=f"{settings.trigger_interval_ms} milliseconds")
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(on_batch)
            .start()
        )

    def _watch(self, query: StreamingQuery, settings: SourceSettings) -> End | None:
        next_look, committed = time.monotonic() + LOOK_SECONDS, self._ticking.committed
        while not self._app.stop.wait(POLL_SECONDS):
            if not query.isActive:
                self._ticking.raise_failure()
                self._ticking.check_upstream()
                raise query.exception() or TransientError("the streaming query ended")
            if self._heartbeat.fenced.is_set():
                raise Fenced(f"job {self._app.job_id} lost the lease of {self._app.source_id}")
            if self._told and self._ticking.committed > committed:
                self._tell(None)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + LOOK_SECONDS
                if self._app.stop_requested():
                    break
                if self._app.store.settings() != settings:
                    log.info("%s has new settings", self._app.job_id)
                    return None
                if not self._app.store.load().tables:
                    return End("finished", "the source has no tables")
            self._ticking.tick_when_idle(settings.idle_tick_seconds)
        return End("stopped")
