"""A world in which no tick waits for an index: members leave without one, and are followed until they have it."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, JobId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import Generation, TableState
from tests.support.simulation.apps import Backfill, Ingestion
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.steps import Steps, Unreadable
from tests.support.simulation.tables import collection_id
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vector_world import VECTOR_KINDS, VectorWorld
from tests.support.simulation.world import App
from tests.support.simulation.writing import Writer


class LateIndexes:
    """Those of one ingestion app. They are made beside its ticks, and lent to the groups of those that have left."""

    def __init__(self, world: LateWorld, writer: Writer, faults: bool) -> None:
        self._world, self._faults = world, faults
        self._vectors = writer.keyed.vectors
        self._vectors.rebuilds = False
        self._lent: set[CollectionId] = set()

    # ── beside the ticks ──────────────────────────────────────────────────────────────────────────────────────────────

    def beside(self) -> Steps:
        """Now and then an index is made, or brought to a version that was loaded some time ago; or one is lost."""
        chance = self._world.random.random
        state = self._world.catalog.state
        if self._faults and chance() < self._world.loss:
            for table in state.tables.values():
                self._lose(table)
        coming = backfill_rules.converging_keyed(state)
        for _, delta in self._of(coming):
            name, loaded = CollectionId(delta.name), delta.load().version
            if chance() < 0.4:
                continue
            yield
            if self._is_lent(name):
                continue
            index = self._vectors.index(delta)
            if index.version is not None and index.version >= loaded:
                continue
            self._lent.add(name)
            try:
                yield from index.bring_to(loaded)
            except Unreadable:
                pass
            finally:
                self._lent.discard(name)

    def _lose(self, table: TableState) -> None:
        name = collection_id(table, "data")
        if name in self._vectors.indexes and not self._is_lent(name) and self._world.random.random() < 0.5:
            del self._vectors.indexes[name]

    def _of(self, coming: frozenset[Generation]) -> Iterator[tuple[Generation, VectorDelta]]:
        for table_id, generation in sorted(coming):
            delta = self._world.catalog.delta[CollectionId(f"{table_id}/{generation}/data")]
            if isinstance(delta, VectorDelta):
                yield (table_id, generation), delta

    def indexed(self) -> frozenset[Generation]:
        """Tables without vectors need none."""
        coming = backfill_rules.converging_keyed(self._world.catalog.state)
        missing = {one for one, delta in self._of(coming) if self._vectors.index(delta).version is None}
        return coming - missing

    # ── those that left ───────────────────────────────────────────────────────────────────────────────────────────────

    def leaves(self, table: TableState) -> None:
        self._vectors.leave(collection_id(table, "data"))

    def lend_to(self, writer: Writer) -> None:
        """To one that follows the ticks for them. It compacts nothing."""
        writer.keyed.vectors.indexes = self._vectors.indexes
        writer.keyed.vectors.compacts = False

    def lent(self, name: CollectionId, commit: Steps) -> Steps:
        """Nobody else uses the index until the commit has ended."""
        while self._is_lent(name):
            yield
        self._lent.add(name)
        try:
            yield from commit
        finally:
            self._lent.discard(name)

    def wait_for_group(self, table: TableState) -> Steps:
        """It is a member, so its last group has ended, but for a moment."""
        while self._is_lent(collection_id(table, "data")):
            yield

    def _is_lent(self, name: CollectionId) -> bool:
        return name in self._lent


class LateWorld(VectorWorld):
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        super().__init__(seed, mutant, VECTOR_KINDS)
        self.loss = self.random.choice((0.0, 0.05, 0.2))

    def late_indexes(self, writer: Writer, faults: bool) -> LateIndexes:
        return LateIndexes(self, writer, faults)

    def start(self, backfill: BackfillId | None, *, faults: bool = True) -> App:
        """What an ingestion app follows itself is a part of that app."""
        if backfill is None or backfill not in backfill_rules.inside(self.catalog.state):
            return super().start(backfill, faults=faults)
        parents = [app for app in self.apps if isinstance(app.does, Ingestion)]
        if not parents:
            return super().start(None, faults=faults)
        there = [app for app in self.apps if app.backfill == backfill and app.parent is parents[-1]]
        if there:
            return there[0]
        self._jobs += 1
        does = Backfill(self, backfill, JobId(f"j{self._jobs}"), faults, inside=parents[-1].does)
        self.apps.append(App(backfill, does, parents[-1]))
        return self.apps[-1]


def run_late(seed: int, mutant: Mutant = Mutant.NONE) -> LateWorld:
    world = LateWorld(seed, mutant)
    world.run()
    world.check()
    return world
