"""Random interleavings in worlds with keyed tables, whose rows depend on the rows before them.

``SIMULATION_SEED=4711 pytest …/test_keyed_interleavings.py`` runs that seed alone, and
``python -m tests.support.simulation keyed 4711`` tells what happens in it, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.support.simulation import KEYED, KEYED_KINDS, Mutant, Violation, run

BY_TRACE = {Mutant.NO_FENCE_WITHOUT_EFFECT, Mutant.REPLANNED_ON_ANY_TICK, Mutant.CANCELLED_OUT_UNMARKED}
"""Too rare for chance: test_keyed_traces.py shows them."""


def run_all(seeds: Iterable[int]) -> None:
    chosen = os.environ.get("SIMULATION_SEED")
    for seed in [int(chosen)] if chosen else seeds:
        try:
            run(seed, kinds=KEYED_KINDS)
        except Exception as error:
            again = f"python -m tests.support.simulation keyed {seed}"
            raise AssertionError(f"seed {seed}: {error} (to see how: {again})") from error


@pytest.mark.timeout(900)
def test_no_interleaving_breaks_a_keyed_state() -> None:
    run_all(range(1_500))


@pytest.mark.full(seconds=150)
@pytest.mark.timeout(1800)
def test_no_interleaving_breaks_a_keyed_state_at_length() -> None:
    run_all(range(1_500, 20_000))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", [m for m in Mutant if m in KEYED - BY_TRACE], ids=lambda m: m.name.lower())
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(1_500):
        try:
            run(seed, mutant, KEYED_KINDS)
        except Violation:
            return
    pytest.fail(f"1,500 seeds did not notice: {mutant.value}")


AT_LEAST = {
    "keyed rows": 380,
    "keyed rows of several ticks": 180,
    "keyed fence": 150,
    "keyed fence of several ticks": 40,
    "keyed events without effect": 90,
    "keyed refused": 120,
    "keyed unclear": 150,
    "keyed answers lost": 90,
    "keyed commits late": 50,
    "keyed planned anew": 150,
    "keyed planned again": 80,
    "keyed found": 200,
    "keyed found after an unclear answer": 130,
    "compactions put": 20,
    "compactions dropped": 50,
    "compactions unclear": 2,
    "cutovers of keyed tables": 300,
    "resumed after an unclear keyed commit": 10,
    "landed late": 20,
    "swaps": 100,
    "topic compactions": 100,
    "reads inside a group": 20,
    "no room": 150,
}


def test_the_schedules_meet_what_they_are_for() -> None:
    """In how many of 400 worlds each thing occurs, or the tests above would show nothing."""
    worlds = [run(seed, kinds=KEYED_KINDS) for seed in range(400)]
    met = Counter(what for world in worlds for what, count in world.catalog.counts.items() if count)
    rare = {what: met[what] for what, wanted in AT_LEAST.items() if met[what] < wanted}
    assert not rare
    assert max(world.rest for world in worlds) < 150, "rest comes long before the bound"
