"""Random interleavings in worlds whose keyed tables keep values of rows: records are error rows by the rows before.

``SIMULATION_SEED=4711 pytest …/test_keeping_interleavings.py`` runs that seed alone, and
``python -m tests.support.simulation keeping 4711`` tells what happens in it, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.support.simulation import KEEPING, KEEPING_KINDS, Mutant, Violation, run

BY_TRACE = {Mutant.ERRORS_NOT_FORCED}
"""Too rare for chance: test_keyed_traces.py shows it."""
CONTRADICTED = (499, 1234)
"""Rare, too: a tick is read again without what was there when its errors were committed."""


def run_all(seeds: Iterable[int]) -> None:
    chosen = os.environ.get("SIMULATION_SEED")
    for seed in [int(chosen)] if chosen else seeds:
        try:
            run(seed, kinds=KEEPING_KINDS)
        except Exception as error:
            again = f"python -m tests.support.simulation keeping {seed}"
            raise AssertionError(f"seed {seed}: {error} (to see how: {again})") from error


def test_no_interleaving_changes_an_error() -> None:
    run_all(range(300))


@pytest.mark.full(seconds=90)
@pytest.mark.timeout(1800)
def test_no_interleaving_changes_an_error_at_length() -> None:
    run_all(range(300, 8_000))


@pytest.mark.parametrize("mutant", sorted(KEEPING - BY_TRACE, key=lambda m: m.name), ids=lambda m: m.name.lower())
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(2_000):
        try:
            run(seed, mutant, KEEPING_KINDS)
        except Violation:
            return
    pytest.fail(f"2,000 seeds did not notice: {mutant.value}")


def test_the_schedules_meet_what_they_are_for() -> None:
    worlds = [run(seed, kinds=KEEPING_KINDS) for seed in (*range(100), *CONTRADICTED)]
    met = Counter(what for world in worlds for what, count in world.catalog.counts.items() if count)
    wanted = {"keyed refused by rows": 70, "keyed planned anew": 20, "keyed found": 20, "cutovers of keyed tables": 70}
    wanted |= {"topic compactions": 30, "keyed contradicted": len(CONTRADICTED)}
    assert {what: met[what] for what, least in wanted.items() if met[what] < least} == {}
