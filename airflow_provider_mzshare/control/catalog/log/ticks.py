"""The tick log's store in the catalog: lock the source, ask the rules, write what they say, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from sqlalchemy import tuple_

from airflow_provider_mzshare.control.catalog.damages import note_damage
from airflow_provider_mzshare.control.catalog.database.clock import monotonic_ms, wall_ms
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.database.source_states import (
    current_members,
    get_source,
    lease_of,
    load_state,
    lock_source,
)
from airflow_provider_mzshare.control.catalog.log.ends import write_end
from airflow_provider_mzshare.control.catalog.log.leases import write_lease
from airflow_provider_mzshare.control.catalog.log.members import (
    CatalogMember,
    knows_tick,
    last_written,
    members_of,
    written_collections,
)
from airflow_provider_mzshare.control.catalog.log.retention import advance_since
from airflow_provider_mzshare.control.catalog.log.statistics import note_end
from airflow_provider_mzshare.control.catalog.log.tick_rows import (
    write_committed,
    write_minted,
    write_stall,
    write_tick,
)
from airflow_provider_mzshare.control.catalog.objects.table_specs import open_tick
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import rules, tombstones
from airflow_provider_mzshare.core.ticklog.state import (
    Done,
    EndSeen,
    Generation,
    Holder,
    Lease,
    Outcome,
    SourceState,
    Tick,
)
from airflow_provider_mzshare.core.ticklog.stores import TickStore
from airflow_provider_mzshare.errors import Fenced

log = logging.getLogger(__name__)


class CatalogTickStore(TickStore):
    """One source's log.

    :param clock: proposes timestamps, in milliseconds; the rules make them grow.
    """

    def __init__(self, catalog: Catalog, source_id: ItemId, *, clock: Callable[[], int] = wall_ms) -> None:
        self._catalog = catalog
        self._source_id = source_id
        self._clock = clock
        self._steady = tombstones.SteadyClock(clock, monotonic_ms)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> SourceState:
        with self._catalog.read() as session:
            return load_state(session, get_source(session, self._source_id))

    def settings(self) -> SourceSettings:
        with self._catalog.read() as session:
            return SourceSettings.model_validate_json(get_source(session, self._source_id).settings)

    def members(self, tick: int | None = None) -> Sequence[CatalogMember]:
        current = TableRow.id.in_(current_members(self._source_id))
        at = open_tick(self._source_id) if tick is None else tick
        with self._catalog.read() as session:
            return members_of(session, current & (CollectionRow.generation == TableRow.generation), at)

    def generations(self, wanted: Collection[Generation]) -> Sequence[CatalogMember]:
        if not wanted:
            return []
        these = tuple_(CollectionRow.table_id, CollectionRow.generation).in_(sorted(wanted))
        with self._catalog.read() as session:
            return members_of(session, these, open_tick(self._source_id))

    def collections(self) -> Sequence[CollectionId]:
        """Of current generations only: a backfill looks after the generations that it fills."""
        current = written_collections(self._source_id).where(CollectionRow.generation == TableRow.generation)
        with self._catalog.read() as session:
            return session.scalars(current.where(TableRow.backfill_id.is_(None))).all()

    def knows(self, mz_timestamp: int) -> bool:
        with self._catalog.read() as session:
            return knows_tick(session, self._source_id, mz_timestamp)

    def last_written(self) -> Mapping[CollectionId, int]:
        with self._catalog.read() as session:
            return last_written(session, written_collections(self._source_id))

    # ── the lease ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lease(self) -> Lease:
        with self._catalog.read() as session:
            return lease_of(get_source(session, self._source_id))

    def claim(self, job_id: JobId, *, stood_still: Lease | None = None) -> Holder:
        def decide(lease: Lease) -> Lease:
            return rules.claim(lease, job_id, stood_still=stood_still)

        return Holder(job_id=job_id, epoch=self._change_lease(decide, present=True).epoch)

    def beat(self, holder: Holder) -> None:
        self._change_lease(lambda lease: rules.beat(lease, holder))

    def release(self, holder: Holder) -> None:
        self._change_lease(lambda lease: rules.release(lease, holder))

    def _change_lease(self, decide: Callable[[Lease], Lease], *, present: bool = False) -> Lease:
        with self._catalog.write() as session:
            source = lock_source(session, self._source_id)
            if present and source.status == "dropped":
                raise Fenced(f"source {self._source_id} is dropped")
            before = lease_of(source)
            after = decide(before)
            write_lease(session, SourceRow, self._source_id, before, after)
            return after

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def mint(
        self,
        holder: Holder,
        *,
        lower: Position,
        upper: Position,
        incarnation: str,
        indexed: Collection[Generation] | None = None,
    ) -> Tick:
        with self._catalog.locked(self._source_id) as (session, state):
            now = self._clock()
            minted = rules.mint(
                state, holder, lower=lower, upper=upper, incarnation=incarnation, now_ms=now, indexed=indexed
            )
            write_minted(session, state, minted, holder, now)
            return minted.tick

    def mint_empty(
        self, holder: Holder, *, at: Position, incarnation: str, indexed: Collection[Generation] | None = None
    ) -> Tick:
        """An empty tick, committed at once: every member is done, nothing is written for it."""
        with self._catalog.locked(self._source_id) as (session, state):
            now = self._clock()
            minted = rules.mint(state, holder, lower=at, upper=at, incarnation=incarnation, now_ms=now, indexed=indexed)
            write_minted(session, state, minted, holder, now)
            state = rules.after_mint(state, minted)
            outcomes = {table_id: Done() for table_id in state.members}
            committed = rules.commit(state, holder, minted.tick.number, outcomes)
            write_committed(session, state, committed, {}, now)
            return committed.tick

    def begin_attempt(self, holder: Holder, number: int) -> Tick:
        with self._catalog.locked(self._source_id) as (session, state):
            tick = rules.begin_attempt(state, holder, number)
            write_tick(session, self._source_id, tick)
            return tick

    def spare_attempt(self, holder: Holder, number: int) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            write_tick(session, self._source_id, rules.spare_attempt(state, holder, number))

    def suspect(self, holder: Holder, number: int, table_id: ItemId | None) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            write_tick(session, self._source_id, rules.suspect(state, holder, number, table_id))

    def commit(
        self, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome], stats: Mapping[str, float]
    ) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            if state.ends and state.pending:
                upper, now = state.pending[0].upper, self._steady.now(state.ends)
                outcomes = tombstones.judged(state.tables, state.ends, outcomes, upper, now)
            committed = rules.commit(state, holder, number, outcomes)
            write_committed(session, state, committed, stats, self._clock())

    def note_damage(self, collection_id: CollectionId, problem: str) -> None:
        with self._catalog.write() as session:
            note_damage(session, collection_id, problem)

    def advance_since(self, holder: Holder) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            rules.check_holder(state.lease, holder)
            dropped = advance_since(session, state, self._clock())
        for hold in dropped:
            log.warning("%s", hold.line)

    def note_end(self, end: Position) -> None:
        with self._catalog.write() as session:
            note_end(session, self._source_id, end.total)

    def see_end(self, end: Position, *, ago_ms: int, kept_ms: int | None, lag_ms: int) -> Mapping[ItemId, str]:
        with self._catalog.locked(self._source_id) as (session, state):
            now = self._steady.now(state.ends)
            return write_end(session, state, EndSeen(now - ago_ms, end, kept_ms, lag_ms), now)

    def stall(self, holder: Holder, reason: str, message: str) -> None:
        with self._catalog.write() as session:
            source = lock_source(session, self._source_id)
            rules.check_holder(lease_of(source), holder)
            if source.status == "dropped":
                raise Fenced(f"source {self._source_id} is dropped")
            if source.status == "active":
                write_stall(session, self._source_id, reason, message)
