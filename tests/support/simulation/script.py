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
        (backfill,) = self.catalog.state.backfills
        return self.world.start(backfill, faults=False)

    @property
    def u3(self) -> TableState:
        return self.catalog.state.tables[U3]

    def holds(self, role: str, tick: int) -> bool:
        delta = self.catalog.delta[CollectionId(f"u3/1/{role}")]
        return delta.stored(delta.name) == self.catalog.ticks[tick - 1].mz_timestamp

    def end(self) -> None:
        self.tick()
        self.world.check()
