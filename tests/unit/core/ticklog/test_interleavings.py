"""Random interleavings of apps, crashes, zombies and lost answers; a failing seed is replayed by its number.

``SIMULATION_SEED=4711 pytest …/test_interleavings.py`` runs that seed alone, and
``python -m tests.support.simulation 4711`` tells what happens in it, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.support.simulation import KEEPING, KEYED, LATE, VECTORS, Mutant, Violation, run

BY_TRACE = {
    Mutant.FOUND_COUNTS_AS_OWN,
    Mutant.DONE_WITHOUT_SEAL,
    Mutant.PLANNED_WITHOUT_LEASE,
    Mutant.PLANNED_FOR_OTHERS,
}
"""Too rare for chance: test_traces.py shows them."""
BY_SEED = {Mutant.JOINED_AT_EMPTY: 14_990}
"""Found by chance, but one in about ten thousand."""
CHUNK = 20_000


def run_all(seeds: Iterable[int]) -> None:
    chosen = os.environ.get("SIMULATION_SEED")
    for seed in [int(chosen)] if chosen else seeds:
        try:
            run(seed)
        except Exception as error:
            again = f"python -m tests.support.simulation {seed}"
            raise AssertionError(f"seed {seed}: {error} (to see how: {again})") from error


@pytest.mark.timeout(900)
def test_no_interleaving_loses_or_doubles_a_row() -> None:
    run_all(range(2_000))


@pytest.mark.full(seconds=80)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(2_000, 202_000, CHUNK))
def test_no_interleaving_loses_or_doubles_a_row_at_length(first: int) -> None:
    run_all(range(first, first + CHUNK))


@pytest.mark.parametrize(
    "mutant",
    [m for m in Mutant if m not in {Mutant.NONE, *BY_TRACE, *BY_SEED, *KEYED, *KEEPING, *LATE, *VECTORS}],
    ids=lambda m: m.name.lower(),
)
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(3_000):
        try:
            run(seed, mutant)
        except Violation:
            return
    pytest.fail(f"3,000 seeds did not notice: {mutant.value}")


@pytest.mark.parametrize("mutant", BY_SEED, ids=lambda m: m.name.lower())
def test_a_rare_rule_left_out_is_caught(mutant: Mutant) -> None:
    with pytest.raises(Violation):
        run(BY_SEED[mutant], mutant)


def test_a_seed_says_the_same_each_time() -> None:
    first, second = run(7), run(7)
    assert first.catalog.counts == second.catalog.counts
    assert first.catalog.ticks == second.catalog.ticks


AT_LEAST = {
    "replays": 200,
    "fenced": 200,
    "presumed dead": 200,
    "conflicts": 100,
    "lost answers": 200,
    "late commits": 100,
    "landed late": 30,
    "catalog answers lost": 40,
    "stalls": 30,
    "stalls of a backfill": 20,
    "heals": 40,
    "second heals": 5,
    "groups": 250,
    "stored ahead": 150,
    "PlanAgain": 40,
    "LogConflict": 10,
    "backfills fenced": 150,
    "backfills beside another": 200,
    "ahead of the ingestion": 150,
    "waits for a cutover": 20,
    "cutovers by a batch": 100,
    "cutovers by nothing": 150,
    "followed too late": 4,
    "swaps": 80,
    "retired": 100,
    "merges": 30,
    "merges at several ticks": 5,
    "merges that heal": 5,
    "dropped mid-backfill": 60,
    "created without history": 40,
    "partitions added": 100,
    "topic compactions": 60,
    "reads inside a group": 30,
    "no room": 100,
    "spec changes": 300,
    "spec changes while a tick is pending": 100,
    "spec changes during a backfill": 100,
}


def test_the_schedules_meet_what_they_are_for() -> None:
    """In how many of 400 worlds each thing occurs, or the tests above would show nothing."""
    worlds = [run(seed) for seed in range(400)]
    met = Counter(what for world in worlds for what, count in world.catalog.counts.items() if count)
    rare = {what: met[what] for what, wanted in AT_LEAST.items() if met[what] < wanted}
    assert not rare
    assert max(world.rest for world in worlds) < 100, "rest comes long before the bound"
