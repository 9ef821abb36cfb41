"""A backfill's part of a source's log, in the catalog: behind the source's lock, under the backfill's own lease."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import select, tuple_

from airflow_provider_mzshare.control.catalog.damages import note_damage
from airflow_provider_mzshare.control.catalog.database.clock import monotonic_ms, wall_ms
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import BackfillRow, CollectionRow, TickRow
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state, to_tick
from airflow_provider_mzshare.control.catalog.log.backfills import held
from airflow_provider_mzshare.control.catalog.log.ends import write_begun, write_end
from airflow_provider_mzshare.control.catalog.log.follows import write_followed, write_reading
from airflow_provider_mzshare.control.catalog.log.leases import write_lease
from airflow_provider_mzshare.control.catalog.log.members import (
    CatalogMember,
    knows_tick,
    last_written,
    members_of,
    written_collections,
)
from airflow_provider_mzshare.control.catalog.log.snapshot_rows import write_landed, write_read, write_taken
from airflow_provider_mzshare.control.catalog.objects.table_specs import first_ticks, open_tick
from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog import backfill_rules, rules, snapshots, tombstones
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    EndSeen,
    Generation,
    Holder,
    Lease,
    Left,
    Outcome,
    Snapshot,
    SourceState,
    Tick,
)
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, Reading


class CatalogBackfillStore(BackfillStore):
    def __init__(
        self, catalog: Catalog, source_id: ItemId, backfill_id: BackfillId, *, clock: Callable[[], int] = wall_ms
    ) -> None:
        self._catalog, self._source_id, self._backfill_id = catalog, source_id, backfill_id
        self._steady = tombstones.SteadyClock(clock, monotonic_ms)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def load(self) -> SourceState:
        with self._catalog.read() as session:
            return load_state(session, get_source(session, self._source_id))

    def settings(self) -> SourceSettings:
        with self._catalog.read() as session:
            return SourceSettings.model_validate_json(get_source(session, self._source_id).settings)

    def ticks(self, first: int, limit: int) -> Sequence[Tick]:
        query = select(TickRow).where(TickRow.source_id == self._source_id, TickRow.number >= first)
        with self._catalog.read() as session:
            return [to_tick(row) for row in session.scalars(query.order_by(TickRow.number).limit(limit))]

    def spec_changes(self, table_ids: Collection[ItemId]) -> Mapping[ItemId, Sequence[int]]:
        with self._catalog.read() as session:
            return first_ticks(session, table_ids)

    def members(self, table_ids: Collection[ItemId], tick: int | None = None) -> Sequence[CatalogMember]:
        with self._catalog.read() as session:
            state = load_state(session, get_source(session, self._source_id))
            mine = backfill_rules.arriving(state, self._backfill_id)
            wanted = [(table_id, mine[table_id].generation) for table_id in table_ids if table_id in mine]
            at = open_tick(self._source_id) if tick is None else tick
            found = members_of(session, tuple_(CollectionRow.table_id, CollectionRow.generation).in_(wanted), at)
            return [replace(one, left_out=snapshots.left_out(mine[one.table_id])) for one in found]

    def collections(self) -> Sequence[CollectionId]:
        return [name for member in self.members(self._mine()) for name in (member.data, member.errors)]

    def _mine(self) -> Collection[ItemId]:
        return backfill_rules.arriving(self.load(), self._backfill_id)

    def knows(self, mz_timestamp: int) -> bool:
        with self._catalog.read() as session:
            return knows_tick(session, self._source_id, mz_timestamp)

    def last_written(self) -> Mapping[CollectionId, int]:
        with self._catalog.read() as session:
            return last_written(session, written_collections(self._source_id))

    def note_damage(self, collection_id: CollectionId, problem: str) -> None:
        with self._catalog.write() as session:
            note_damage(session, collection_id, problem)

    def advance_since(self, holder: Holder) -> None:
        """Nothing to do: groups move ``since`` of a new table, and a table that is healed keeps its ``since``."""

    # ── the lease ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lease(self) -> Lease:
        return self._present(self.load()).lease

    def claim(self, job_id: JobId, *, stood_still: Lease | None = None) -> Holder:
        lease = self._change_lease(lambda lease: rules.claim(lease, job_id, stood_still=stood_still))
        return Holder(job_id=job_id, epoch=lease.epoch)

    def beat(self, holder: Holder) -> None:
        self._change_lease(lambda lease: rules.beat(lease, holder))

    def release(self, holder: Holder) -> None:
        self._change_lease(lambda lease: rules.release(lease, holder))

    def check_planned(self, holder: Holder, planned: Collection[Generation]) -> None:
        with self._catalog.read() as session:
            lease, own = held(session, self._source_id, self._backfill_id)
        backfill_rules.check_planned(lease, own, self._backfill_id, holder, planned)

    def _present(self, state: SourceState) -> BackfillState:
        return backfill_rules.check_present(state, self._backfill_id)

    def _change_lease(self, decide: Callable[[Lease], Lease]) -> Lease:
        with self._catalog.locked(self._source_id) as (session, state):
            before = self._present(state).lease
            after = decide(before)
            write_lease(session, BackfillRow, self._backfill_id, before, after)
            return after

    # ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def follow(
        self,
        holder: Holder,
        *,
        first: int,
        last: Tick,
        outcomes: Mapping[ItemId, Outcome],
        stats: Mapping[str, float],
        end: Position | None = None,
    ) -> Followed:
        with self._catalog.locked(self._source_id) as (session, state):
            if state.ends:
                mine, now = backfill_rules.arriving(state, self._backfill_id), self._steady.now(state.ends)
                outcomes = tombstones.judged(mine, state.ends, outcomes, last.upper, now)
            followed = backfill_rules.follow(
                state, self._backfill_id, holder, first=first, last=last, outcomes=outcomes, end=end
            )
            write_followed(session, state, self._backfill_id, last, outcomes, followed, stats, late=end is not None)
            return followed

    def take_snapshot(self, holder: Holder, snapshot: Snapshot, expected: Mapping[ItemId, int]) -> Collection[ItemId]:
        with self._catalog.locked(self._source_id) as (session, state):
            of_log = TickRow.source_id == self._source_id, TickRow.number == snapshot.tick
            row = session.scalar(select(TickRow).where(*of_log))
            tick = None if row is None else to_tick(row)
            tables = snapshots.taking(state, self._backfill_id, holder, snapshot, tick, expected)
            write_taken(session, self._backfill_id, snapshot, tables, expected)
            return [table.table_id for table in tables]

    def land_snapshots(
        self, holder: Holder, outcomes: Mapping[ItemId, Landed | Left], stats: Mapping[str, float]
    ) -> Followed:
        with self._catalog.locked(self._source_id) as (session, state):
            followed = snapshots.land(state, self._backfill_id, holder, outcomes)
            write_landed(session, state, self._backfill_id, outcomes, followed, stats)
            return followed

    def note_snapshot_read(self, holder: Holder, snapshot_id: SnapshotId, read: Mapping[ItemId, int]) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            backfill_rules.check_backfill(state, self._backfill_id, holder)
            write_read(session, snapshot_id, read)

    def begin_reads(self, table_ids: Collection[ItemId]) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            write_begun(session, state, table_ids, self._steady.now(state.ends))

    def see_end(self, end: Position, *, ago_ms: int, kept_ms: int | None, lag_ms: int) -> Mapping[ItemId, str]:
        with self._catalog.locked(self._source_id) as (session, state):
            now = self._steady.now(state.ends)
            return write_end(session, state, EndSeen(now - ago_ms, end, kept_ms, lag_ms), now)

    def note_reading(self, holder: Holder, reading: Reading) -> None:
        with self._catalog.locked(self._source_id) as (session, state):
            backfill_rules.check_backfill(state, self._backfill_id, holder)
            mine = backfill_rules.arriving(state, self._backfill_id)
            still = [one for one in reading.tables if one in mine and mine[one].next_tick == reading.first]
            write_reading(session, self._backfill_id, still, reading.records)
