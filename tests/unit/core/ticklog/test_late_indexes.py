"""Random interleavings in worlds whose keyed tables have deletion vectors, and in which no tick waits for an index.

``SIMULATION_SEED=4711 pytest …/test_late_indexes.py`` runs that seed alone, and
``python -m tests.support.simulation late 4711`` tells what happens in it, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.support.simulation import LATE, Mutant, Violation, run_late

CHUNK = 15_000


def run_all(seeds: Iterable[int]) -> None:
    chosen = os.environ.get("SIMULATION_SEED")
    for seed in [int(chosen)] if chosen else seeds:
        try:
            run_late(seed)
        except Exception as error:
            again = f"python -m tests.support.simulation late {seed}"
            raise AssertionError(f"seed {seed}: {error} (to see how: {again})") from error


@pytest.mark.full(seconds=180)
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("first", range(200, 30_200, CHUNK))
def test_no_interleaving_breaks_a_table_that_comes_back_at_length(first: int) -> None:
    run_all(range(first, first + CHUNK))


@pytest.mark.parametrize("mutant", [m for m in Mutant if m in LATE], ids=lambda mutant: mutant.name.lower())
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(200):
        try:
            run_late(seed, mutant)
        except Violation:
            return
    pytest.fail(f"200 seeds did not notice: {mutant.value}")


AT_LEAST = {
    "left without an index": 120,
    "came back with an index": 95,
    "keyed rows": 150,
    "keyed rows of several ticks": 90,
    "keyed refused": 40,
    "keyed unclear": 60,
    "stored ahead": 150,
    "index followed": 120,
    "index rebuilt": 100,
    "cutovers of keyed tables": 130,
    "swaps": 40,
    "presumed dead": 40,
}


@pytest.mark.timeout(900)
def test_no_interleaving_breaks_a_table_that_comes_back_and_the_schedules_meet_what_they_are_for() -> None:
    """In how many of 200 worlds each thing occurs, or the other tests would show nothing."""
    run_all(())
    worlds = [run_late(seed) for seed in range(200)]
    met = Counter(what for world in worlds for what, count in world.catalog.counts.items() if count)
    rare = {what: met[what] for what, wanted in AT_LEAST.items() if met[what] < wanted}
    assert not rare
    assert max(world.rest for world in worlds) < 150, "rest comes long before the bound"
