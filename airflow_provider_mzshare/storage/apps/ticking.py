"""Mints, executes and commits ticks, one at a time: the query's batches, empty ones, and those left pending."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import THIN_BYTES, Reader, Upstream, is_thin
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import backfill_rules, rules
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Generation, Holder, Left, Outcome, SourceState, Tick, Unindexed
from airflow_provider_mzshare.core.ticklog.stores import Member, TickStore
from airflow_provider_mzshare.errors import MzShareError, TerminalError, TransientError, WarehouseUnreachable
from airflow_provider_mzshare.storage.apps.cutover_wait import Convergence, longest_wait
from airflow_provider_mzshare.storage.apps.indexed_arrivals import IndexedArrivals
from airflow_provider_mzshare.storage.collections.faults import StorageFault
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.writing.executor import Executed, MemberFailed, Read, TickExecutor
from airflow_provider_mzshare.storage.writing.fault_finding import execute_one
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.machine import short_reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_mzshare.storage.writing.passes import Source

log = logging.getLogger(__name__)

PATIENCE = 20
"""If every member fails alone, the cause is probably shared: only after this many attempts do the tables leave."""


class Ticking:
    """What the app that holds a source's lease does with the source's log.

    Spark calls ``on_batch`` from a thread of its own, the app's loop calls the rest; ``_lock`` lets one tick run at a
    time, and ``quiesce`` lets the current one end and no other begin.
    """

    _failure: BaseException | None = None
    _to_spare: int | None = None
    """A tick whose last attempt failed because of the storage; the catalog still counts that attempt."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        store: TickStore,
        upstream: Upstream,
        reader: Reader,
        indexing: Indexing,
        holder: Holder,
        source_id: ItemId,
        root: str,
        lease_seconds: float,
        on_running: Callable[[], None],
    ) -> None:
        self._store, self._upstream, self._reader, self._holder = store, upstream, reader, holder
        self._on_running, state = on_running, store.load()
        self._identity, self._compaction_asked = state.incarnation, state.compaction_asked
        self._settings, self._announced = store.settings(), False
        self._executor = TickExecutor(
            spark,
            store,
            holder,
            source_id=source_id,
            root=root,
            states=indexing.states,
            check_identity=lambda: upstream.check_identity(self._identity),
            lanes=lambda: len(upstream.describe().partitions),
            reader=reader,
            driver_reads=lambda: self._settings.driver_reads,
        )
        self._arrivals = coming = IndexedArrivals(store, indexing)
        self._convergence = Convergence(store.load, holder.job_id, lease_seconds=lease_seconds, indexed=coming.ready)
        self._lock, self._last_tick = threading.Lock(), time.monotonic()
        self._pass, self._passes, self.committed = 0, 0, 0
        """The number of the pass that may mint, 0 while none may; and how many were begun."""
        self.small = 0
        """How many ticks in a row, with records, the driver could have read by itself."""
        self._at = Position()
        """Where the query's last tick ended: an empty tick is minted there and nowhere else."""
        self._known: frozenset[CollectionId] = frozenset()

    def close(self) -> None:
        self._executor.close()

    # ── around the query ──────────────────────────────────────────────────────────────────────────────────────────────

    def check_upstream(self) -> None:
        """Raise unless it is still the same upstream as in the log, and it still has the next records."""
        self._upstream.check_identity(self._identity)
        state = self._store.load()
        if state.tables:
            self._upstream.check_history(state.upper)

    def begin(self, settings: SourceSettings) -> tuple[int, Position]:
        """The number and the start of a new pass. Raises if the catalog has lost ticks: then nothing may be minted."""
        self._executor.check_log()
        self._settings, self._failure = settings, None
        self._passes += 1
        self._pass = self._passes
        state = self._store.load()
        self._arrivals.look(state)
        self._at = state.upper
        return self._pass, self._at

    def quiesce(self) -> None:
        self._pass = 0
        with self._lock:
            pass

    def raise_failure(self) -> None:
        """Raise the error of the tick that ended the query, if one did. Spark itself passes on only its text."""
        if self._failure is not None:
            raise self._failure

    def diagnose(self, error: Exception) -> MzShareError:
        """Explain an error of a library: is Spark gone, is it another upstream, or may another attempt succeed?"""
        self._executor.machine.check_alive()
        self.check_upstream()
        return self._executor.machine.storage_fault(error) or TransientError(short_reason(error))

    def indexed(self) -> Collection[Generation]:
        """The keyed tables on their way in whose index is there. Any thread may ask."""
        return self._arrivals.ready()

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def on_batch(self, number: int, batch: DataFrame, read_range: Callable[[], tuple[Position, Position]]) -> None:
        """One batch of the query that ``begin`` gave this number. A batch of an earlier query is ignored."""
        with self._lock:
            if self._pass != number:
                return
            try:
                lower, upper = read_range()
                crashpoint("offsets_known")
                if lower != upper:
                    self._mint_and_execute(lower, upper, batch)
            except BaseException as error:
                self._failure, self._pass = error, 0
                raise

    def reads_small(self) -> bool:
        """Whether there are ticks that need no Spark. A tick without records shows it."""
        return self._executor.read_thin(self._at, self._at) is not None

    def tick_small(self) -> bool:
        """Mint and execute what is there now, without Spark; False if it is too much for that.

        It is read before it is minted: what is too much, or cannot be read now, makes no tick.
        """
        with self._lock:
            try:
                upper = self._next_upper()
                read = None if upper == self._at else self._executor.read_thin(self._at, upper)
            except TerminalError:
                # What cannot be read now could be read before: perhaps it is another upstream.
                self.check_upstream()
                raise
            if upper == self._at:
                return True
            source = read or self._executor.parts(self._at, upper)
            if source is None:
                return False
            crashpoint("offsets_known")
            self._mint_and_execute(self._at, upper, source)
            return True

    def _next_upper(self) -> Position:
        end = self._upstream.end_offsets()
        if not self._at <= end:
            # If it is the same upstream, its end may come back.
            self.check_upstream()
            raise TransientError(f"the upstream ends at {end}, which is before {self._at}, up to where it was read")
        return self._at.toward(end, self._settings.max_records_per_tick)

    def _mint_and_execute(self, lower: Position, upper: Position, records: Read | Source) -> None:
        self._upstream.check_identity(self._identity)
        if set(upper) - set(lower):
            # A new partition: the upstream must still have all of its records.
            self._upstream.check_history(lower)
        self._convergence.wait(longest_wait(self._settings))
        tick = self._store.mint(
            self._holder, lower=lower, upper=upper, incarnation=self._identity, indexed=self._arrivals.ready()
        )
        crashpoint("tick_minted")
        self._execute(tick, lambda: self._bounded(tick), records)
        self._at = upper

    def looked(self, state: SourceState, settings: SourceSettings) -> None:
        """Called with each look at the catalog. If an empty tick completes a cutover, it is minted at once."""
        self._settings = settings
        self._convergence.look(state)
        self._arrivals.look(state)
        if state.compaction_asked != self._compaction_asked:
            self._compaction_asked = state.compaction_asked
            self._executor.compact_all()
        if backfill_rules.completes_cutover(state, self._arrivals.ready()):
            self._mint_empty()

    def tick_when_idle(self) -> None:
        """Spark makes no batch without records: mint an empty tick now and then, so that uppers advance."""
        if time.monotonic() - self._last_tick >= self._settings.idle_tick_seconds:
            self._mint_empty()

    def _mint_empty(self) -> None:
        """Skipped while a tick runs: that tick advances uppers too."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._pass:
                self._upstream.check_identity(self._identity)
                tick = self._store.mint_empty(
                    self._holder, at=self._at, incarnation=self._identity, indexed=self._arrivals.ready()
                )
                self._executor.open(self._members(tick))
                self._ticked()
        finally:
            self._lock.release()

    def finish_pending(self) -> None:
        """Finish each pending tick by a bounded read of exactly its range. Members that hold it already are skipped."""
        for pending in self._store.load().pending:
            self._spare(pending.number)
            tick = self._store.begin_attempt(self._holder, pending.number)
            log.info("%s finishes tick %s, attempt %s", self._holder.job_id, tick.number, tick.attempts)
            try:
                self._finish(tick)
            except StorageFault:
                self._to_spare = tick.number
                self._spare(tick.number)
                raise

    def _finish(self, tick: Tick) -> None:
        if not rules.executes_alone(tick):
            self._execute(tick, lambda: self._bounded(tick))
            return
        # A full disk may kill the process: no table must be blamed for that.
        self._executor.machine.check_storage()
        self._execute_alone(tick)

    def _spare(self, number: int) -> None:
        """Do not count the attempt that failed because of the storage. A catalog on the same full disk may refuse the
        change at first; it is tried again."""
        if self._to_spare == number:
            self._store.spare_attempt(self._holder, number)
            self._to_spare = None

    def _bounded(self, tick: Tick) -> Source | None:
        self._upstream.check_history(tick.lower)
        return self._executor.parts(tick.lower, tick.upper) or self._reader.bounded(tick.lower, tick.upper)

    def _execute(self, tick: Tick, read: Callable[[], Source | None], already: Read | Source | None = None) -> None:
        self._commit(tick, self._executor.execute(TickGroup((tick,)), self._members(tick), read, already))

    def _members(self, tick: Tick) -> Sequence[Member]:
        """Logs which members are new: tables that joined, were cut over, or got a new generation with this tick."""
        members = self._store.members(tick.number)
        new = [m.table_id for m in members if self._known and m.data not in self._known]
        if new:
            log.info("%s tick %s: %s joined", self._holder.job_id, tick.number, ", ".join(new))
        self._known = frozenset(m.data for m in members)
        self._executor.keep(members)
        return members

    # ── member by member ──────────────────────────────────────────────────────────────────────────────────────────────

    def _execute_alone(self, tick: Tick) -> None:
        """Each member alone, so that one that cannot be written does not stop the others. Members that fail leave."""
        outcomes: dict[ItemId, Outcome] = {}
        failed: dict[ItemId, str] = {}
        # The suspect first: only deaths in a row are counted.
        for member in sorted(self._members(tick), key=lambda m: m.table_id != tick.suspect):
            if rules.is_deadly(tick, member.table_id):
                outcomes[member.table_id] = Left("the app died several times while it wrote this table alone")
                continue
            with self._suspected(tick, member.table_id):
                try:
                    outcomes[member.table_id] = execute_one(
                        self._executor, TickGroup((tick,)), member, lambda: self._bounded(tick), self.diagnose
                    )
                except MemberFailed as error:
                    failed[member.table_id] = error.failures[member.table_id]
        if failed and not outcomes and tick.attempts < PATIENCE:
            raise WarehouseUnreachable("the warehouse", f"no table can be written: {next(iter(failed.values()))}")
        self._commit(tick, Executed({**outcomes, **{table_id: Left(reason) for table_id, reason in failed.items()}}))

    @contextmanager
    def _suspected(self, tick: Tick, table_id: ItemId) -> Iterator[None]:
        """If the process dies in here, the next holder finds which member was executed alone. An error is no death."""
        self._store.suspect(self._holder, tick.number, table_id)
        try:
            yield
        finally:
            self._store.suspect(self._holder, tick.number, None)

    # ── the end of a tick ─────────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, tick: Tick, executed: Executed) -> None:
        if any(isinstance(outcome, Unindexed) for outcome in executed.outcomes.values()):
            crashpoint("unindexed")
        self._store.commit(self._holder, tick.number, executed.outcomes, executed.stats)
        crashpoint("tick_committed")
        for table_id, outcome in executed.outcomes.items():
            if isinstance(outcome, Left):
                log.error("%s tick %s: %s stalled: %s", self._holder.job_id, tick.number, table_id, outcome.reason)
            if isinstance(outcome, Unindexed):
                log.warning(
                    "%s tick %s: %s has left until its index is made", self._holder.job_id, tick.number, table_id
                )
                crashpoint("left_unindexed")
        if found := executed.stats.get("records"):
            thin = is_thin(int(executed.stats["partitions"]), int(found)) and executed.stats["bytes"] <= THIN_BYTES
            self.small = self.small + 1 if thin else 0
        log.info("%s tick %s committed: %s", self._holder.job_id, tick.number, executed.stats)
        self._ticked()

    def _ticked(self) -> None:
        self._last_tick = time.monotonic()
        self.committed += 1
        self._executor.tidy()
        if not self._announced:
            try:
                self._on_running()
                self._announced = True
            except TransientError as error:
                log.warning("%s could not record yet that it runs: %s", self._holder.job_id, error)
