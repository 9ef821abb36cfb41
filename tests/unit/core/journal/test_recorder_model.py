"""Recorders by chance: restarts in the middle of transactions, zombies, lost answers and retention meet the rules."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.journal_world import Violation
from tests.support.recorder_model import Model, Mutant

SEEDS = 100
MANY = 1_500


def run(seeds: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        model = Model(seed)
        try:
            model.run()
        except Violation as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        counts.update(model.counts)
    return counts


def test_every_tick_has_whole_transactions_once_and_in_order() -> None:
    counts = run(range(SEEDS))
    often = {"ticks": 5, "read again": 5, "fenced": 0.5, "reconnected": 0.5, "trimmed": 0.5}
    assert all(counts[event] > SEEDS * times for event, times in often.items()), counts


@pytest.mark.full(seconds=60)
def test_many_times() -> None:
    run(range(SEEDS, MANY))


@pytest.mark.parametrize("mutant", [mutant for mutant in Mutant if mutant is not Mutant.NONE])
def test_a_rule_that_is_left_out_is_noticed(mutant: Mutant) -> None:
    for seed in range(20 * SEEDS):
        try:
            Model(seed, mutant).run()
        except Violation:
            return
    pytest.fail(f"nobody noticed: {mutant.value}")
