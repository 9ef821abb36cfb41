"""Mints, executes and commits ticks, one at a time: the query's batches, empty ones, and those left pending."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.connectors import Upstream
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.ingestion.execution import Executed, MemberFailed, TickExecutor, short_reason
from airflow_provider_mzshare.storage.ingestion.reader import KafkaReader
from airflow_provider_mzshare.storage.ticks import rules
from airflow_provider_mzshare.storage.ticks.state import Holder, Left, Outcome, Tick
from airflow_provider_mzshare.storage.ticks.store import Member, TickStore
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.positions import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)


class Ticking:
    """What the holder of a source does with its log.

    Spark calls ``on_batch`` from a thread of its own, the app's loop calls the rest; ``_lock`` lets one tick run at a
    time, and ``quiesce`` lets the current one end and no other begin.
    """

    def __init__(
        self,
        *,
        spark: SparkSession,
        store: TickStore,
        upstream: Upstream,
        reader: KafkaReader,
        holder: Holder,
        source_id: ItemId,
        root: str,
        on_running: Callable[[], None],
    ) -> None:
        self._store, self._upstream, self._reader, self._holder = store, upstream, reader, holder
        self._on_running = on_running
        identity = store.load().incarnation
        self._executor = TickExecutor(
            spark,
            store,
            holder,
            source_id=source_id,
            root=root,
            check_identity=lambda: upstream.check_identity(identity),
        )
        self._lock = threading.Lock()
        self._quiesced = True
        self._failure: BaseException | None = None
        self._at = Position()
        self._last_tick = time.monotonic()
        self.committed = 0

    def close(self) -> None:
        self._executor.close()

    # ── around the query ──────────────────────────────────────────────────────────────────────────────────────────────

    def check_upstream(self) -> None:
        """Is it still the upstream the log was read from, and does it still have what comes next?"""
        state = self._store.load()
        self._upstream.check_identity(state.incarnation)
        if state.tables:
            self._upstream.check_history(state.pending[0].lower if state.pending else state.upper)

    def begin(self) -> Position:
        """A query is about to start: where. Nothing is minted on top of a log that has lost its tail."""
        self._executor.check_log(self._store.members())
        self._at = self._store.load().upper
        self._quiesced, self._failure = False, None
        return self._at

    def quiesce(self) -> None:
        self._quiesced = True
        with self._lock:
            pass

    def raise_failure(self) -> None:
        """What ended the query, if it was a tick. Spark would only pass on its text."""
        if self._failure is not None:
            raise self._failure

    def diagnose(self, error: Exception) -> MzShareError:
        """An error that is not ours: is Spark gone, is the upstream another, or is it worth another attempt?"""
        self._executor.check_alive()
        self.check_upstream()
        return TransientError(short_reason(error))

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def on_batch(self, batch: DataFrame, end: Callable[[], Position]) -> None:
        with self._lock:
            if self._quiesced:
                return
            try:
                upper = end()
                crashpoint("offsets_known")
                if upper != self._at:
                    self._mint_and_execute(upper, batch)
            except BaseException as error:
                self._failure, self._quiesced = error, True
                raise

    def _mint_and_execute(self, upper: Position, batch: DataFrame) -> None:
        incarnation = self._upstream.describe().incarnation
        if set(upper) - set(self._at):
            # A partition that is new to us: what it had before we came must still be there.
            self._upstream.check_history(self._at)
        tick = self._store.mint(self._holder, lower=self._at, upper=upper, incarnation=incarnation)
        crashpoint("tick_minted")
        self._execute(tick, batch)
        self._at = upper

    def tick_when_idle(self, seconds: float) -> None:
        """Spark makes no batch without data: mint an empty tick now and then, so that uppers go on."""
        if time.monotonic() - self._last_tick < seconds or not self._lock.acquire(blocking=False):
            return
        try:
            if not self._quiesced:
                self._store.mint_empty(self._holder, at=self._at, incarnation=self._upstream.describe().incarnation)
                self._executor.open(self._store.members())
                self._ticked()
                self._executor.tidy()
        finally:
            self._lock.release()

    def finish_pending(self) -> None:
        """By a bounded read of exactly the range that was minted; members that hold it already are skipped."""
        for pending in self._store.load().pending:
            tick = self._store.begin_attempt(self._holder, pending.number)
            log.info("%s finishes tick %s, attempt %s", self._holder.job_id, tick.number, tick.attempts)
            if rules.executes_alone(tick):
                self._execute_alone(tick)
            else:
                self._execute(tick, self._reader.bounded(tick.lower, tick.upper))

    def _execute(self, tick: Tick, frame: DataFrame | None) -> None:
        members = self._store.members()
        self._commit(tick, self._executor.execute(tick, members, frame if members else None))

    def _execute_alone(self, tick: Tick) -> None:
        """Member by member, so that one that cannot be written stops nobody else; those that fail leave."""
        outcomes: dict[ItemId, Outcome] = {}
        for member in self._store.members():
            if rules.is_deadly(tick, member.table_id):
                outcomes[member.table_id] = Left("the app died again and again while it executed this table alone")
                continue
            with self._suspected(tick, member.table_id):
                outcomes[member.table_id] = self._execute_one(tick, member)
        self._commit(tick, Executed(outcomes))

    def _execute_one(self, tick: Tick, member: Member) -> Outcome:
        try:
            frame = self._reader.bounded(tick.lower, tick.upper)
            return self._executor.execute(tick, [member], frame).outcomes[member.table_id]
        except MemberFailed as error:
            return Left(error.failures[member.table_id])
        except MzShareError:
            raise
        except Exception as error:  # noqa: BLE001  looked into below
            # What fails without any table too is no table's fault: these raise, and the tick waits.
            self._executor.check_alive()
            self.check_upstream()
            self._executor.check_pass(self._reader.bounded(tick.lower, tick.upper))
            return Left(short_reason(error))

    @contextmanager
    def _suspected(self, tick: Tick, table_id: ItemId) -> Iterator[None]:
        """Should the process die in here, the next holder finds who was executed alone. An error is no death."""
        self._store.suspect(self._holder, tick.number, table_id)
        try:
            yield
        finally:
            self._store.suspect(self._holder, tick.number, None)

    def _commit(self, tick: Tick, executed: Executed) -> None:
        self._store.commit(self._holder, tick.number, executed.outcomes, executed.stats)
        crashpoint("tick_committed")
        for table_id, outcome in executed.outcomes.items():
            if isinstance(outcome, Left):
                log.error("%s tick %s: %s stalled: %s", self._holder.job_id, tick.number, table_id, outcome.reason)
        log.info("%s tick %s committed: %s", self._holder.job_id, tick.number, executed.stats)
        self._ticked()
        self._executor.tidy()

    def _ticked(self) -> None:
        self._last_tick = time.monotonic()
        self.committed += 1
        if self.committed == 1:
            self._on_running()
