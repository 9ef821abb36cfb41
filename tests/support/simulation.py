"""A world without Spark, disks or clocks, in which the tick log's rules meet crashes, zombies and lost answers.

Every app is a generator that stops between any two of its steps; a seeded scheduler decides who goes on. The rules are
the real ones; catalog and Delta log are lists in memory that behave as the real ones were measured to behave.
``Mutant`` leaves one rule out, to show that the check finds it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from airflow_provider_mzshare.errors import CatalogBehind, Fenced, LeaseTaken, LogConflict
from airflow_provider_mzshare.storage.ticks import rules
from airflow_provider_mzshare.storage.ticks.state import (
    Done,
    Holder,
    Left,
    Outcome,
    SourceState,
    TableState,
    Tick,
    Written,
)
from airflow_provider_mzshare.types.ids import CollectionId, ItemId, JobId
from airflow_provider_mzshare.types.positions import Position

PARTITIONS = 2
START = Position()


class Mutant(Enum):
    NONE = "none"
    CONFLICT_MEANS_PRESENT = "a conflict, here with the app's own last commit, is taken for 'it is there'"
    NO_STORED_VERSION = "the stored version is not compared before a commit"
    EVERY_MEMBER_MOVES = "the tick's commit moves members that left, too"
    NO_FENCE_AT_MINT = "a zombie may mint what it planned long ago"
    NEW_END_ON_REPLAY = "a pending tick is finished with new end offsets"


Row = tuple[int, int]
Steps = Generator[None, None, None]


@dataclass
class Delta:
    """A Delta log: entries of (tick time, rows). A commit fails when another came since the table was loaded."""

    entries: list[tuple[int, list[Row]]] = field(default_factory=list)

    @property
    def stored(self) -> int | None:
        return self.entries[-1][0] if self.entries else None

    def at(self, version: int) -> Counter[Row]:
        return Counter(row for _, rows in self.entries[:version] for row in rows)

    def version_of(self, mz_timestamp: int) -> int:
        return next(n for n, (time, _) in enumerate(self.entries, 1) if time == mz_timestamp)


class World:
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        self.random = random.Random(seed)
        self.mutant = mutant
        self.ends = [0] * PARTITIONS
        self.clock = 1000
        self.state = SourceState(ItemId("u1"), "active", "topic-1", START)
        self.times: dict[int, Tick] = {}
        self.delta: dict[ItemId, Delta] = {}
        self.recorded: list[tuple[ItemId, int, Tick]] = []
        self.apps: dict[str, Steps] = {}
        self.started = 0
        self.replays = self.fenced = 0

    # ── upstream ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self) -> Position:
        return Position(dict(enumerate(self.ends)))

    def read(self, lower: Position, upper: Position) -> list[Row]:
        return [(p, o) for p in range(PARTITIONS) for o in range(lower[p], upper[p])]

    # ── catalog: each method is one transaction ───────────────────────────────────────────────────────────────────────

    def create_table(self) -> None:
        if self.state.upper == START:
            table_id = ItemId(f"u{len(self.delta) + 2}")
            self.delta[table_id] = Delta()
            table = TableState(table_id, "created", 1, 1, START, START)
            self.state = replace(self.state, tables={**self.state.tables, table_id: table})

    def drop_table(self) -> None:
        if len(self.state.tables) > 1:
            victim = self.random.choice(sorted(self.state.tables))
            tables = {k: v for k, v in self.state.tables.items() if k != victim}
            self.state = replace(self.state, tables=tables, members=self.state.members - {victim})

    def claim(self, job: JobId, seen: object) -> Holder:
        lease = rules.claim(self.state.lease, job, stood_still=seen)  # type: ignore[arg-type]
        self.state = replace(self.state, lease=lease)
        return Holder(job, lease.epoch)

    def mint(self, holder: Holder, lower: Position, upper: Position) -> Tick:
        if self.mutant is Mutant.NO_FENCE_AT_MINT:
            holder = Holder(self.state.lease.job_id or holder.job_id, self.state.lease.epoch)
            planned, lower = lower, self.state.upper
        self.clock += self.random.choice((-5, 0, 1, 7))
        minted = rules.mint(self.state, holder, lower=lower, upper=upper, incarnation="topic-1", now_ms=self.clock)
        if self.mutant is Mutant.NO_FENCE_AT_MINT:
            minted = replace(minted, tick=replace(minted.tick, lower=planned))
        self.state = rules.after_mint(self.state, minted)
        self.times[minted.tick.mz_timestamp] = minted.tick
        return minted.tick

    def begin_attempt(self, holder: Holder, number: int) -> Tick:
        tick = rules.begin_attempt(self.state, holder, number)
        self.replays += 1
        self.state = replace(self.state, pending=tuple(tick if t.number == number else t for t in self.state.pending))
        return tick

    def commit(self, holder: Holder, number: int, outcomes: Mapping[ItemId, Outcome]) -> None:
        committed = rules.commit(self.state, holder, number, outcomes)
        self.state = rules.after_commit(self.state, committed)
        for table_id, outcome in committed.outcomes.items():
            if isinstance(outcome, Done):
                self.recorded += [(table_id, w.version, committed.tick) for w in outcome.written]
            elif self.mutant is Mutant.EVERY_MEMBER_MOVES:
                moved = rules.advanced(self.state.tables[table_id], committed.tick, Done())
                self.state = replace(self.state, tables={**self.state.tables, table_id: replace(moved, status="live")})
                self.state = replace(self.state, members=self.state.members | {table_id})

    # ── an app ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def app(self, job: JobId, faults: bool = True) -> Steps:
        seen = self.state.lease
        yield
        try:
            holder = self.claim(job, seen)
            written: set[ItemId] = set()
            while True:
                yield
                try:
                    yield from self._one_tick(holder, written, faults)
                except LogConflict:
                    continue
        except (Fenced, LeaseTaken):
            self.fenced += 1

    def _one_tick(self, holder: Holder, written: set[ItemId], faults: bool) -> Steps:
        state = self.state
        if state.pending:
            tick = self.begin_attempt(holder, state.pending[0].number)
            if self.mutant is Mutant.NEW_END_ON_REPLAY:
                tick = replace(tick, upper=self.end())
        else:
            upper = self.end()
            yield
            tick = self.mint(holder, state.upper, upper)
        yield
        members = sorted(self.state.members)
        rows = self.read(tick.lower, tick.upper)
        yield
        outcomes: dict[ItemId, Outcome] = {}
        for table_id in members:
            outcomes[table_id] = yield from self._commit_table(table_id, tick, rows, table_id not in written, faults)
            written.add(table_id)
            yield
        self.commit(holder, tick.number, outcomes)

    def _commit_table(
        self, table_id: ItemId, tick: Tick, rows: list[Row], force: bool, faults: bool
    ) -> Generator[None, None, Outcome]:
        delta, failures = self.delta[table_id], 0
        while True:
            loaded, stored = len(delta.entries), delta.stored
            if self.mutant is Mutant.CONFLICT_MEANS_PRESENT and not force:
                loaded -= 1  # a handle that was not refreshed after its own commit
            yield
            if self.mutant is not Mutant.NO_STORED_VERSION and stored is not None:
                if stored == tick.mz_timestamp:
                    return self._done(table_id, tick)
                if stored not in self.times:
                    raise CatalogBehind("u1", table_id, stored)
                if stored > tick.mz_timestamp:
                    raise Fenced("a later tick is there")
            if not rows and not force:
                return Done()
            fate = self.random.choice(("ok", "ok", "ok", "fails", "lost")) if faults else "ok"
            if len(delta.entries) != loaded:
                if self.mutant is Mutant.CONFLICT_MEANS_PRESENT:
                    return Done()
                continue
            if fate == "fails":
                failures += 1
                if failures == rules.ATTEMPTS_TOGETHER:
                    return Left("cannot be written")
                continue
            delta.entries.append((tick.mz_timestamp, rows))
            if fate == "ok":
                return self._done(table_id, tick)

    def _done(self, table_id: ItemId, tick: Tick) -> Done:
        version = self.delta[table_id].version_of(tick.mz_timestamp)
        return Done(written=(Written(CollectionId(table_id), version, 0, ""),))

    # ── the schedule ──────────────────────────────────────────────────────────────────────────────────────────────────

    def start_app(self, faults: bool = True) -> None:
        self.started += 1
        self.apps[f"a{self.started}"] = self.app(JobId(f"a{self.started}"), faults)

    def step(self, name: str) -> None:
        try:
            next(self.apps[name])
        except StopIteration:
            del self.apps[name]

    def run(self, steps: int = 120) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.create_table()
        self.start_app()
        for _ in range(steps):
            event = self.random.random()
            if event < 0.03:
                self.start_app()
            elif event < 0.05 and self.apps:
                del self.apps[self.random.choice(sorted(self.apps))]
            elif event < 0.06:
                self.create_table() if self.random.random() < 0.7 else self.drop_table()
            elif event < 0.20:
                self.ends[self.random.randrange(PARTITIONS)] += self.random.randint(1, 3)
            elif self.apps:
                self.step(self.random.choice(sorted(self.apps)))
        self.settle()

    def settle(self) -> None:
        """Faults end; one more app must bring every live table to the end, whatever zombies still do."""
        self.start_app(faults=False)
        last = f"a{self.started}"
        for n in range(4000):
            self.step(last if n % 3 or len(self.apps) == 1 else self.random.choice(sorted(self.apps)))
            if last not in self.apps:
                self.start_app(faults=False)
                last = f"a{self.started}"
            if self.state.upper == self.end() and not self.state.pending and n > 200:
                return
        raise AssertionError("it does not come to rest")

    # ── the oracle ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        for table_id, version, tick in self.recorded:
            wanted = Counter(self.read(START, tick.upper))
            found = self.delta[table_id].at(version)
            assert found == wanted, (
                f"{table_id} at tick {tick.number}: {found - wanted} extra, {wanted - found} missing"
            )
        for table in self.state.tables.values():
            delta = self.delta[table.table_id]
            if table.status == "live":
                wanted = Counter(self.read(START, table.position))
                found = delta.at(len(delta.entries))
                assert table.position == self.state.upper, f"{table.table_id} is live and not at the log's end"
                assert found == wanted, f"{table.table_id}: {found - wanted} extra, {wanted - found} missing"
        times = sorted(self.times)
        assert times == [self.times[t].mz_timestamp for t in times]
