"""Schedules too rare for chance, step by step: each is harmless, and shows what one left-out rule would do."""

from __future__ import annotations

import pytest

from tests.support.simulation import Mutant, Violation
from tests.support.simulation.script import Script
from tests.support.simulation.topic import BAD, prefix


def a_backfill_looks_at_its_tables_before_the_cutover_and_at_the_ticks_after_it(mutant: Mutant) -> None:
    script = Script(mutant)
    script.add_table()
    backfill = script.start_backfill()
    script.step(backfill, lambda: script.u3.next_tick == 2)
    script.catalog.arm(max_lag=1)
    for _ in range(2):
        script.world.step(backfill, 1)  # nothing to do; then it looks again, and has seen u3 converging
    script.step(script.ingestion, lambda: script.u3.next_tick == 3)  # an empty tick cuts u3 over
    assert script.u3.status == "live"
    script.world.reads.check(script.u3, script.catalog.ticks[1])
    script.world.topic.produce()
    script.step(script.ingestion, lambda: bool(script.catalog.state.pending))
    script.world.step(backfill, 50)
    script.end()


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
    script.tick()
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


TRACES = {
    Mutant.DONE_WITHOUT_SEAL: a_backfill_finds_the_data_of_one_before_it_while_a_third_is_late_with_errors,
    Mutant.TICKS_AFTER_LOAD: a_backfill_looks_at_its_tables_before_the_cutover_and_at_the_ticks_after_it,
    Mutant.FOUND_COUNTS_AS_OWN: two_backfills_go_on_from_a_third_one_s_commit_and_read_different_rows,
}


@pytest.mark.parametrize("mutant", TRACES, ids=lambda mutant: mutant.name.lower())
def test_the_trace_is_harmless_unless_the_rule_is_left_out(mutant: Mutant) -> None:
    TRACES[mutant](Mutant.NONE)
    with pytest.raises(Violation):
        TRACES[mutant](mutant)
