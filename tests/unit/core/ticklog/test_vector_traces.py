"""Schedules of tables with deletion vectors, step by step: each shows what one left-out rule would do."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from tests.support.simulation import Mutant, VectorWorld, Violation
from tests.support.simulation.script import Script
from tests.support.simulation.steps import Steps
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vector_upkeep import Maintenance, foreign_cleanup
from tests.support.simulation.vector_world import SUM
from tests.support.simulation.world import App

NAME = CollectionId("u2/1/data")


class VectorScript(Script):
    """One live table that adds up the values of a key. Others clean up its log where the script says so."""

    def __init__(self, mutant: Mutant) -> None:
        world = VectorWorld(0, mutant, (SUM,))
        world.dozing, world.storage.is_foreign = 0.0, True
        world.storage.seen_late = 0
        super().__init__(mutant, SUM, world)
        self.world: VectorWorld = world

    @property
    def data(self) -> VectorDelta:
        delta = self.catalog.delta[NAME]
        assert isinstance(delta, VectorDelta)
        return delta

    def mint(self, app: App) -> None:
        """A tick with rows."""
        ticks = len(self.catalog.ticks)
        for _ in range(4):
            self.world.topic.produce()
        self.step(app, lambda: len(self.catalog.ticks) > ticks)

    def step_to_put(self, app: App) -> None:
        """Its files are written, and it is about to put."""
        at = self.data.newest + 1
        objects = len(self.data.contents)
        for _ in range(200):
            if next(app.steps) == "putting" and len(self.data.contents) > objects:
                return
        raise AssertionError(f"nothing is put at {at}")

    def clean_up(self) -> None:
        """Somebody compacts, makes a checkpoint of that, and removes what is below it."""
        self.data.upkeep()
        self.data.add_checkpoint(self.data.newest)
        foreign_cleanup(self.data, lambda: False)

    def take_over(self) -> App:
        self.ingestion = self.world.start(None, faults=False)
        return self.ingestion

    def sleepers(self, count: int) -> list[App]:
        """Each is about to put at a version that another one takes then, and the first of these has a checkpoint. Since
        has passed them all, and a checkpoint stands above."""
        found = []
        for number in range(count):
            self.mint(self.ingestion)
            self.step_to_put(self.ingestion)
            found.append(self.ingestion)
            self.step(self.take_over(), lambda: not self.catalog.state.pending)
            if number == 0:
                self.data.add_checkpoint(self.data.newest)
        self.tick()
        self.data.add_checkpoint(self.data.newest)
        self.world.retain(self.catalog.state.tables[ItemId("u2")], newest=True)
        self.world.storage.is_foreign = False
        return found

    def maintenance(self) -> Steps:
        return Maintenance(self.world, NAME, self.data.newest).run()

    def finish(self, app: App) -> None:
        self.world.step(app, 60)
        self.end()


def two_sleepers_put_one_after_the_other_into_a_hole(mutant: Mutant) -> None:
    """The entry that the second one has planned upon is listed: it is the first one's, in the hole."""
    script = VectorScript(mutant)
    first = script.ingestion
    script.mint(first)
    script.step_to_put(first)
    second = script.take_over()
    script.step(second, lambda: not script.catalog.state.pending)
    script.mint(second)
    script.step_to_put(second)
    script.data.upkeep()
    script.clean_up()
    script.world.step(first, 60)
    assert script.data.in_holes == 1
    script.finish(second)
    assert script.data.in_holes == 2


def a_checkpoint_takes_the_place_of_another_while_the_log_is_listed_after_a_put(mutant: Mutant) -> None:
    """The listing sees neither checkpoint above the hole."""
    script = VectorScript(mutant)
    app = script.ingestion
    script.mint(app)
    script.step_to_put(app)
    at = script.data.newest + 1
    script.data.upkeep()
    script.clean_up()
    (checkpoint,) = script.data.checkpoints
    assert checkpoint == at + 1
    script.world.storage.seen_late = 1 << (2 * checkpoint + 1)
    script.step(app, lambda: script.data.in_holes == 1)
    script.world.step(app, 1)  # it has looked at all names but that of the checkpoint
    script.clean_up()
    script.world.storage.seen_late = 0
    script.finish(app)


def a_sleeper_puts_into_a_hole_that_comes_while_another_looks_through_the_log(mutant: Mutant) -> None:
    script = VectorScript(mutant)
    (sleeper,) = script.sleepers(1)
    first, second = script.maintenance(), script.maintenance()
    for _ in range(2):
        next(first)  # it has listed all entries
    for _ in second:
        pass
    script.world.step(sleeper, 60)
    assert script.data.in_holes == 1
    for _ in first:
        pass
    script.end()


def maintenance_dies_over_the_log_and_sleepers_put_below_its_checkpoint(mutant: Mutant) -> None:
    """An older checkpoint or an older entry is left, and makes the sleepers' entries look like a part of the log."""
    script = VectorScript(mutant)
    sleepers = script.sleepers(2)
    # In any order: the newest entry goes first.
    script.world.random.sample = lambda found, _: sorted(found, reverse=True)  # type: ignore[method-assign,assignment]
    for _ in script.maintenance():
        if script.data.newest - 1 not in script.data.log:
            break
    for sleeper in sleepers:
        script.world.step(sleeper, 60)
    assert script.data.in_holes
    script.world.audit(script.data)
    script.end()


TRACES = {
    Mutant.BELOW_CHECKPOINT_COUNTS: two_sleepers_put_one_after_the_other_into_a_hole,
    Mutant.GONE_BASE_COUNTS: a_checkpoint_takes_the_place_of_another_while_the_log_is_listed_after_a_put,
    Mutant.LISTED_BEFORE_READ: a_sleeper_puts_into_a_hole_that_comes_while_another_looks_through_the_log,
    Mutant.CHECKPOINTS_GO_LAST: maintenance_dies_over_the_log_and_sleepers_put_below_its_checkpoint,
    Mutant.REMOVED_IN_ANY_ORDER: maintenance_dies_over_the_log_and_sleepers_put_below_its_checkpoint,
}


@pytest.mark.parametrize("mutant", TRACES, ids=lambda mutant: mutant.name.lower())
def test_the_trace_is_harmless_unless_the_rule_is_left_out(mutant: Mutant) -> None:
    TRACES[mutant](Mutant.NONE)
    with pytest.raises(Violation):
        TRACES[mutant](mutant)
