"""The catalog in memory: each method is one transaction, and asks the real rules."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules, rules, spec_versions
from airflow_provider_mzshare.core.ticklog.state import (
    Done,
    Generation,
    Holder,
    Left,
    Minted,
    Outcome,
    TableState,
    Tick,
    Unindexed,
    Written,
)
from airflow_provider_mzshare.errors import Fenced, LogConflict
from tests.support.simulation.delta import Delta
from tests.support.simulation.keyed import APPEND, KEEP, KEEPING, expected_refused
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.tables import TOPIC_ID, Tables, changed
from tests.support.simulation.topic import Topic, part, prefix

FOUND_NO_ROOM = Left("found no room")


class Swap:
    """A generation that was replaced: it answers for the time before ``time``, as far as it had come."""

    def __init__(self, old: TableState, time: int) -> None:
        self.generation, self.upper, self.time = old.generation, old.upper, time


class Catalog(Tables):
    """Ticks and backfills, on top of the tables."""

    def __init__(self, chance: random.Random, topic: Topic, mutant: Mutant, kinds: Sequence[str] = (APPEND,)) -> None:
        super().__init__(chance, topic, mutant, kinds)
        self.swaps: dict[ItemId, list[Swap]] = {}

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def mint(
        self, holder: Holder, lower: Position, upper: Position, indexed: Collection[Generation] | None = None
    ) -> Tick:
        planned = lower
        if self._mutant is Mutant.NO_FENCE_AT_MINT:
            holder = Holder(self.state.lease.job_id or holder.job_id, self.state.lease.epoch)
            lower = self.state.upper
        self._clock += self._random.choice((-5, 0, 1, 7))
        known = None if self._mutant is Mutant.ADMITTED_WITHOUT_INDEX else indexed
        minted = rules.mint(
            self.state, holder, lower=lower, upper=upper, incarnation=TOPIC_ID, now_ms=self._clock, indexed=known
        )
        if self._mutant is Mutant.NO_FENCE_AT_MINT:
            minted = replace(minted, tick=replace(minted.tick, lower=planned))
        if self._mutant is Mutant.INEXACT_CUTOVER:
            minted = replace(minted, joins=tuple(self._nearly_joining(lower)))
        self._count_mint(minted)
        both = {**self.state.tables, **self.state.replacements}
        arrived = [both[t] for t in (*minted.joins, *minted.swaps) if both[t].status == "converging"]
        came = [self.state.tables[t] for t in minted.joins] + [self.state.replacements[t] for t in minted.swaps]
        came = [table for table in came if table.status in rules.COMING and table.keyed]
        if indexed is not None and any(table.identity not in indexed for table in came):
            raise Violation(f"tick {minted.tick.number} has to wait for an index: {came}")
        self.counts["came back with an index"] += any(table.status == "indexing" for table in came)
        self.counts["cutovers of keyed tables"] += any(self.kinds[t.table_id] != APPEND for t in arrived)
        for table_id in minted.swaps:
            swap = Swap(self.state.tables[table_id], minted.tick.mz_timestamp)
            self.swaps.setdefault(table_id, []).append(swap)
        self.state = rules.after_mint(self.state, minted)
        if self._mutant is Mutant.JOINED_AT_EMPTY:
            unmoved = {t.table_id: replace(self.state.tables[t.table_id], next_tick=t.next_tick) for t in arrived}
            self._write(tables={**self.state.tables, **unmoved})
        self.ticks.append(minted.tick)
        self.numbers[minted.tick.mz_timestamp] = minted.tick.number
        return minted.tick

    def _nearly_joining(self, lower: Position) -> Iterator[ItemId]:
        exact = {table.table_id for table in rules.joining(self.state)}
        for table_id, table in sorted(self.state.tables.items()):
            reached = any(table.position[p] >= lower[p] for p in range(self.topic.partitions))
            if table_id in exact or (table.status == "converging" and reached):
                yield table_id

    def _count_mint(self, minted: Minted) -> None:
        arrived = [t for t in minted.joins if self.state.tables[t].status == "converging"]
        if arrived or minted.swaps:
            self.counts["cutovers by a batch" if minted.tick.upper != minted.tick.lower else "cutovers by nothing"] += 1
        self.counts["swaps"] += len(minted.swaps)

    def mint_empty(self, holder: Holder, at: Position, indexed: Collection[Generation] | None = None) -> None:
        """Mint and commit in one transaction."""
        tick = self.mint(holder, at, at, indexed)
        self.commit(holder, tick.number, {table_id: Done() for table_id in self.state.members})

    def begin_attempt(self, holder: Holder, number: int) -> Tick:
        tick = rules.begin_attempt(self.state, holder, number)
        self.counts["replays"] += 1
        self.state = changed(self.state, pending=tuple(tick if t.number == number else t for t in self.state.pending))
        return tick

    def spare_attempt(self, holder: Holder, number: int) -> None:
        """An attempt that found no room: the next one is no nearer to the last."""
        tick = rules.spare_attempt(self.state, holder, number)
        self.state = changed(self.state, pending=tuple(tick if t.number == number else t for t in self.state.pending))

    def members(self) -> list[TableState]:
        return [self.state.tables[table_id] for table_id in sorted(self.state.members)]

    def commit(self, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome]) -> None:
        committed = rules.commit(self.state, holder, number, outcomes)
        self._audit(self.state.lease, holder, f"tick {number}")
        unindexed = [table_id for table_id, outcome in committed.outcomes.items() if isinstance(outcome, Unindexed)]
        self.state = rules.after_commit(self.state, committed, self._next_id() if unindexed else None)
        for table_id in unindexed:
            self._left_unindexed(table_id, committed.tick)
        for table_id, outcome in committed.outcomes.items():
            if isinstance(outcome, Done):
                self._record(outcome.written)
            elif isinstance(outcome, Left):
                self.counts["stalls"] += 1
                if outcome == FOUND_NO_ROOM:
                    raise Violation(f"{table_id} has left because the disk is full")
                if self._mutant is Mutant.EVERY_MEMBER_MOVES:
                    moved = rules.advanced(self.state.tables[table_id], committed.tick, Done())
                    self._write(
                        tables={**self.state.tables, table_id: replace(moved, status="live", reason=None)},
                        members=self.state.members | {table_id},
                    )

    def _left_unindexed(self, table_id: ItemId, tick: Tick) -> None:
        self.counts["left without an index"] += 1
        table = self.state.tables[table_id]
        self.readable_since[table_id, table.generation] = table.since
        if self._mutant is Mutant.UNINDEXED_MOVES:
            self._write(tables={**self.state.tables, table_id: rules.advanced(table, tick, Done())})

    # ── backfills ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def ticks_from(self, first: int, head: int) -> Sequence[Tick]:
        """Minted, whether committed or not."""
        return self.ticks[first - 1 : head]

    def check_planned(self, backfill: BackfillId, holder: Holder, planned: Collection[TableState]) -> None:
        """Called after what the collections hold was loaded."""
        wanted = frozenset(table.identity for table in planned)
        known = self.state.backfills.get(backfill)
        lease = known.lease if known else None
        own = frozenset(table.identity for table in backfill_rules.arriving(self.state, backfill).values())
        if self._mutant is Mutant.PLANNED_WITHOUT_LEASE:
            return
        if self._mutant is Mutant.PLANNED_FOR_OTHERS:
            own = wanted
        try:
            backfill_rules.check_planned(lease, own, backfill, holder, wanted)
        except Fenced:
            self.counts["planned without the lease"] += 1
            raise
        except LogConflict:
            self.counts["planned for others"] += 1
            raise

    def follow(
        self, backfill: BackfillId, holder: Holder, first: int, last: Tick, outcomes: Mapping[ItemId, Outcome]
    ) -> None:
        true_holder = holder
        if self._mutant is Mutant.FOLLOW_WITHOUT_LEASE and backfill in self.state.backfills:
            lease = self.state.backfills[backfill].lease
            holder = Holder(lease.job_id or holder.job_id, lease.epoch)
        state = self.state
        followed = backfill_rules.follow(state, backfill, holder, first=first, last=last, outcomes=outcomes)
        if followed.tables:
            self._audit(state.backfills[backfill].lease, true_holder, f"ticks {first} to {last.number} of {backfill}")
        moved = dict(followed.tables)
        for table_id, after in followed.tables.items():
            outcome = outcomes[table_id]
            if isinstance(outcome, Done):
                self._record(outcome.written)
                if after.since > self.readable_since.get((table_id, after.generation), after.since):
                    raise Violation(f"{table_id}: what could be read before it healed cannot be any more")
                if self._mutant is Mutant.SINCE_NOT_MOVED:
                    before = backfill_rules.arriving(state, backfill)[table_id]
                    moved[table_id] = replace(after, since=before.since or self.ticks[first - 1].mz_timestamp)
            else:
                self.counts["stalls of a backfill"] += 1
        self.state = backfill_rules.with_arrivals(state, moved)
        self.counts["groups"] += last.number > first
        self.counts["ahead of the ingestion"] += bool(state.pending) and last.number == state.last_number
        self.counts["followed too late"] += bool(followed.gone)

    def _record(self, written: Sequence[Written]) -> None:
        """At each version that is ever recorded, the content is the input up to its tick, once."""
        for one in written:
            known = self.commits[one.collection_id]
            if known and known[-1].mz_timestamp >= one.mz_timestamp:
                raise Violation(f"{one.collection_id}: {one.mz_timestamp} is recorded after {known[-1].mz_timestamp}")
            known.append(one)
            check_content(self, one.collection_id, one.version, self.ticks[one.tick - 1].upper)

    def last_written(self, name: CollectionId) -> int:
        known = self.commits[name]
        return known[-1].mz_timestamp if known else 0


def check_content(catalog: Catalog, name: CollectionId, version: int, upper: Position) -> None:
    """What the topic's compaction has removed may be there or not; nothing else may be missing or too much."""
    table_id, _, role = name.split("/")
    own = prefix(upper) & ~prefix(catalog.starts[ItemId(table_id)][0])
    wanted = part(own, role)
    delta = catalog.delta[name]
    found = delta.content[version]
    if role == "errors" and catalog.kinds[ItemId(table_id)] == KEEP:
        # What a value was kept from may be gone when it is read. ``check_refused`` looks at these.
        refused = found & part(own, "data") & KEEPING
        wanted |= refused if catalog.topic.gone else expected_refused(part(own, "data"), catalog.ticks)
    if isinstance(delta, KeyedDelta):
        check_keyed(catalog, delta, version, wanted)
    elif (wanted ^ found) & ~(catalog.topic.gone & wanted):
        raise Violation(f"{name} up to {upper}: {found & ~wanted:b} too much, {wanted & ~found:b} missing")
    else:
        check_counted(catalog, delta, version)


