"""Schedules of keyed tables, step by step: each is harmless, and shows what one left-out rule would do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog import rules
from tests.support.simulation import Mutant, Violation
from tests.support.simulation.keyed import DELETES, KEEP, KEEPS, KEY, SUM, by_place
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.script import (
    Script,
    plans_for_a_table_that_has_passed_on,
    plans_upon_a_successor_s_commit,
)
from tests.support.simulation.tables import changed
from tests.support.simulation.topic import part, prefix
from tests.support.simulation.world import App

U2 = ItemId("u2")


class KeyedScript(Script):
    """:param kind: of its tables; those of a sum add up the values of a key."""

    def __init__(self, mutant: Mutant, kind: str = SUM) -> None:
        super().__init__(mutant, kind)

    def data(self, table: str) -> KeyedDelta:
        delta = self.catalog.delta[CollectionId(f"{table}/1/data")]
        assert isinstance(delta, KeyedDelta)
        return delta

    def step_to_plan(self, app: App) -> None:
        """Its files are written, and it is about to put."""
        planned = self._planned()
        self.step(app, lambda: self._planned() > planned)

    def _planned(self) -> int:
        return self.catalog.counts["keyed rows"] + self.catalog.counts["keyed rows of several ticks"]

    def mint_quiet_and_loud(self) -> int:
        """A pending tick with deletes of unknown keys, and events that change rows. Returns the latter."""
        topic, known = self.world.topic, {row.key for row in self.data("u2").rows[-1]}
        while True:
            topic.produce()
            events = part(prefix(topic.end) & ~prefix(self.catalog.state.upper), "data")
            quiet = [event for event in by_place(events) if DELETES[event] and KEY[event] not in known]
            loud = events & ~sum(1 << event for event in quiet)
            if quiet and any(not DELETES[event] for event in by_place(loud)):
                break
        self.step(self.ingestion, lambda: bool(self.catalog.state.pending))
        return loud

    def leave(self) -> None:
        """The live table stalls where it stands."""
        state = self.catalog.state
        tables = {**state.tables, U2: rules.stalled(state.tables[U2], "it cannot be written")}
        self.catalog.state = changed(state, tables=tables, members=state.members - {U2})

    def tick_with(self, wanted: Callable[[int], bool]) -> int:
        """A tick of which one event is left. Returns it."""
        topic = self.world.topic
        while True:
            topic.produce()
            new = prefix(topic.end) & ~prefix(self.catalog.state.upper)
            if found := [event for event in by_place(part(new, "data")) if wanted(event)]:
                topic.gone |= new & ~(1 << found[0])
                self.step(self.ingestion, lambda: self.catalog.state.upper == topic.end)
                self.step(self.ingestion, lambda: not self.catalog.state.pending)
                return found[0]

    def mint_kept(self) -> int:
        """A pending tick of which two records are left: one sets a row that was not there, and one keeps its value.
        Returns the first."""
        topic, known = self.world.topic, {row.key for row in self.data("u2").rows[-1]}
        while True:
            topic.produce()
            new = prefix(topic.end) & ~prefix(self.catalog.state.upper)
            events = [event for event in by_place(part(new, "data")) if KEY[event] not in known and not DELETES[event]]
            pairs = [(a, b) for a, b in combinations(events, 2) if KEY[a] == KEY[b] and not KEEPS[a] and KEEPS[b]]
            if pairs:
                break
        own, kept = pairs[0]
        topic.gone |= new & ~(1 << own | 1 << kept)
        self.step(self.ingestion, lambda: bool(self.catalog.state.pending))
        return 1 << own


def two_ingestions_read_a_tick_and_for_the_second_one_only_deletes_of_unknown_keys_are_left(mutant: Mutant) -> None:
    script = KeyedScript(mutant)
    loud = script.mint_quiet_and_loud()
    zombie = script.ingestion
    script.step_to_plan(zombie)
    script.world.topic.gone |= loud
    script.ingestion = script.world.start(None, faults=False)
    script.step(script.ingestion, lambda: not script.catalog.state.pending)
    script.world.reads.check(script.catalog.state.tables[U2], script.catalog.ticks[-1])
    script.world.step(zombie, 50)
    script.end()


def a_commit_on_its_way_arrives_after_the_table_has_stalled_and_is_resumed(mutant: Mutant) -> None:
    script = KeyedScript(mutant)
    world, catalog = script.world, script.catalog
    world.fault_rate = 1e-9
    world.apps.remove(script.ingestion)
    script.ingestion = world.start(None)
    script.mint_quiet_and_loud()
    script.step_to_plan(script.ingestion)
    world.fate = lambda: 0.4  # type: ignore[method-assign]  # no answer comes, and the commit is on its way
    script.step(script.ingestion, lambda: catalog.state.tables[U2].status == "stalled")
    world.fate = lambda: 1.0  # type: ignore[method-assign]
    script.tick()
    assert catalog.resume(U2)
    backfill = script.start_backfill()
    script.step_to_plan(backfill)
    assert script.data("u2").land()
    script.step(backfill, lambda: catalog.state.tables[U2].next_tick == 4)
    catalog.arm(max_lag=1)
    script.end()
    assert catalog.counts["resumed after an unclear keyed commit"] == 1


def a_value_is_kept_from_a_record_that_is_gone_when_the_next_ingestion_reads_the_tick(mutant: Mutant) -> None:
    """To the first one no record is an error row, so it has no errors to commit; to the second one, one is."""
    script = KeyedScript(mutant, KEEP)
    catalog, zombie = script.catalog, script.ingestion
    own = script.mint_kept()
    script.step_to_plan(zombie)
    script.world.topic.gone |= own
    script.ingestion = script.world.start(None, faults=False)
    errors = catalog.delta[CollectionId("u2/1/errors")]
    script.step(script.ingestion, lambda: catalog.counts["keyed refused by rows"] == 1)
    script.step(script.ingestion, lambda: errors.stored(errors.name) == catalog.ticks[-1].mz_timestamp)
    script.world.step(zombie, 50)
    script.step(script.ingestion, lambda: not catalog.state.pending)
    assert catalog.state.tables[U2].status == ("stalled" if mutant is Mutant.NONE else "live")
    script.end()


def a_row_comes_and_goes_within_a_group_of_a_table_that_heals(mutant: Mutant) -> None:
    """What could be read before stays so, and a read as of a tick inside the group must not be answered."""
    script = KeyedScript(mutant)
    catalog = script.catalog
    script.leave()
    script.tick()
    assert catalog.resume(U2)
    backfill = script.start_backfill()
    script.step(backfill, lambda: catalog.state.tables[U2].next_tick == 3)
    script.world.step(backfill, 5)
    known = {row.key for row in script.data("u2").rows[-1]}
    came = script.tick_with(lambda event: KEY[event] not in known and not DELETES[event])
    script.tick_with(lambda event: KEY[event] == KEY[came] and bool(DELETES[event]))
    script.step(backfill, lambda: catalog.state.tables[U2].next_tick == 5)
    script.world.reads.check(catalog.state.tables[U2], catalog.ticks[2])
    catalog.arm(max_lag=1)
    script.end()


def a_backfill_plans_upon_its_successor_s_commit_and_reads_what_is_gone_for_that_one(mutant: Mutant) -> None:
    plans_upon_a_successor_s_commit(KeyedScript(mutant))


def a_table_passes_to_another_backfill_while_a_group_is_planned_for_it(mutant: Mutant) -> None:
    plans_for_a_table_that_has_passed_on(KeyedScript(mutant))


TRACES = {
    Mutant.CANCELLED_OUT_UNMARKED: a_row_comes_and_goes_within_a_group_of_a_table_that_heals,
    Mutant.PLANNED_WITHOUT_LEASE: a_backfill_plans_upon_its_successor_s_commit_and_reads_what_is_gone_for_that_one,
    Mutant.PLANNED_FOR_OTHERS: a_table_passes_to_another_backfill_while_a_group_is_planned_for_it,
    Mutant.ERRORS_NOT_FORCED: a_value_is_kept_from_a_record_that_is_gone_when_the_next_ingestion_reads_the_tick,
    Mutant.NO_FENCE_WITHOUT_EFFECT: (
        two_ingestions_read_a_tick_and_for_the_second_one_only_deletes_of_unknown_keys_are_left
    ),
    Mutant.REPLANNED_ON_ANY_TICK: a_commit_on_its_way_arrives_after_the_table_has_stalled_and_is_resumed,
}


@pytest.mark.parametrize("mutant", TRACES, ids=lambda mutant: mutant.name.lower())
def test_the_trace_is_harmless_unless_the_rule_is_left_out(mutant: Mutant) -> None:
    TRACES[mutant](Mutant.NONE)
    with pytest.raises(Violation):
        TRACES[mutant](mutant)
