"""Journals by chance: writers, zombies, power cuts, lost answers, retention and restored catalogs meet the rules."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.journal_model import Model
from tests.support.journal_world import Mutant, Violation

SEEDS = 300
MANY = 20_000


def run(seeds: range) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        model = Model(seed)
        try:
            model.run()
        except Violation as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        counts.update(model.clients.counts)
    return counts


def test_every_acknowledged_message_is_there_once_and_none_that_was_refused() -> None:
    counts = run(range(SEEDS))
    often = {"acknowledged": 5, "duplicates": 1, "refused": 0.2, "fenced": 1, "lost answers": 1, "behind": 0.1}
    assert all(counts[event] > SEEDS * times for event, times in often.items()), counts


@pytest.mark.full(seconds=60)
def test_many_times() -> None:
    run(range(SEEDS, MANY))


@pytest.mark.parametrize("mutant", [mutant for mutant in Mutant if mutant is not Mutant.NONE])
def test_a_rule_that_is_left_out_is_noticed(mutant: Mutant) -> None:
    for seed in range(10 * SEEDS):
        try:
            Model(seed, mutant).run()
        except Violation:
            return
    pytest.fail(f"nobody noticed: {mutant.value}")
