"""Leases and tables in a catalog in memory: each method is one transaction, and asks the real rules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import arrival_plans, backfill_rules, rules, spec_versions
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Holder,
    Lease,
    SourceState,
    TableState,
    Tick,
    Written,
)
from airflow_provider_mzshare.errors import NotResumable
from tests.support.simulation.delta import Delta
from tests.support.simulation.keyed import APPEND, WITH_VECTORS
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.topic import ROLES, Topic
from tests.support.simulation.vector_delta import Storage, VectorDelta

TOPIC_ID = "topic-1"


def collection_id(table: TableState, role: str) -> CollectionId:
    return CollectionId(f"{table.table_id}/{table.generation}/{role}")


def changed(state: SourceState, **changes: object) -> SourceState:
    """What ``dataclasses.replace`` does, several times as fast."""
    new = object.__new__(SourceState)
    new.__dict__.update(state.__dict__, **changes)
    return new


class Tables:
    def __init__(self, chance: random.Random, topic: Topic, mutant: Mutant, kinds: Sequence[str] = (APPEND,)) -> None:
        self._random, self.topic, self._mutant, self._kinds = chance, topic, mutant, kinds
        self.state = SourceState(ItemId("u1"), "active", TOPIC_ID, topic.end)
        self.ticks: list[Tick] = []
        """As they were minted, by number."""
        self.numbers: dict[int, int] = {}
        """Ticks by time."""
        self.delta: dict[CollectionId, Delta] = {}
        self.commits: dict[CollectionId, list[Written]] = {}
        self.starts: dict[ItemId, tuple[Position, int]] = {}
        """Where a table begins, and the first tick that is its own."""
        self.specs: dict[ItemId, list[int]] = {}
        """The first ticks of the versions of each table's spec."""
        self.kinds: dict[ItemId, str] = {}
        self.storage = Storage()
        self.counts: Counter[str] = Counter()
        """What has happened, to show that it does."""
        self.fenced_changes: list[str] = []
        """Changes by a holder that had lost its lease: there must be none."""
        self.presumed_dead: set[JobId] = set()
        self.unclear: set[CollectionId] = set()
        """Keyed collections whose writer gave up without knowing what became of its last commit."""
        self.readable_since: dict[tuple[ItemId, int], int] = {}
        """Of tables that were healed: what could be read of them stays so."""
        self._clock = 1000
        self._ids, self._backfills = 1, 0
        self._heals: Counter[ItemId] = Counter()
        self._generations: dict[ItemId, int] = {}

    # ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lease(self, backfill: BackfillId | None) -> Lease:
        return self.state.lease if backfill is None else backfill_rules.check_present(self.state, backfill).lease

    def claim(self, backfill: BackfillId | None, job: JobId, seen: Lease) -> Holder:
        lease = rules.claim(self.lease(backfill), job, stood_still=seen)
        self._write_lease(backfill, lease)
        return Holder(job, lease.epoch)

    def presume_dead(self, backfill: BackfillId | None) -> None:
        """Somebody takes the holder's process for gone, rightly or wrongly."""
        lease = self.lease(backfill)
        if lease.job_id is None:
            return
        self.presumed_dead.add(lease.job_id)
        self.counts["presumed dead"] += 1
        if self._mutant is not Mutant.DEAD_IS_NOT_FENCED:
            self._write_lease(backfill, rules.give_up(lease, lease.job_id))

    def _write_lease(self, backfill: BackfillId | None, lease: Lease) -> None:
        if backfill is None:
            self.state = changed(self.state, lease=lease)
        else:
            moved = replace(self.state.backfills[backfill], lease=lease)
            self.state = changed(self.state, backfills={**self.state.backfills, backfill: moved})

    def _audit(self, lease: Lease, holder: Holder, what: str) -> None:
        if holder.job_id in self.presumed_dead:
            self.fenced_changes.append(f"{what} by {holder.job_id}, which was presumed dead")
        if (lease.job_id, lease.epoch) != (holder.job_id, holder.epoch):
            self.fenced_changes.append(f"{what} by {holder.job_id} under {lease.job_id}'s lease")

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def create_tables(self, count: int, *, snapshot: bool = True) -> None:
        """In one transaction: all that need a backfill share one."""
        state = self.state
        arrival = arrival_plans.create(state, "new", snapshot=snapshot)
        backfill = self._new_backfill(frozenset()) if arrival.way == "backfill" else None
        tables = dict(state.tables)
        for _ in range(count):
            self._ids += 1
            table_id = ItemId(f"u{self._ids}")
            self.starts[table_id] = (arrival.position, arrival.first_tick)
            self.kinds[table_id] = self._random.choice(self._kinds) if len(self._kinds) > 1 else self._kinds[0]
            self.specs[table_id] = [spec_versions.FIRST_TICK]
            tables[table_id] = TableState(
                table_id,
                arrival.begins_as,
                self._new_generation(table_id),
                1,
                arrival.position,
                position=arrival.position,
                next_tick=arrival.tick,
                backfill_id=backfill,
                keyed=self.kinds[table_id] != APPEND,
            )
        self.state = changed(self.state, tables=tables)
        how = {"share": "created to join", "now": "created without history", "backfill": "backfills"}
        self.counts[how[arrival.way]] += 1

    def drop_table(self, table_id: ItemId) -> None:
        state = self.state
        if table_id in backfill_rules.arriving(state):
            self.counts["dropped mid-backfill"] += 1
        self._write(
            tables={k: v for k, v in state.tables.items() if k != table_id},
            replacements={k: v for k, v in state.replacements.items() if k != table_id},
            members=state.members - {table_id},
        )

    def change_spec(self, table_id: ItemId) -> None:
        first_tick = spec_versions.first_tick_of_change(self.state)
        if self._mutant is Mutant.SPEC_OF_MINTED_CHANGES and self.state.pending:
            first_tick = self.state.pending[0].number
        self.specs[table_id].append(first_tick)
        self.counts["spec changes"] += 1
        self.counts["spec changes while a tick is pending"] += bool(self.state.pending)
        self.counts["spec changes during a backfill"] += table_id in backfill_rules.arriving(self.state)

    def spec_at(self, table_id: ItemId, tick: int) -> int:
        """The version that whoever executes a tick takes."""
        if self._mutant is Mutant.NEWEST_SPEC:
            return len(self.specs[table_id]) - 1
        return spec_versions.version_at(self.specs[table_id], tick)

    def resume(self, table_id: ItemId) -> bool:
        """A stalled table, or its stalled replacement, goes on where it stands."""
        try:
            arrival = arrival_plans.resume(self.state, table_id, table_id)
        except NotResumable:
            return False
        table, _ = arrival_plans.to_resume(self.state, table_id)
        heals = table.upper > 0 and not arrival.replaces
        backfill = self._new_backfill(frozenset({table_id} if heals else ()))
        self.state = backfill_rules.with_arrivals(self.state, {table_id: backfill_rules.resume(table, backfill)})
        self._heals[table_id] += heals
        if heals:
            self.readable_since[table_id, table.generation] = table.since
        self.counts["heals"] += heals
        self.counts["second heals"] += heals and self._heals[table_id] == 2
        unclear = self.unclear & {collection_id(table, "data")}
        self.counts["resumed after an unclear keyed commit"] += bool(unclear)
        self.unclear -= unclear
        return True

    def resnapshot(self, table_id: ItemId) -> bool:
        start, first = self.starts[table_id]
        try:
            arrival = arrival_plans.resnapshot(self.state, table_id, table_id, start_tick=first)
        except NotResumable:
            return False
        new = TableState(
            table_id,
            arrival.begins_as,
            self._new_generation(table_id),
            1,
            start,
            position=arrival.position,
            next_tick=arrival.tick,
            backfill_id=self._new_backfill(frozenset()),
            keyed=self.kinds[table_id] != APPEND,
        )
        self._write(replacements={**self.state.replacements, table_id: new})
        return True

    def merge(self) -> None:
        """Backfills that nobody has held yet become one."""
        for group in backfill_rules.merging(self.state, self.state.backfills):
            into, before = group[-1], self.state
            spread = {t.next_tick for one in group for t in backfill_rules.arriving(before, one).values()}
            self.counts["merges"] += 1
            self.counts["merges at several ticks"] += len(spread) > 1
            self.counts["merges that heal"] += any(before.backfills[one].healing for one in group[:-1])
            self.state = backfill_rules.with_merged(before, group)
            if self._mutant is Mutant.MERGED_AT_ONE_PLACE:
                tables = backfill_rules.arriving(self.state, into)
                first = max(tables.values(), key=lambda table: table.next_tick)
                at = {"position": first.position, "next_tick": first.next_tick}
                self.state = backfill_rules.with_arrivals(self.state, {k: replace(t, **at) for k, t in tables.items()})
            if self._mutant is Mutant.MERGED_WITHOUT_HEALING:
                kept = replace(self.state.backfills[into], healing=before.backfills[into].healing)
                self.state = changed(self.state, backfills={**self.state.backfills, into: kept})

    def arm(self, max_lag: int) -> None:
        for table_id, table in backfill_rules.arriving(self.state).items() if self.state.backfills else ():
            if self._mutant is Mutant.ARMED_BEFORE_HISTORY:
                armed: TableState | None = replace(table, status="converging")
            else:
                armed = backfill_rules.arm(self.state, table_id, max_lag=max_lag)
            if armed is not None:
                self._check_armed(table)
                self.state = backfill_rules.with_arrivals(self.state, {table_id: armed})

    def _check_armed(self, table: TableState) -> None:
        assert table.backfill_id is not None
        missing = [
            tick.number
            for tick in self.ticks[table.next_tick - 1 : self.state.backfills[table.backfill_id].history]
            if tick.upper != tick.lower
        ]
        if missing:
            raise Violation(f"{table.table_id} converges without ticks {missing} of its history")

    def retire(self, backfill: BackfillId) -> None:
        for table in backfill_rules.arriving(self.state, backfill).values():
            if backfill_rules.is_replacement(self.state, table):
                left = {k: v for k, v in self.state.replacements.items() if k != table.table_id}
                self._write(replacements=left)
            else:
                self.state = backfill_rules.with_arrivals(self.state, {table.table_id: backfill_rules.retire(table)})
        self.counts["retired"] += 1

    def give_up(self, table_id: ItemId) -> None:
        """By whoever finds that a delete may be lost: one table, and the app that brings it up does not hear of it."""
        table = backfill_rules.arriving(self.state)[table_id]
        self.state = backfill_rules.with_arrivals(
            self.state, {table_id: rules.stalled(table, "may have lost a delete")}
        )

    def _new_backfill(self, healing: frozenset[ItemId]) -> BackfillId:
        backfill = self._next_id()
        state = BackfillState(backfill, self.state.last_number, healing=healing, asked_at=self._backfills)
        self.state = changed(self.state, backfills={**self.state.backfills, backfill: state})
        self.counts["backfills beside another"] += len(self.state.backfills) > 1
        return backfill

    def _next_id(self) -> BackfillId:
        self._backfills += 1
        return BackfillId(f"b{self._backfills}")

    def _new_generation(self, table_id: ItemId) -> int:
        generation = self._generations[table_id] = self._generations.get(table_id, 0) + 1
        for role in ROLES:
            name = CollectionId(f"{table_id}/{generation}/{role}")
            kind = self.kinds[table_id]
            is_keyed = role == "data" and kind != APPEND
            if is_keyed and kind in WITH_VECTORS:
                self.delta[name] = VectorDelta(name, WITH_VECTORS[kind], self.ticks, self.storage)
            else:
                self.delta[name] = KeyedDelta(name, kind, self.ticks) if is_keyed else Delta(name)
            self.commits[name] = []
        return generation

    def _write(self, **changes: object) -> None:
        self.state = rules.without_idle_backfills(changed(self.state, **changes))
