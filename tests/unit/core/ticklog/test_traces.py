"""Schedules too rare for chance, step by step: each is harmless, and shows what one left-out rule would do."""

from __future__ import annotations

import pytest

from tests.support.simulation import Mutant, Violation
from tests.support.simulation.script import (
    Script,
    plans_for_a_table_that_has_passed_on,
    plans_upon_a_successor_s_commit,
)
from tests.support.simulation.topic import BAD, prefix


def two_backfills_go_on_from_a_third_one_s_commit_and_read_different_rows(mutant: Mutant) -> None:
    script = Script(mutant)
    script.tick()
    script.add_table()
    first = script.start_backfill()
    script.step(first, lambda: script.holds("errors", 2))
    script.world.apps.remove(first)
    assert not script.holds("data", 2), "it died between its two commits"
    script.tick()
    zombie = script.start_backfill()
    script.world.step(zombie, 4)  # it has read ticks 1 to 3; of its errors the third is due
    script.world.topic.gone |= prefix(script.catalog.ticks[2].upper) & ~prefix(script.catalog.ticks[2].lower)
    script.world.group_sizes = (1,)
    third = script.start_backfill()
    script.step(third, lambda: script.u3.next_tick == 4)
    script.world.step(zombie, 50)
    script.catalog.arm(max_lag=1)
    script.end()


def a_backfill_finds_the_data_of_one_before_it_while_a_third_is_late_with_errors(mutant: Mutant) -> None:
    script = Script(mutant)
    script.add_table()
    first = script.start_backfill()
    script.step(first, lambda: script.u3.next_tick == 2)
    script.world.step(first, 5)
    script.tick()
    script.world.step(first, 2)  # it has planned tick 2
    late = script.start_backfill()
    script.world.step(late, 4)  # it holds the backfill, and has read tick 2 with its errors
    tick = script.catalog.ticks[1]
    script.world.topic.gone |= prefix(tick.upper) & ~prefix(tick.lower) & BAD
    script.step(first, lambda: script.holds("data", 2))  # to the first one, the tick has no errors any more
    assert not script.holds("errors", 2)
    third = script.start_backfill()
    script.step(third, lambda: script.u3.next_tick == 3)
    script.world.step(late, 50)
    script.catalog.arm(max_lag=1)
    script.end()


def a_backfill_plans_upon_its_successor_s_commit_and_reads_what_is_gone_for_that_one(mutant: Mutant) -> None:
    """For the successor the second tick has no rows: it gets no commit, and is done."""
    plans_upon_a_successor_s_commit(Script(mutant))


def a_table_passes_to_another_backfill_while_a_group_is_planned_for_it(mutant: Mutant) -> None:
    plans_for_a_table_that_has_passed_on(Script(mutant))


TRACES = {
    Mutant.PLANNED_WITHOUT_LEASE: a_backfill_plans_upon_its_successor_s_commit_and_reads_what_is_gone_for_that_one,
    Mutant.PLANNED_FOR_OTHERS: a_table_passes_to_another_backfill_while_a_group_is_planned_for_it,
    Mutant.DONE_WITHOUT_SEAL: a_backfill_finds_the_data_of_one_before_it_while_a_third_is_late_with_errors,
    Mutant.FOUND_COUNTS_AS_OWN: two_backfills_go_on_from_a_third_one_s_commit_and_read_different_rows,
}


@pytest.mark.parametrize("mutant", TRACES, ids=lambda mutant: mutant.name.lower())
def test_the_trace_is_harmless_unless_the_rule_is_left_out(mutant: Mutant) -> None:
    TRACES[mutant](Mutant.NONE)
    with pytest.raises(Violation):
        TRACES[mutant](mutant)
