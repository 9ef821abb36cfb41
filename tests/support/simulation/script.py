"""A world that does what a script says, step by step."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog.state import TableState
from tests.support.simulation.keyed import APPEND
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.topic import BAD, prefix
from tests.support.simulation.world import App, World

U3 = ItemId("u3")


class Script:
    """A source with one live table, u2, and no faults but those of the script."""

    def __init__(self, mutant: Mutant, kind: str = APPEND, world: World | None = None) -> None:
        self.world = world or World(0, mutant, (kind,))
        self.world.idle_rate, self.world.patience, self.world.group_sizes = 0.0, 0, (100,)
        self.catalog = self.world.catalog
        self.catalog.create_tables(1)
        self.ingestion = self.world.start(None, faults=False)
        self.tick()

    def step(self, app: App, until: Callable[[], bool]) -> None:
        for _ in range(200):
            if until():
                return
            if app not in self.world.apps:
                break
            self.world.step(app, 1)
        assert until(), "the app does not come there"

    def tick(self) -> None:
        """One with a record that cannot be decoded."""
        topic = self.world.topic
        while not prefix(topic.end) & ~prefix(self.catalog.state.upper) & BAD:
            topic.produce()
        self.step(self.ingestion, lambda: self.catalog.state.upper == self.world.topic.end)
        self.step(self.ingestion, lambda: not self.catalog.state.pending)

    def add_table(self) -> None:
        self.catalog.create_tables(1)
        assert self.u3.status == "backfilling"

    def start_backfill(self) -> App:
        """Of the newest backfill."""
        return self.world.start(list(self.catalog.state.backfills)[-1], faults=False)

    def look_and_read(self, backfill: App) -> None:
        """It has found nothing to do so far. It looks at its tables, plans a group upon what they hold, and reads it;
        or it finds that it must not."""
        for _ in range(3):
            if backfill in self.world.apps:
                self.world.step(backfill, 1)

    def compact(self, tick: int) -> None:
        """Of this tick no record is left."""
        found = self.catalog.ticks[tick - 1]
        self.world.topic.gone |= prefix(found.upper) & ~prefix(found.lower)

    def go_on(self, app: App) -> None:
        if app in self.world.apps:
            self.world.step(app, 60)

    @property
    def u3(self) -> TableState:
        return self.catalog.state.tables[U3]

    def holds(self, role: str, tick: int) -> bool:
        delta = self.catalog.delta[CollectionId(f"u3/1/{role}")]
        return delta.stored(delta.name) == self.catalog.ticks[tick - 1].mz_timestamp

    def end(self) -> None:
        self.tick()
        self.world.check()


def plans_upon_a_successor_s_commit(script: Script) -> None:
    """A zombie looks at its table after the commit of its successor. The tick after that has no records any more when
    the successor reads it, so that it needs no commit."""
    script.add_table()
    zombie = script.start_backfill()
    script.step(zombie, lambda: script.u3.next_tick == 2)
    script.world.step(zombie, 5)
    script.tick()
    successor = script.start_backfill()
    script.step(successor, lambda: script.u3.next_tick == 3)
    script.tick()
    script.look_and_read(zombie)
    script.compact(3)
    script.step(successor, lambda: script.u3.next_tick == 4)
    script.go_on(zombie)
    script.catalog.arm(max_lag=1)
    script.end()


def plans_for_a_table_that_has_passed_on(script: Script) -> None:
    """The same while the lease is held, since another table is left to the backfill."""
    catalog, world = script.catalog, script.world
    catalog.create_tables(2)
    first = script.start_backfill()
    script.step(first, lambda: script.u3.next_tick == 2)
    world.step(first, 5)
    script.tick()
    script.tick()
    world.step(first, 1)  # it has looked at its tables
    catalog.give_up(U3)
    assert catalog.resume(U3)
    world.group_sizes = (1,)
    second = script.start_backfill()
    script.step(second, lambda: script.u3.next_tick == 3)
    world.group_sizes = (100,)
    for _ in range(2):
        world.step(first, 1)  # it has read ticks 2 and 3
    script.compact(3)
    script.step(second, lambda: script.u3.next_tick == 4)
    script.go_on(first)
    catalog.arm(max_lag=1)
    script.end()
