"""The catalog of the model of snapshots: each method is one transaction, and asks the real rules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection as SomeOf
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import arrival_plans, backfill_rules, rules, snapshots
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Done,
    Generation,
    Holder,
    Lease,
    Left,
    Outcome,
    Snapshot,
    SourceState,
    TableState,
    Tick,
)
from airflow_provider_mzshare.errors import NotResumable
from tests.support.snapshot_collections import Collection
from tests.support.snapshot_database import Database, Violation

UPSTREAM = "upstream-1"


class Mutant(Enum):
    NONE = "none"
    NO_BARRIER = "a snapshot is taken without waiting for whoever writes"
    BARRIER_BEFORE_P = "the barrier comes before P is known"
    BARRIER_BY_XMAX = "the barrier waits for the transactions that a snapshot knows, and not for later ones"
    H_BEFORE_SNAPSHOT = "H is asked for before the snapshot"
    H_IS_FLUSHED = "H is where the log is flushed, not where it is inserted"
    NO_FILTER = "ticks from P on apply whole"
    FILTER_BY_PLACE = "all that was committed before H is left out of the ticks"
    FILTER_OF_FIRST_TICK = "only the first tick after a snapshot is filtered"
    FILTER_LOST_ON_RESUME = "a table that is resumed before H goes on without its filter"
    CUTOVER_BEFORE_H = "a table is armed and made a member before H"
    READ_BEFORE_H = "a table can be read before H"
    SECOND_SNAPSHOT = "the rows of a snapshot are put whatever is there"
    OWN_SNAPSHOT_NOTED = "a run notes the snapshot that it took, not the one that has landed"
    KEEPER_NOT_NEEDED = "what was read counts although the keeper was lost"
    NOT_FLUSHED = "what was read counts before the log is flushed up to H"
    FILES_NOT_COMPARED = "rows count although the table has another file by now"
    FOLLOWED_WITHOUT = "a table follows ticks before it has its snapshot"
    JOINED_WITHOUT = "a table of an upstream with a snapshot shares the ticks if the log is at its start"
    WITHOUT_SLOT = "a snapshot is taken before the log has come to any place of the upstream"


class Catalog:
    """:param kinds: of the upstream's tables; each of ours is made from one of them."""

    def __init__(self, chance: random.Random, database: Database, mutant: Mutant) -> None:
        self._random, self.database, self.mutant = chance, database, mutant
        self.state = SourceState(ItemId("u1"), "active", UPSTREAM, Position(), by_snapshot=True)
        self.ticks: list[Tick] = []
        self.relations: dict[ItemId, int] = {}
        self.collections: dict[Generation, Collection] = {}
        self.taken: list[Snapshot] = []
        self.counts: Counter[str] = Counter()
        self._clock, self._ids, self._generations = 1000, 1, Counter[ItemId]()

    # ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lease(self, backfill: BackfillId | None) -> Lease:
        return self.state.lease if backfill is None else backfill_rules.check_present(self.state, backfill).lease

    def claim(self, backfill: BackfillId | None, job: JobId, seen: Lease) -> Holder:
        lease = rules.claim(self.lease(backfill), job, stood_still=seen)
        if backfill is None:
            self.state = replace(self.state, lease=lease)
        else:
            moved = replace(self.state.backfills[backfill], lease=lease)
            self.state = replace(self.state, backfills={**self.state.backfills, backfill: moved})
        return Holder(job, lease.epoch)

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_tables(self, count: int) -> None:
        arrival = arrival_plans.create(self.state, "new", snapshot=True)
        is_late = self.mutant is not Mutant.JOINED_WITHOUT or self.state.upper != self.state.start
        backfill = self._new_backfill() if is_late else None
        tables = dict(self.state.tables)
        for _ in range(count):
            self._ids += 1
            table_id = ItemId(f"u{self._ids}")
            self.relations[table_id] = self._random.randrange(len(self.database.kinds))
            tables[table_id] = self._new(table_id, arrival, backfill)
        self.state = replace(self.state, tables=tables)

    def _new(self, table_id: ItemId, arrival: arrival_plans.Arrival, backfill: BackfillId | None) -> TableState:
        self._generations[table_id] += 1
        generation = self._generations[table_id]
        kind = self.database.kinds[self.relations[table_id]]
        self.collections[table_id, generation] = Collection(f"{table_id}/{generation}", kind)
        return TableState(
            table_id,
            arrival.begins_as if backfill else "created",
            generation,
            1,
            arrival.position,
            position=arrival.position,
            next_tick=arrival.tick,
            backfill_id=backfill,
            awaits_snapshot=arrival.by_snapshot and backfill is not None,
        )

    def resume(self, table_id: ItemId) -> bool:
        try:
            arrival_plans.resume(self.state, table_id, table_id)
        except NotResumable:
            return False
        table, replaces = arrival_plans.to_resume(self.state, table_id)
        heals = table.upper > 0 and not replaces
        again = backfill_rules.resume(table, self._new_backfill(frozenset({table_id} if heals else ())))
        self.counts["resumed before its snapshot"] += table.awaits_snapshot
        self.counts["resumed before H"] += table.snapshot is not None
        if self.mutant is Mutant.FILTER_LOST_ON_RESUME:
            again = replace(again, snapshot=None)
        self.state = backfill_rules.with_arrivals(self.state, {table_id: again})
        return True

    def resnapshot(self, table_id: ItemId) -> None:
        try:
            arrival = arrival_plans.resnapshot(self.state, table_id, table_id, start_tick=1)
        except NotResumable:
            return
        new = self._new(table_id, arrival, self._new_backfill())
        self.state = replace(self.state, replacements={**self.state.replacements, table_id: new})
        self.state = rules.without_idle_backfills(self.state)

    def merge(self) -> None:
        for group in backfill_rules.merging(self.state, self.state.backfills):
            self.counts["merges"] += 1
            self.state = backfill_rules.with_merged(self.state, group)

    def arm(self, max_lag: int) -> None:
        for table_id, table in backfill_rules.arriving(self.state).items():
            if self.mutant is Mutant.CUTOVER_BEFORE_H and table.status == "backfilling" and not table.awaits_snapshot:
                armed: TableState | None = replace(table, status="converging", known_from=Position())
            else:
                armed = backfill_rules.arm(self.state, table_id, max_lag=max_lag)
            if armed is not None:
                self.state = backfill_rules.with_arrivals(self.state, {table_id: armed})

    def _new_backfill(self, healing: frozenset[ItemId] = frozenset()) -> BackfillId:
        self.counts["backfills"] += 1
        backfill = BackfillId(f"b{self.counts['backfills']}")
        state = BackfillState(backfill, self.state.last_number, healing=healing, asked_at=self.counts["backfills"])
        self.state = replace(self.state, backfills={**self.state.backfills, backfill: state})
        return backfill

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def mint(self, holder: Holder, lower: Position, upper: Position) -> Tick:
        self._clock += self._random.choice((-5, 0, 1, 7))
        minted = rules.mint(self.state, holder, lower=lower, upper=upper, incarnation=UPSTREAM, now_ms=self._clock)
        self.state = rules.after_mint(self.state, minted)
        self.counts["cutovers"] += len(minted.joins) + len(minted.swaps)
        self.ticks.append(minted.tick)
        return minted.tick

    def mint_empty(self, holder: Holder) -> None:
        tick = self.mint(holder, self.state.upper, self.state.upper)
        self.commit(holder, tick.number, dict.fromkeys(self.state.members, Done()))

    def begin_attempt(self, holder: Holder, number: int) -> Tick:
        tick = rules.begin_attempt(self.state, holder, number)
        self.state = replace(self.state, pending=(tick,))
        return tick

    def commit(self, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome]) -> None:
        before = self.state
        self.state = rules.after_commit(self.state, rules.commit(self.state, holder, number, outcomes))
        self._check_readable(before)

    # ── backfills ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def take(self, backfill: BackfillId, holder: Holder, snapshot: Snapshot, tables: SomeOf[ItemId]) -> list[ItemId]:
        tick = self.state.last if snapshot.tick == 0 else replace(self.ticks[snapshot.tick - 1], committed=True)
        if snapshot.tick == 0:
            return list(tables)
        found = snapshots.taking(self.state, backfill, holder, snapshot, tick, tables)
        self.taken.append(snapshot)
        self.counts["snapshots taken"] += 1
        self.counts["snapshots beside a pending tick"] += bool(self.state.pending)
        return [table.table_id for table in found]

    def land(self, backfill: BackfillId, holder: Holder, outcomes: Mapping[ItemId, Landed | Left]) -> None:
        followed = snapshots.land(self.state, backfill, holder, outcomes)
        self.state = backfill_rules.with_arrivals(self.state, followed.tables)
        self.counts["snapshots landed"] += sum(1 for table in followed.tables.values() if table.snapshot)

    def follow(
        self, backfill: BackfillId, holder: Holder, first: int, last: Tick, outcomes: Mapping[ItemId, Outcome]
    ) -> None:
        before = self.state
        followed = backfill_rules.follow(before, backfill, holder, first=first, last=last, outcomes=outcomes)
        moved = dict(followed.tables)
        if self.mutant is Mutant.READ_BEFORE_H:
            last_time = last.mz_timestamp
            done = [table_id for table_id in moved if isinstance(outcomes[table_id], Done)]
            moved |= {t: replace(moved[t], upper=last_time + 1, since=last_time) for t in done}
        self.counts["groups below H"] += any(table.snapshot is not None for table in moved.values())
        self.state = backfill_rules.with_arrivals(before, moved)
        self._check_readable(before)

    # ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_readable(self, before: SourceState) -> None:
        """At every tick that can be read, a table's rows are what all transactions before its end make."""
        was = {table.identity: table.upper for table in _all(before)}
        for table in _all(self.state):
            if table.upper != was.get(table.identity, 0) and table.upper:
                self.check(table, table.upper - 1)

    def check(self, table: TableState, time: int) -> None:
        tick = next(tick for tick in self.ticks if tick.mz_timestamp == time)
        found = self.collections[table.identity].rows_at(time)
        right = self.database.truth(self.relations[table.table_id], tick.upper["lsn"])
        self.counts["checks"] += 1
        if found != right:
            raise Violation(f"{table.identity} at tick {tick.number}: {found}, and not {right}")


def _all(state: SourceState) -> Sequence[TableState]:
    return [*state.tables.values(), *state.replacements.values()]
