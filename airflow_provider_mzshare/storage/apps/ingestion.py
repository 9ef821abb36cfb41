"""The ingestion app: finish pending ticks, stream new ones, stop when asked to. Spark's checkpoint is scratch.

After any error the pending tick is finished by a bounded read of its exact range.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import RecordedConnector
from airflow_provider_mzshare.core.ids import BackfillId, JournalId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.state import Generation, Holder
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, LeaseStore, TickStore
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.backfill import Backfill
from airflow_provider_mzshare.storage.apps.base import LOOK_SECONDS, App, End, Holding
from airflow_provider_mzshare.storage.apps.end_watch import EndWatch
from airflow_provider_mzshare.storage.apps.followers import Followers
from airflow_provider_mzshare.storage.apps.lease import Heartbeat
from airflow_provider_mzshare.storage.apps.ticking import Ticking
from airflow_provider_mzshare.storage.journal.recorder import Recorded, Recorder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
END_SECONDS = 10.0
"""How often the upstream is asked where it ends."""


FOLLOWER_RECORDS = 20_000
"""The size of a follower's group: it must not keep the ticks from the machine's cores for long."""


@dataclass(frozen=True, kw_only=True)
class Ingestion(App):
    """One run of a source's shared app. Every start of the query gets a new checkpoint in its folder.

    :param backfills: the store of a backfill that the app executes itself.
    :param make_folder: of the journal that an upstream is recorded in, where nobody has written anything yet.
    """

    store: TickStore
    backfills: Callable[[BackfillId], BackfillStore]
    make_folder: Callable[[JournalId], None] = lambda journal: None

    @property
    def leases(self) -> LeaseStore:
        return self.store

    @property
    def subject(self) -> str:
        return self.source_id

    def hold(self, holder: Holder, heartbeat: Heartbeat) -> End:
        return self.insist(lambda: _Streaming(self, holder, heartbeat)).run()

    def follow(
        self, backfill_id: BackfillId, stop: threading.Event, indexed: Callable[[], Collection[Generation]]
    ) -> None:
        """Execute a backfill of tables that have left the ticks without an index."""
        with self.connector.upstream() as upstream, closing(self.connector.reader(self.spark)) as reader:
            Backfill(
                spark=self.spark,
                connector=self.connector,
                upstream=upstream,
                reader=reader,
                source_id=self.source_id,
                job_id=self.job_id,
                root=self.root,
                folder=self.folder,
                indexing=self.indexing,
                lease_seconds=self.lease_seconds,
                heartbeat_seconds=self.heartbeat_seconds,
                stop=stop,
                store=self.backfills(backfill_id),
                backfill_id=backfill_id,
                max_records=FOLLOWER_RECORDS,
                indexed=indexed,
            ).run()


SMALL_IN_A_ROW = 5
"""After so many ticks that the driver could have read by itself, Spark's query ends."""


