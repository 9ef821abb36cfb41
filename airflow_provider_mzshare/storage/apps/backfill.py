"""The backfill app: execute the ticks its tables have missed, follow the new ones, end when all are cut over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import cast

from airflow_provider_mzshare.connectors.base import SnapshotConnector
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import snapshots, tombstones
from airflow_provider_mzshare.core.ticklog.backfill_rules import arriving
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.rules import COMING
from airflow_provider_mzshare.core.ticklog.state import Generation, Holder, SourceState, TableState, Tick
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, LeaseStore, Reading
from airflow_provider_mzshare.errors import Fenced, GroupTooShort, MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.backfill_groups import Groups
from airflow_provider_mzshare.storage.apps.backfill_progress import Reporter
from airflow_provider_mzshare.storage.apps.backfill_steps import MAX_RECORDS, Pacer, cut_group, rearmost
from airflow_provider_mzshare.storage.apps.base import LOOK_SECONDS, App, End, Holding
from airflow_provider_mzshare.storage.apps.end_watch import EndWatch
from airflow_provider_mzshare.storage.apps.lease import Heartbeat
from airflow_provider_mzshare.storage.apps.snapshots import Beginnings, SnapshotReading
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.writing.key_states import LentStates

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
PAGE = 1_000
"""Ticks asked for at once."""


@dataclass(frozen=True, kw_only=True)
class Backfill(App):
    """One run of a backfill's app; or of an ingestion app's thread that executes a backfill of tables without an index.

    :param max_records: the size of a group.
    :param indexed: in a thread: the tables whose index the app has. The others wait. None: indexes are made at need.
    """

    store: BackfillStore
    backfill_id: BackfillId
    max_records: int = MAX_RECORDS
    indexed: Callable[[], Collection[Generation]] | None = None

    @property
    def leases(self) -> LeaseStore:
        return self.store

    @property
    def subject(self) -> str:
        return self.backfill_id

    def hold(self, holder: Holder, heartbeat: Heartbeat) -> End:
        crashpoint("backfill_launched")
        return self.insist(lambda: _Following(self, holder, heartbeat)).run()

    def when_fenced(self, error: Fenced) -> End:
        """A fenced app has finished if its backfill has no tables left, whoever found that out first."""
        try:
            is_over = not self.insist(lambda: arriving(self.store.load(), self.backfill_id))
        except MzShareError:
            is_over = False
        return self.finished() if is_over else super().when_fenced(error)

    def finished(self) -> End:
        crashpoint("fenced")
        return End("finished")


class _Following(Holding):
    """Group after group, while any table of the backfill has not been cut over."""

    _app: Backfill

    def __init__(self, app: Backfill, holder: Holder, heartbeat: Heartbeat) -> None:
        super().__init__(app, holder, heartbeat)
        self._groups = Groups(
            spark=app.spark,
            store=app.store,
            upstream=app.upstream,
            reader=app.reader,
            states=app.indexing.states if app.indexed is None else LentStates(app.indexing.states),
            holder=holder,
            source_id=app.source_id,
            backfill_id=app.backfill_id,
            root=app.root,
        )
        self._beginnings: Beginnings | None = None
        self._ends = EndWatch(app.upstream, app.store, app.job_id)
        self._pacer = Pacer()
        self._kept: frozenset[Generation] = frozenset()
        self._brought: set[Generation] = set()
        """Tables that were its own at some time, and their generations."""
        self._at_least = 0
        self._announced = False
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._reporter = Reporter(self._reading, app.store, holder, seconds=app.heartbeat_seconds)

    @property
    def progress(self) -> int:
        return self._groups.done + (self._beginnings.done if self._beginnings else 0)

    def diagnose(self, error: Exception) -> MzShareError:
        return self._groups.diagnose(error)

    def close(self) -> None:
        self._reporter.close()
        self._groups.close()
        if self._beginnings:
            self._beginnings.close()

    def fenced(self, error: Fenced) -> End:
        return self._over() if (end := super().fenced(error)).state == "finished" else end

    def _over(self) -> End:
        """The backfill has no table left: they were cut over, dropped or given up."""
        self._note_lost(self._app.insist(self._app.store.load))
        left = self._groups.left or (self._beginnings.left if self._beginnings else None)
        return End("stalled", left) if left else self._app.finished()

    def stalled(self, reason: str, error: MzShareError) -> End | None:
        """Only tables of this backfill stall. If history is gone upstream, only those stall that still need it."""
        is_over = self._app.insist(lambda: self._groups.leave(error.message, only_rearmost=reason == "history_gone"))
        return End("stalled", error.line) if is_over else None

    # ── group after group ─────────────────────────────────────────────────────────────────────────────────────────────

    def one_pass(self) -> End | None:
        """Execute groups until something fails or all is done. First check that the catalog has not lost ticks."""
        self._groups.check_log()
        self._look(now=True)
        wait = 0.0
        while not self._app.stop.wait(wait):
            if self._is_told_to_stop():
                break
            self.check_lease()
            state = self._look()
            tables = arriving(state, self._app.backfill_id)
            if not tables:
                return self._over()
            self._keep(tables)
            if waiting := snapshots.awaiting(state, self._app.backfill_id):
                wait = self._begin(state, waiting)
            else:
                wait = self._step(state, ready) if (ready := self._ready(tables)) else POLL_SECONDS
        return End("stopped")

    def _begin(self, state: SourceState, waiting: Mapping[ItemId, TableState]) -> float:
        app = self._app
        if self._beginnings is None:
            self._beginnings = Beginnings(
                spark=app.spark,
                store=app.store,
                upstream=app.upstream,
                connector=cast("SnapshotConnector", app.connector),
                reader=app.reader,
                states=app.indexing.states,
                holder=self._holder,
                source_id=app.source_id,
                backfill_id=app.backfill_id,
                root=app.root,
                tell=self.tell,
                stop=self._must_stop,
            )
        self._announce()
        return self._beginnings.step(state, waiting)

    def _must_stop(self) -> bool:
        """Asked while a snapshot waits for others."""
        return self._app.stop.is_set() or self._heartbeat.fenced.is_set() or self._is_told_to_stop()

    def _reading(self) -> Reading | SnapshotReading | None:
        return self._groups.reading() or (self._beginnings.reading() if self._beginnings else None)

    def _ready(self, tables: Mapping[ItemId, TableState]) -> Mapping[ItemId, TableState]:
        """No table waits for the index of another."""
        if self._app.indexed is None:
            return tables
        indexed = self._app.indexed()
        return {table_id: table for table_id, table in tables.items() if table.identity in indexed}

    def _keep(self, tables: Mapping[ItemId, TableState]) -> None:
        """Let go of what is known of the rows of tables that have left."""
        now = frozenset(table.identity for table in tables.values())
        if now != self._kept:
            self._groups.keep(self._app.store.members(tables))
            self._kept = now

    def _look(self, *, now: bool = False) -> SourceState:
        """The source as it is, without tables that may have missed a delete."""
        state = self._app.store.load()
        self._brought |= {t.identity for t in arriving(state, self._app.backfill_id).values()}
        return self._app.store.load() if self._ends.look(state, now=now) else state

    def _note_lost(self, state: SourceState) -> None:
        """Tables that may have missed a delete are given up by whichever app sees it first."""
        for table in (*state.tables.values(), *state.replacements.values()):
            is_mine = table.identity in self._brought
            if is_mine and table.status == "stalled" and (table.reason or "").startswith(tombstones.REASON):
                self._groups.left = table.reason

    def _is_told_to_stop(self) -> bool:
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + LOOK_SECONDS
        return self._app.stop_requested()

    def _step(self, state: SourceState, tables: Mapping[ItemId, TableState]) -> float:
        """Execute the next group, if there is one and the rate allows it. Returns how long to wait after that."""
        behind = rearmost(tables)
        if behind.first > state.last_number:
            self._announce()
            self.tell(None)
            return POLL_SECONDS
        # A table that was live is not held back.
        rate = self._app.store.settings().backfill_rate if self._app.indexed is None else None
        wait = self._pacer.wait(rate, time.monotonic())
        if wait:
            self._announce()
            return min(wait, LOOK_SECONDS / 2)
        behind = rearmost(tables, self._app.store.spec_changes(behind.table_ids), at_least=self._at_least)
        group = cut_group(
            self._ticks(behind.first, state.last_number),
            max_records=self._pacer.max_records(rate, self._app.max_records) * self._app.reader.place.per_record,
            before=behind.before,
            at_least=self._at_least,
        )
        self._execute(group, state, {table_id: tables[table_id] for table_id in behind.table_ids})
        return 0.0

    def _ticks(self, first: int, head: int) -> Iterator[Tick]:
        """Only up to the newest tick that was loaded with the tables: a later one may already have cut them over."""
        while first <= head and (page := self._app.store.ticks(first, min(PAGE, head + 1 - first))):
            yield from page
            first = page[-1].number + 1

    def _execute(self, group: TickGroup, state: SourceState, tables: Mapping[ItemId, TableState]) -> None:
        backfill = state.backfills.get(self._app.backfill_id)
        history = backfill.history if backfill else 0
        crashpoint("backfill_reading")
        if group.first.number > history:
            crashpoint("following")
        if any(table.status in COMING for table in tables.values()):
            crashpoint("converging")
        if any(table.keyed and table.begun_at is None for table in tables.values()):
            self._app.store.begin_reads(tables)
        self._pacer.begin(group.records // self._app.reader.place.per_record, time.monotonic())
        is_late = len(group.ticks) > 1 or group.number <= history
        compacts = self._ends.compaction is not None and any(table.keyed for table in tables.values())
        members = self._app.store.members(tables, group.first.number)
        try:
            self._groups.execute(group, members, asks_end=is_late and compacts, gone=_all_gone(tables.values()))
        except GroupTooShort as short:
            log.info("%s: %s", self._app.backfill_id, short.message)
            self._at_least = short.tick
            self._pacer.begin(0, time.monotonic())
            return
        self._at_least = 0
        self.tell(None)
        self._announce()
        if group.first.number <= history <= group.number:
            log.info("%s has all of the history, up to tick %s", self._app.backfill_id, group.number)
            crashpoint("history_done")

    def _announce(self) -> None:
        if self._announced:
            return
        try:
            self._app.on_running()
            self._announced = True
        except TransientError as error:
            log.warning("%s could not record yet that it runs: %s", self._app.job_id, error)


def _all_gone(tables: Iterable[TableState]) -> Position:
    """What is gone for all of them: the others need the rest."""
    return reduce(Position.meet, (table.gone for table in tables))
