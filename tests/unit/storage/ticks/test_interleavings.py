"""Random interleavings of apps, crashes, zombies and lost answers; a failing seed is replayed by its number."""

from __future__ import annotations

import pytest

from tests.support.simulation import Mutant, World


def run(seed: int, mutant: Mutant = Mutant.NONE) -> World:
    world = World(seed, mutant)
    world.run()
    world.check()
    return world


def run_all(seeds: range) -> None:
    for seed in seeds:
        try:
            run(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_no_interleaving_loses_or_doubles_a_row() -> None:
    run_all(range(2_000))


@pytest.mark.full
@pytest.mark.timeout(600)
def test_no_interleaving_loses_or_doubles_a_row_at_length() -> None:
    run_all(range(10_000, 40_000))


@pytest.mark.parametrize("mutant", [m for m in Mutant if m is not Mutant.NONE], ids=lambda m: m.name.lower())
def test_leaving_a_rule_out_is_caught(mutant: Mutant) -> None:
    for seed in range(3_000):
        try:
            run(seed, mutant)
        except Exception:
            return
    pytest.fail(f"3,000 seeds did not notice: {mutant.value}")


def test_the_schedules_meet_what_they_are_for() -> None:
    """Zombies, replays and stalls do occur, or the test above would show nothing."""
    worlds = [run(seed) for seed in range(200)]
    assert sum(world.replays > 0 for world in worlds) > 50
    assert sum(world.fenced > 0 for world in worlds) > 50
    assert sum(any(t.status == "stalled" for t in world.state.tables.values()) for world in worlds) > 5
