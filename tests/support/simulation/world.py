"""A world without Spark, disks or clocks, in which the rules meet crashes, zombies and lost answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog import arrival_plans
from tests.support.simulation.apps import CONTRADICTED, Backfill, Ingestion
from tests.support.simulation.catalog import Catalog
from tests.support.simulation.keyed import APPEND, KEEP, SUM, UPSERT
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.reading import Reads
from tests.support.simulation.steps import IDLE
from tests.support.simulation.tables import collection_id
from tests.support.simulation.topic import Topic
from tests.support.simulation.writing import Writer

if TYPE_CHECKING:
    from tests.support.simulation.late_indexes import LateIndexes

ROUNDS = 150
KEYED_KINDS = (SUM, SUM, UPSERT, APPEND)
KEEPING_KINDS = (KEEP, KEEP, APPEND)
REST_ROUNDS = 300
"""After the faults, everything is at rest within so many."""


class App:
    """:param parent: the app that it is a part of: they die together."""

    def __init__(self, backfill: BackfillId | None, does: Ingestion | Backfill, parent: App | None = None) -> None:
        self.backfill, self.does, self.parent = backfill, does, parent
        self.steps = does.run()


class World:
    """:param kinds: of its tables; each gets one of them by chance."""

    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE, kinds: Sequence[str] = (APPEND,)) -> None:
        self.random = random.Random(seed)
        self.mutant = mutant
        chance = self.random.random
        self.fault_rate = self.random.choice((0.02, 0.1, 0.3, 0.6))
        self.idle_rate = self.random.choice((0.05, 0.3))
        self.group_sizes: tuple[int, ...] = (1, 3, 10, 100)
        self.patience = self.random.randint(0, 4)
        self._compacts = chance() < 0.4
        self._burst = self.random.choice((1, 4, 12))
        self.topic = Topic(self.random)
        if chance() < 0.3:
            self.topic.produce()
        self.catalog = Catalog(self.random, self.topic, mutant, kinds)
        self.reads = Reads(self.catalog, mutant)
        self._events = _WEIGHED_KEYED if set(kinds) - {APPEND} else _WEIGHED
        self.apps: list[App] = []
        self._rounds = ROUNDS
        self.is_full = False
        """The disk of all collections."""
        self.rest = 0
        """How many rounds it took to come to rest."""
        self._jobs = 0

    def fate(self) -> float:
        """Of a commit: from 1 on it is answered."""
        return self.random.random() / self.fault_rate

    # ── apps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, backfill: BackfillId | None, *, faults: bool = True) -> App:
        self._jobs += 1
        job = JobId(f"j{self._jobs}")
        does = Ingestion(self, job, faults) if backfill is None else Backfill(self, backfill, job, faults)
        self.apps.append(App(backfill, does))
        return self.apps[-1]

    def late_indexes(self, writer: Writer, faults: bool) -> LateIndexes | None:
        """None: whoever commits makes the index itself, at once."""
        return None

    def step(self, app: App, steps: int) -> None:
        try:
            for _ in range(steps):
                if next(app.steps) is IDLE:
                    return
        except StopIteration:
            self.apps.remove(app)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        self.catalog.create_tables(self.random.randint(1, 2))
        self.start(None)
        events, weights = zip(*self._events, strict=True)
        for event in self.random.choices(events, weights, k=self._rounds):
            event(self)
        self.settle()

    def _step(self) -> None:
        if self.apps:
            self.step(self.random.choice(self.apps), self.random.randint(1, self._burst))

    def _produce(self) -> None:
        self.topic.produce()

    def _arm(self) -> None:
        self.catalog.arm(self.random.randint(0, 3))

    def _start_missing(self) -> None:
        running = {app.backfill for app in self.apps}
        for wanted in (None, *self.catalog.state.backfills):
            if wanted not in running:
                self.start(wanted)
                return

    def _start_another(self) -> None:
        """A second one beside the first, which becomes a zombie."""
        if len(self.apps) < 6:
            self.start(self.random.choice((None, *self.catalog.state.backfills)))

    def _crash(self) -> None:
        if self.apps:
            app = self.apps[self.random.randrange(len(self.apps))]
            whole = app.parent or app
            self.apps = [one for one in self.apps if one is not whole and one.parent is not whole]

    def _presume_dead(self) -> None:
        self.catalog.presume_dead(self.random.choice((None, *self.catalog.state.backfills)))

    def _create(self) -> None:
        if len(self.catalog.state.tables) < 4:
            self.catalog.create_tables(self.random.randint(1, 2), snapshot=self.random.random() < 0.85)

    def _drop(self) -> None:
        """And at once another in its place, as a user does who made a mistake."""
        tables = sorted(self.catalog.state.tables)
        if len(tables) > 1:
            self.catalog.drop_table(self.random.choice(tables))
            self.catalog.create_tables(1)

    def _resume(self) -> None:
        for table_id in sorted(self.catalog.state.tables):
            if self.catalog.resume(table_id):
                return

    def _heal(self, table_id: ItemId) -> bool:
        """In the way that the reason of its stall names."""
        found, _ = arrival_plans.to_resume(self.catalog.state, table_id)
        if found.status == "stalled" and found.reason == CONTRADICTED.reason:
            return self.catalog.resnapshot(table_id)
        return self.catalog.resume(table_id)

    def _change_spec(self) -> None:
        self.catalog.change_spec(self.random.choice(sorted(self.catalog.state.tables)))

    def _resnapshot(self) -> None:
        self.catalog.resnapshot(self.random.choice(sorted(self.catalog.state.tables)))

    def _retire(self) -> None:
        if self.catalog.state.backfills:
            self.catalog.retire(self.random.choice(list(self.catalog.state.backfills)))

    def _merge(self) -> None:
        self.catalog.merge()

    def _land(self) -> None:
        for delta in self.catalog.delta.values():
            if delta.in_flight and delta.land():
                self.catalog.counts["landed late"] += 1
                return

    def _upkeep(self) -> None:
        self.random.choice(list(self.catalog.delta.values())).upkeep()

    def _compact_keyed(self) -> None:
        """By somebody who loads, writes and puts at once: for all others a version that they have not seen."""
        both = (*self.catalog.state.tables.values(), *self.catalog.state.replacements.values())
        found = [self.catalog.delta[collection_id(table, "data")] for table in both]
        keyed = [delta for delta in found if isinstance(delta, KeyedDelta)]
        if keyed:
            self.random.choice(keyed).upkeep()

    def _add_partition(self) -> None:
        self.catalog.counts["partitions added"] += self.topic.add_partition()

    def _fill_or_free(self) -> None:
        self.is_full = not self.is_full

    def _compact(self) -> None:
        if self._compacts:
            self.topic.compact()
            self.catalog.counts["topic compactions"] += 1

    def _read(self) -> None:
        if self.catalog.ticks:
            tick = self.catalog.ticks[-1 - int(len(self.catalog.ticks) * self.random.random() ** 2)]
            for table in self.catalog.state.tables.values():
                self.reads.check(table, tick)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> None:
        """Faults end, there is room, zombies go on: everything becomes live, equal and idle within a bound."""
        self.is_full = False
        zombies = [app for app in self.apps if self.random.random() < 0.5]
        self.apps = list(zombies)
        own: dict[BackfillId | None, App] = {}
        for self.rest in range(REST_ROUNDS):
            state = self.catalog.state
            for wanted in (None, *state.backfills):
                if wanted not in own or own[wanted] not in self.apps:
                    own[wanted] = self.start(wanted, faults=False)
            for table_id in state.tables:
                self._heal(table_id)
            self.catalog.arm(max_lag=1)
            if self._is_at_rest():
                return
            self.step(self.random.choice(self.apps), 12)
        raise Violation(f"it does not come to rest: {self.catalog.state}")

    def _is_at_rest(self) -> bool:
        state = self.catalog.state
        if state.pending or state.upper != self.topic.end or state.backfills or state.replacements:
            return False
        return all(t.status == "live" and t.position == state.upper for t in state.tables.values())

    def check(self) -> None:
        """What must hold at the end; most is looked at when it happens."""
        for table in self.catalog.state.tables.values():
            self.reads.check_all(table)
        times = [tick.mz_timestamp for tick in self.catalog.ticks]
        if times != sorted(set(times)):
            raise Violation(f"times do not grow: {times}")
        if self.catalog.fenced_changes:
            raise Violation("; ".join(self.catalog.fenced_changes))


def run(seed: int, mutant: Mutant = Mutant.NONE, kinds: Sequence[str] = (APPEND,)) -> World:
    world = World(seed, mutant, kinds)
    world.run()
    world.check()
    return world


_WEIGHED: list[tuple[Callable[[World], None], int]] = [
    (World._step, 110),
    (World._produce, 30),
    (World._start_missing, 12),
    (World._start_another, 5),
    (World._crash, 4),
    (World._presume_dead, 3),
    (World._create, 6),
    (World._drop, 2),
    (World._arm, 10),
    (World._resume, 8),
    (World._resnapshot, 3),
    (World._change_spec, 4),
    (World._retire, 2),
    (World._merge, 8),
    (World._land, 8),
    (World._upkeep, 3),
    (World._add_partition, 1),
    (World._compact, 5),
    (World._read, 12),
    (World._fill_or_free, 2),
]
_WEIGHED_KEYED = [*_WEIGHED, (World._compact_keyed, 20), (World._start_another, 6), (World._land, 6)]
"""A plan has one slot, so more is done to take it away."""
