"""A world in which tables begin with snapshots of a database that goes on, and apps die or are late anywhere.

The rules are the real ones (``core/ticklog/snapshots.py`` and those beside it). ``Mutant`` leaves one of them out.
``python -m tests.support.snapshot_world SEED [MUTANT]`` replays one seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, SnapshotId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules, snapshots
from airflow_provider_mzshare.core.ticklog.snapshots import Landed
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, Outcome, Snapshot, TableState, Tick
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, LogConflict
from airflow_provider_mzshare.storage.apps.backfill_steps import rearmost
from tests.support.snapshot_catalog import Catalog, Mutant
from tests.support.snapshot_collections import Collection, Entry, as_changes
from tests.support.snapshot_database import BAG, KEYED, Change, Database, Seen, Violation, sees

ROUNDS, REST_ROUNDS = 400, 600
LEFT = Left("it cannot be written")
Steps = Iterator[None]
Taking = Generator[None, None, "tuple[Snapshot, Seen, list[ItemId]] | None"]


class App:
    def __init__(self, world: World, backfill: BackfillId | None, *, faults: bool) -> None:
        self.world, self.backfill, self.faults = world, backfill, faults
        self.catalog, self.database, self.mutant = world.catalog, world.database, world.mutant
        world.jobs += 1
        self._job = JobId(f"j{world.jobs}")
        self.steps = self._run()

    def _run(self) -> Steps:
        try:
            seen = self.catalog.lease(self.backfill)
            yield
            holder = self.catalog.claim(self.backfill, self._job, seen)
            while self.backfill is None or backfill_rules.arriving(self.catalog.state, self.backfill):
                yield
                try:
                    yield from self._one_tick(holder) if self.backfill is None else self._one_step(holder)
                except LogConflict:
                    continue
        except (Fenced, LeaseTaken):
            self.catalog.counts["fenced"] += 1

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _one_tick(self, holder: Holder) -> Steps:
        catalog = self.catalog
        state = catalog.state
        if state.pending:
            tick = catalog.begin_attempt(holder, state.pending[0].number)
        elif (upper := Position({"lsn": self.world.recorded})) == state.upper:
            if backfill_rules.completes_cutover(state) or self.world.random.random() < 0.1:
                catalog.mint_empty(holder)
            return
        else:
            tick = catalog.mint(holder, state.upper, upper)
        yield
        outcomes: dict[ItemId, Outcome] = {}
        for table_id in sorted(catalog.state.members):
            table = catalog.state.tables.get(table_id)
            if table is None:
                continue
            collection = catalog.collections[table.identity]
            outcomes[table_id] = LEFT if self._fails() else Done()
            while outcomes[table_id] != LEFT and (collection.stored or 0) < tick.mz_timestamp:
                on, stored = len(collection.entries), collection.stored or 0
                changes = self._changes(table, tick.lower["lsn"], tick.upper["lsn"], None)
                yield
                if stored < tick.mz_timestamp:
                    self._put(collection, on, Entry(tick.mz_timestamp, changes))
            if (collection.stored or 0) > tick.mz_timestamp and outcomes[table_id] != LEFT:
                raise Fenced("a later tick is there")
        catalog.commit(holder, tick.number, outcomes)

    def _changes(self, table: TableState, lower: int, upper: int, left_out: Snapshot | None) -> tuple[Change, ...]:
        relation = self.catalog.relations[table.table_id]
        found = self.database.streamed(lower, upper)
        if left_out is not None:
            found = [one for one in found if not self._is_left_out(one.place or 0, one.xid, left_out, lower)]
        return tuple(change for one in found for change in one.changes if change.relation == relation)

    def _is_left_out(self, place: int, xid: int, snapshot: Snapshot, lower: int) -> bool:
        if self.mutant is Mutant.NO_FILTER:
            return False
        if self.mutant is Mutant.FILTER_OF_FIRST_TICK and lower != snapshot.position["lsn"]:
            return False
        before_h = place < snapshot.known_from["lsn"]
        return before_h and (self.mutant is Mutant.FILTER_BY_PLACE or sees(snapshot.seen, xid))

    def _fails(self) -> bool:
        return self.faults and self.world.random.random() < 0.03

    def _put(self, collection: Collection, on: int, entry: Entry) -> None:
        """Whoever puts looks at the log afterwards, whatever the answer."""
        fate = self.world.random.random() if self.faults else 1.0
        if fate < 0.1:
            collection.in_flight.append((on, entry))
            self.catalog.counts["late"] += 1
        elif fate > 0.2:
            collection.put(on, entry)

    # ── backfills ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _one_step(self, holder: Holder) -> Steps:
        assert self.backfill is not None
        state = self.catalog.state
        waiting = snapshots.awaiting(state, self.backfill)
        if waiting and self.mutant is not Mutant.FOLLOWED_WITHOUT:
            yield from self._snapshot(holder, waiting)
        elif mine := backfill_rules.arriving(state, self.backfill):
            yield from self._group(holder, mine, state.last_number)

    def _snapshot(self, holder: Holder, waiting: Mapping[ItemId, TableState]) -> Steps:
        assert self.backfill is not None
        if self._fails():
            self.catalog.land(self.backfill, holder, {min(waiting): LEFT})
            return
        known = {t.table_id: self.catalog.collections[t.identity].snapshot for t in waiting.values()}
        found: dict[ItemId, Landed | Left] = {t: Landed(one) for t, one in known.items() if one}
        if found:
            yield
            self.catalog.land(self.backfill, holder, found)
            return
        taken = yield from self._taken(holder, waiting)
        if taken is None:
            return
        snapshot, seen, tables = taken
        rows = {}
        for table_id in tables:
            relation, table = self.catalog.relations[table_id], waiting[table_id]
            yield
            if seen.life == self.database.life:
                rows[table_id] = self.database.read(relation, seen)
            if self.files[relation] != self.database.files[relation] and self.mutant is not Mutant.FILES_NOT_COMPARED:
                self.catalog.counts["files replaced"] += 1
                rows.pop(table_id, None)
        yield from self._until_flushed(snapshot, seen)
        if seen.life != self.database.life:
            self.catalog.counts["snapshots lost"] += 1
            if self.mutant is not Mutant.KEEPER_NOT_NEEDED:
                return
        for table_id, found_rows in rows.items():
            table = waiting[table_id]
            collection = self.catalog.collections[table.identity]
            on = len(collection.entries) if self.mutant is Mutant.SECOND_SNAPSHOT else 0
            yield
            if self.mutant is Mutant.SECOND_SNAPSHOT:
                on = len(collection.entries)
            changes = as_changes(self.catalog.relations[table_id], found_rows)
            self._put(collection, on, Entry(snapshot.mz_timestamp, changes, snapshot.to_json()))
            yield
            if self.mutant is Mutant.OWN_SNAPSHOT_NOTED and collection.entries:
                self.catalog.land(self.backfill, holder, {table_id: Landed(snapshot)})

    def _until_flushed(self, snapshot: Snapshot, seen: Seen) -> Steps:
        """While the keeper lives."""
        h = snapshot.known_from["lsn"]
        if self.mutant is Mutant.NOT_FLUSHED:
            return
        while seen.life == self.database.life and self.database.flushed < h:
            self.catalog.counts["waits for H"] += 1
            yield

    def _taken(self, holder: Holder, waiting: Mapping[ItemId, TableState]) -> Taking:
        assert self.backfill is not None
        tick, database = self._base_tick(), self.database
        if tick is None:
            return None
        yield
        by_xmax = self.mutant is Mutant.BARRIER_BY_XMAX
        barrier = database.snapshot().xmax - 1 if by_xmax else database.use_xid()
        if self.mutant is not Mutant.NO_BARRIER:
            while database.snapshot().xmin <= barrier:
                self.catalog.counts["waits for writers"] += 1
                yield
        if self.mutant is Mutant.BARRIER_BEFORE_P:
            tick = self._base_tick() or tick
        self.files = list(database.files)
        yield
        early = database.inserted
        if self.mutant is Mutant.H_BEFORE_SNAPSHOT:
            yield
        seen = database.snapshot()
        h = database.inserted + 1
        if self.mutant is Mutant.H_BEFORE_SNAPSHOT:
            h = early
        if self.mutant is Mutant.H_IS_FLUSHED:
            h = database.flushed
        number = len(self.catalog.taken)
        places = tick.upper, Position({"lsn": h})
        snapshot = Snapshot(SnapshotId(f"s{number}"), tick.number, tick.mz_timestamp, *places, seen.text)
        yield
        return snapshot, seen, self.catalog.take(self.backfill, holder, snapshot, waiting)

    def _base_tick(self) -> Tick | None:
        state = self.catalog.state
        return state.last if self.mutant is Mutant.WITHOUT_SLOT else snapshots.base_tick(state)

    def _group(self, holder: Holder, mine: Mapping[ItemId, TableState], head: int) -> Steps:
        assert self.backfill is not None
        behind = rearmost(mine)
        tables = [mine[table_id] for table_id in sorted(behind.table_ids)]
        if self.mutant is Mutant.FOLLOWED_WITHOUT:
            tables = [replace(table, awaits_snapshot=False) for table in tables]
            changed = {table.table_id: table for table in tables}
            self.catalog.state = backfill_rules.with_arrivals(self.catalog.state, changed)
        ticks = self.catalog.ticks[behind.first - 1 : head]
        stored = max(self.catalog.collections[table.identity].stored or 0 for table in tables)
        size = self.world.random.choice((1, 1, 2, 5))
        ticks = ticks[: max(size, sum(1 for tick in ticks if tick.mz_timestamp <= stored))]
        if behind.before is not None:
            ticks = [t for t in ticks if t.number < behind.before or t.mz_timestamp <= stored]
        if not ticks or stored > ticks[-1].mz_timestamp:
            return
        outcomes: dict[ItemId, Outcome] = {}
        for table in tables:
            yield from self._write(table, ticks)
            is_there = self.catalog.collections[table.identity].stored == ticks[-1].mz_timestamp
            if is_there or self._fails():
                outcomes[table.table_id] = Done() if is_there else LEFT
        yield
        self.catalog.follow(self.backfill, holder, behind.first, ticks[-1], outcomes)

    def _write(self, table: TableState, ticks: Sequence[Tick]) -> Steps:
        """On top of what is there now; whoever has written meanwhile makes it fail."""
        collection = self.catalog.collections[table.identity]
        on, held = len(collection.entries), collection.stored or 0
        due = [tick for tick in ticks if tick.mz_timestamp > held]
        if due:
            left_out = snapshots.left_out(table)
            lower, upper = due[0].lower["lsn"], due[-1].upper["lsn"]
            changes = self._changes(table, lower, upper, left_out)
            yield
            self._put(collection, on, Entry(due[-1].mz_timestamp, changes))


class World:
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        self.random, self.mutant = random.Random(seed), mutant
        kinds = tuple(self.random.choice((KEYED, BAG)) for _ in range(2))
        self.database = Database(self.random, kinds)
        self.catalog = Catalog(self.random, self.database, mutant)
        self.apps: list[App] = []
        self.recorded = self.jobs = 0
        """Up to where the log is written down: 0 before there is a slot."""
        self._crashes = self.random.random() < 0.5

    def run(self) -> None:
        for _ in range(self.random.randint(0, 60)):
            self.database.work()
        self.catalog.create_tables(self.random.randint(1, 2))
        events, weights = zip(*_WEIGHED, strict=True)
        for event in self.random.choices(events, weights, k=ROUNDS):
            event(self)
        self.settle()

    def start(self, backfill: BackfillId | None, *, faults: bool = True) -> App:
        self.apps.append(App(self, backfill, faults=faults))
        return self.apps[-1]

    def step(self, app: App, steps: int = 1) -> None:
        try:
            for _ in range(steps):
                next(app.steps)
        except StopIteration:
            self.apps.remove(app)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self) -> None:
        if self.apps:
            self.step(self.random.choice(self.apps), self.random.choice((1, 3, 8)))

    def _work(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            self.database.work()

    def record(self) -> None:
        """What is flushed is written down, up to the end of a whole transaction or to where nothing is under way."""
        if self.database.slot is None:
            self.database.make_slot()
        self.recorded = max(self.recorded, self.database.slot or 0, self.database.flushed)

    def _start_missing(self) -> None:
        running = {app.backfill for app in self.apps}
        for wanted in (None, *self.catalog.state.backfills):
            if wanted not in running:
                self.start(wanted)
                return

    def _start_another(self) -> None:
        if len(self.apps) < 6:
            self.start(self.random.choice((None, *self.catalog.state.backfills)))

    def _die(self) -> None:
        if self.apps:
            self.apps.pop(self.random.randrange(len(self.apps)))

    def _create(self) -> None:
        if len(self.catalog.state.tables) < 5:
            self.catalog.create_tables(self.random.randint(1, 3))

    def _arm(self) -> None:
        self.catalog.arm(self.random.randint(0, 3))

    def _resume(self) -> None:
        any(self.catalog.resume(table_id) for table_id in sorted(self.catalog.state.tables))

    def _resnapshot(self) -> None:
        self.catalog.resnapshot(self.random.choice(sorted(self.catalog.state.tables)))

    def _land(self) -> None:
        for collection in self.catalog.collections.values():
            if collection.in_flight:
                self.catalog.counts["landed late"] += collection.land()
                return

    def _crash(self) -> None:
        if self._crashes:
            self.catalog.counts["crashes"] += 1
            self.database.crash()

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> None:
        """Faults end, clients end: all tables become live and right."""
        self.database.finish()
        self.apps = [app for app in self.apps if self.random.random() < 0.5]
        own: dict[BackfillId | None, App] = {}
        for _ in range(REST_ROUNDS):
            self.record()
            state = self.catalog.state
            for wanted in (None, *state.backfills):
                if own.get(wanted) not in self.apps:
                    own[wanted] = self.start(wanted, faults=False)
            for table_id in state.tables:
                self.catalog.resume(table_id)
            self.catalog.arm(max_lag=1)
            if self._is_at_rest():
                for table in state.tables.values():
                    self.catalog.check(table, table.upper - 1)
                return
            self.database.use_xid()
            self.step(self.random.choice(self.apps), 12)
            if self.random.random() < 0.1:
                self.database.inserted += 1
                self.database.flush()
        raise Violation(f"it does not come to rest: {self.catalog.state}")

    def _is_at_rest(self) -> bool:
        state = self.catalog.state
        if state.pending or state.backfills or state.replacements:
            return False
        return all(t.status == "live" and t.position["lsn"] == self.recorded for t in state.tables.values())


def run(seed: int, mutant: Mutant = Mutant.NONE) -> World:
    world = World(seed, mutant)
    world.run()
    return world


_WEIGHED: list[tuple[Callable[[World], None], int]] = [
    (World._step, 120),
    (World._work, 60),
    (World.record, 25),
    (World._start_missing, 14),
    (World._start_another, 4),
    (World._die, 4),
    (World._create, 5),
    (World._arm, 12),
    (World._resume, 8),
    (World._resnapshot, 3),
    (World._land, 8),
    (World._crash, 2),
    (lambda world: world.catalog.merge(), 4),
]

if __name__ == "__main__":
    print(run(int(sys.argv[1]), Mutant[sys.argv[2]] if len(sys.argv) > 2 else Mutant.NONE).catalog.counts)