class _Streaming(Holding):
    """Pass after pass. While there is little to read, the app makes ticks by itself; else each pass has a query of
    Spark's, with a new start."""

    _app: Ingestion

    def __init__(self, app: Ingestion, holder: Holder, heartbeat: Heartbeat) -> None:
        super().__init__(app, holder, heartbeat)
        self._ticking = Ticking(
            spark=app.spark,
            store=app.store,
            upstream=app.upstream,
            reader=app.reader,
            indexing=app.indexing,
            holder=holder,
            source_id=app.source_id,
            root=app.root,
            lease_seconds=app.lease_seconds,
            on_running=app.on_running,
        )
        self._recorder = self._record()
        self._followers = Followers(lambda one, stop: app.follow(one, stop, self._ticking.indexed))
        self._ends = EndWatch(app.upstream, app.store, app.job_id)
        self._passes, self._small = 0, True
        """Whether the next pass may do without a query."""
        self._next_end = 0.0

    def _record(self) -> Recorder | None:
        """An upstream that cannot be read twice is written down beside the ticks."""
        app, connector = self._app, self._app.connector
        if not isinstance(connector, RecordedConnector):
            return None
        return Recorder(
            connector.journal,
            app.root,
            app.job_id,
            connector.feed,
            RecordedSource(app.store, self._holder, app.reader.place.only_lane),
            heartbeat_seconds=app.heartbeat_seconds,
            prepare=lambda: app.make_folder(connector.journal.journal),
        )

    @property
    def progress(self) -> int:
        return self._ticking.committed

    def diagnose(self, error: Exception) -> MzShareError:
        return self._ticking.diagnose(error)

    def stalled(self, reason: str, error: MzShareError) -> End:
        self._app.insist(lambda: self._app.store.stall(self._holder, reason, error.message))
        return End("stalled", error.line)

    def close(self) -> None:
        self._app.indexing.states.interrupt()
        if self._recorder is not None:
            self._recorder.close()
        self._followers.close()
        self._ticking.close()

    def one_pass(self) -> End | None:
        """Finish the pending ticks, then stream until settings change or something fails. None: run another pass."""
        self._check_recorder()
        # Before anything is read: tables that were away for too long leave, also the pending tick.
        self._ends.look(self._app.store.load(), now=True)
        self._ticking.finish_pending()
        state = self._app.store.load()
        if not state.tables:
            return End("finished", "the source has no tables")
        self._followers.look(state)
        self._ticking.check_upstream()
        settings = self._app.store.settings()
        number, start = self._ticking.begin(settings)
        try:
            may = self._ticking.reads_small()
            return self._tick(settings, start) if may and self._small else self._stream(settings, number, start, may)
        finally:
            self._ticking.quiesce()

    # ── without a query ───────────────────────────────────────────────────────────────────────────────────────────────

    def _tick(self, settings: SourceSettings, start: Position) -> End | None:
        """Until more comes than the driver reads itself."""
        log.info("%s ticks %s from %s", self._app.job_id, self._app.source_id, start)
        interval, due = settings.trigger_interval_ms / 1000, time.monotonic()

        def tick() -> bool:
            nonlocal due
            began = time.monotonic()
            self.check_lease()
            if began >= due:
                self._small = self._ticking.tick_small()
                due = max(began + interval, time.monotonic())
            return self._small

        return self._until_over(settings, tick, lambda: min(POLL_SECONDS, max(0.0, due - time.monotonic())))

    # ── with a query ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _stream(self, settings: SourceSettings, number: int, start: Position, may_tick: bool) -> End | None:
        """Until ticks are so small that the app need not have a query for them, if it may."""
        self._passes += 1
        self._ticking.small = 0
        checkpoint = self._app.folder / f"checkpoint-{self._passes}"
        query = self._start(settings, checkpoint, number, start)

        def watch() -> bool:
            self._check(query)
            self._small = may_tick and self._ticking.small >= SMALL_IN_A_ROW
            return not self._small

        try:
            return self._until_over(settings, watch, lambda: POLL_SECONDS)
        finally:
            self._ticking.quiesce()
            query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)

    def _start(self, settings: SourceSettings, checkpoint: Path, number: int, start: Position) -> StreamingQuery:
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

    # ── with and without ──────────────────────────────────────────────────────────────────────────────────────────────

    def _until_over(self, settings: SourceSettings, step: Callable[[], bool], pause: Callable[[], float]) -> End | None:
        """Step after step, until one says that the pass is over; looks at the catalog now and then."""
        next_look, committed = time.monotonic() + LOOK_SECONDS, self._ticking.committed
        while not self._app.stop.wait(pause()):
            if not step():
                return None
            trouble = self._check_recorder()
            if trouble or (self._told and self._ticking.committed > committed):
                self.tell(trouble)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + LOOK_SECONDS
                if self._app.stop_requested():
                    break
                now = self._app.store.settings()
                if _of_pass(now) != _of_pass(settings):
                    log.info("%s has new settings", self._app.job_id)
                    self._small = True
                    return None
                if not self._look(now):
                    return End("finished", "the source has no tables")
            self._ticking.tick_when_idle()
        return End("stopped")

    def _look(self, settings: SourceSettings) -> bool:
        """Are there tables? If an empty tick can complete a cutover, it is minted now: nobody waits for records."""
        state = self._app.store.load()
        self._ticking.looked(state, settings)
        self._followers.look(state)
        self._note_end()
        self._ends.look(state)
        return bool(state.tables)

    def _check_recorder(self) -> str | None:
        """What holds it up. Raises what ended it: there is nothing more to read."""
        if self._recorder is None:
            return None
        self._recorder.check()
        return self._recorder.trouble

    def _note_end(self) -> None:
        """Record now and then where the upstream ends, so that the lag can be seen. Errors are reported elsewhere."""
        if time.monotonic() >= self._next_end:
            self._next_end = time.monotonic() + END_SECONDS
            with suppress(MzShareError):
                self._app.store.note_end(self._app.upstream.end_offsets())

    def _check(self, query: StreamingQuery) -> None:
        if not query.isActive:
            self._ticking.raise_failure()
            self._ticking.check_upstream()
            raise query.exception() or TransientError("the streaming query ended")
        self.check_lease()


def _of_pass(settings: SourceSettings) -> tuple[int, int, bool]:
    """The settings that a running pass cannot change: a new value needs a new one."""
    return settings.trigger_interval_ms, settings.max_records_per_tick, settings.driver_reads


@dataclass(frozen=True)
class RecordedSource(Recorded):
    """:param lane: of the source's positions."""

    store: TickStore
    holder: Holder
    lane: str

    def check(self) -> None:
        self.store.beat(self.holder)

    def committed(self) -> int:
        state = self.store.load()
        return (state.pending[0].lower if state.pending else state.upper)[self.lane]