def check_counted(catalog: Catalog, delta: Delta, version: int) -> None:
    """What a table counts is what its commits say that the catalog knows."""
    known = [one.version for one in catalog.commits[CollectionId(delta.name)] if one.version <= version]
    counted = sum(delta.entries[one - 1].rows for one in known)
    if counted != delta.content[version]:
        raise Violation(
            f"{delta.name} version {version}: the catalog counts {counted:b}, there is {delta.content[version]:b}"
        )


def check_keyed(catalog: Catalog, delta: KeyedDelta, version: int, wanted: int) -> None:
    """A tick that has changed no row may be without a commit. So the rows are compared: with the events that were
    applied, those that were read and changed nothing, and all others that are still in the topic."""
    applied, rows = delta.content[version], delta.rows[version]
    if too_much := applied & ~wanted:
        raise Violation(f"{delta.name} version {version}: {too_much:b} too much")
    right = delta.expected(applied | (wanted & (delta.without_effect | ~catalog.topic.gone)))
    if rows != right:
        raise Violation(f"{delta.name} version {version}: rows are {sorted(rows)}, not {sorted(right)}")
    counted = sum(one.rows for one in catalog.commits[CollectionId(delta.name)] if one.version <= version)
    if counted != len(rows):
        raise Violation(f"{delta.name} version {version}: the catalog counts {counted} rows, there are {len(rows)}")


def check_refused(catalog: Catalog, delta: KeyedDelta, version: int, errors: int, own: int) -> None:
    """Each event that was read is an error row, or has done to its row what it does."""
    applied = delta.content[version] | (part(own, "data") & (delta.without_effect | ~catalog.topic.gone))
    right = expected_refused(applied, catalog.ticks)
    if wrong := (errors & applied & KEEPING) ^ right:
        raise Violation(f"{delta.name} version {version}: {wrong & errors:b} are both, {wrong & ~errors:b} are neither")


def check_specs(catalog: Catalog, name: CollectionId) -> None:
    """Every row was made with the version of the spec that is valid at its tick, and by no other."""
    first_ticks = catalog.specs[ItemId(name.split("/")[0])]
    right: dict[int, int] = {}
    for tick in catalog.ticks:
        version = spec_versions.version_at(first_ticks, tick.number)
        right[version] = right.get(version, 0) | (prefix(tick.upper) & ~prefix(tick.lower))
    for version, rows in catalog.delta[name].made_with.items():
        if wrong := rows & ~right.get(version, 0):
            raise Violation(f"{name}: rows {wrong:b} were made with version {version} of the spec: {first_ticks}")
