"""Random interleavings in worlds whose keyed tables have deletion vectors: sleepers, maintenance, holes in the log.

``SIMULATION_SEED=4711 pytest …/test_vector_interleavings.py`` runs that seed alone, and
``python -m tests.support.simulation vectors 4711`` tells what happens in it, step by step.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.support.simulation import VECTORS, Mutant, Violation, run_vectors

BY_TRACE = {
    Mutant.GONE_BASE_COUNTS,
    Mutant.BELOW_CHECKPOINT_COUNTS,
    Mutant.LISTED_BEFORE_READ,
    Mutant.CHECKPOINTS_GO_LAST,
    Mutant.REMOVED_IN_ANY_ORDER,
}
"""Too rare for chance: test_vector_traces.py shows them."""
BY_SEED = {
    Mutant.MAPPED_UNCLEAR: 2334,
    Mutant.HOLE_COUNTS: 309,
    Mutant.HOLES_ARE_FOLLOWED: 309,
    Mutant.NO_GRACE: 635,
    Mutant.UNNAMED_OF_ANY_AGE: 652,
}
"""Found by chance, but one in hundreds or thousands."""
OF_MERGES = (
    Mutant.PLAN_SENT_AGAIN,
    Mutant.CLIENT_SENDS_AGAIN,
    Mutant.INSERTS_APPENDED,
    Mutant.UNCLEAR_MEANS_FAILED,
    Mutant.PART_APPLIED_AGAIN,
    Mutant.FOLDED_BY_PLACE,
    Mutant.PLANNED_ON_OLDER,
    Mutant.STALE_COMPACTION,
)
"""Rules of all keyed collections."""
BY_CHANCE = [*OF_MERGES, *(mutant for mutant in Mutant if mutant in VECTORS - BY_TRACE - BY_SEED.keys())]
CHUNK = 20_000


def run_all(seeds: Iterable[int]) -> None:
    chosen = os.environ.get("SIMULATION_SEED")
    for seed in [int(chosen)] if chosen else seeds:
        try:
            run_vectors(seed)
        except Exception as error:
            again = f"python -m tests.support.simulation vectors {seed}"
            raise AssertionError(f"seed {seed}: {error} (to see how: {again})") from error


@pytest.mark.timeout(900)
def test_no_interleaving_breaks_a_collection_with_vectors() -> None:
    run_all(range(600))


@pytest.mark.full(seconds=180)
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("first", range(600, 60_600, CHUNK))
def test_no_interleaving_breaks_a_collection_with_vectors_at_length(first: int) -> None:
    run_all(range(first, first + CHUNK))


@pytest.mark.parametrize("mutant", BY_CHANCE, ids=lambda mutant: mutant.name.lower())
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(300):
        try:
            run_vectors(seed, mutant)
        except Violation:
            return
    pytest.fail(f"300 seeds did not notice: {mutant.value}")


@pytest.mark.parametrize("mutant", BY_SEED, ids=lambda mutant: mutant.name.lower())
def test_a_rare_rule_left_out_is_caught(mutant: Mutant) -> None:
    with pytest.raises(Violation):
        run_vectors(BY_SEED[mutant], mutant)
    run_vectors(BY_SEED[mutant])


AT_LEAST = {
    "keyed rows": 172,
    "keyed rows of several ticks": 135,
    "keyed fence": 90,
    "keyed refused": 99,
    "keyed unclear": 118,
    "keyed answers lost": 63,
    "keyed commits late": 45,
    "keyed planned anew": 115,
    "keyed planned again": 59,
    "keyed found after an unclear answer": 114,
    "index followed": 132,
    "index mapped": 4,
    "index rebuilt": 174,
    "vectors carried over": 46,
    "compactions put": 52,
    "compactions dropped": 33,
    "compactions refused": 3,
    "compactions unclear": 8,
    "put into holes": 4,
    "puts in holes": 44,
    "late checkpoints": 52,
    "foreign clean-ups": 40,
    "files removed": 140,
    "unnamed files removed": 136,
    "log entries removed": 147,
    "cutovers of keyed tables": 155,
    "resumed after an unclear keyed commit": 13,
    "swaps": 81,
}


def test_the_schedules_meet_what_they_are_for() -> None:
    """In how many of 300 worlds each thing occurs, or the tests above would show nothing."""
    worlds = [run_vectors(seed) for seed in range(300)]
    met = Counter(what for world in worlds for what, count in world.catalog.counts.items() if count)
    rare = {what: met[what] for what, wanted in AT_LEAST.items() if met[what] < wanted}
    assert not rare
    assert max(world.rest for world in worlds) < 150, "rest comes long before the bound"
