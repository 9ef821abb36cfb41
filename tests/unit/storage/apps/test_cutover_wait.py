"""How long an ingestion app waits for a backfill before a tick: briefly, for one that lives, and for nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.state import BackfillState, Lease, SourceState, TableState, Tick
from airflow_provider_mzshare.errors import CatalogUnreachable
from airflow_provider_mzshare.storage.apps.cutover_wait import Convergence, longest_wait

B, T = BackfillId("b-1"), ItemId("u2")


def source(*, beat: int, next_tick: int, status: str = "converging") -> SourceState:
    last = Tick(5, Position({0: 40}), Position({0: 50}), 5000, committed=True)
    at = Position({0: 50}) if next_tick > 5 else Position({0: 10 * (next_tick - 1)})
    table = TableState(T, status, 1, 1, Position(), at, next_tick=next_tick, backfill_id=B)  # type: ignore[arg-type]
    backfill = BackfillState(B, history=3, lease=Lease(1, JobId("j"), beat))
    return SourceState(ItemId("u1"), "active", "x", Position(), last=last, tables={T: table}, backfills={B: backfill})


class World:
    """A clock that sleeping moves, and a source that changes with time."""

    def __init__(self, **state: object) -> None:
        self.now, self.loads = 100.0, 0
        self.state = source(**{"beat": 1, "next_tick": 5, **state})  # type: ignore[arg-type]
        self.caught_up_at = float("inf")
        self.waiting = Convergence(
            self.load, JobId("ingest-1"), lease_seconds=2.0, clock=lambda: self.now, sleep=self.sleep
        )

    def load(self) -> SourceState:
        self.loads += 1
        return source(beat=9, next_tick=6) if self.now >= self.caught_up_at else self.state

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def live(self, beats: int = 2) -> None:
        """The app looks each second, and the backfill's heart beats."""
        for beat in range(1, beats + 1):
            backfill = replace(self.state.backfills[B], lease=Lease(1, JobId("j"), beat))
            self.state = replace(self.state, backfills={B: backfill})
            self.waiting.look(self.state)
            self.now += 1


def test_it_does_not_wait_for_a_table_whose_index_is_still_made() -> None:
    world = World()
    ready: set[tuple[ItemId, int]] = set()
    world.state = replace(world.state, tables={T: replace(world.state.tables[T], keyed=True)})
    world.waiting = Convergence(
        world.load,
        JobId("ingest-1"),
        lease_seconds=2.0,
        indexed=lambda: ready,
        clock=lambda: world.now,
        sleep=world.sleep,
    )
    world.live()
    assert world.waiting.wait(0.25) == 0.0
    ready.add((T, 1))
    assert world.waiting.wait(0.25) > 0.2


def test_it_waits_until_the_backfill_has_the_tick() -> None:
    world = World()
    world.live()
    world.caught_up_at = world.now + 0.1
    assert world.waiting.wait(0.25) == pytest.approx(0.1, abs=0.03)


def test_it_waits_no_longer_than_it_may() -> None:
    world = World()
    world.live()
    assert world.waiting.wait(0.25) == pytest.approx(0.25, abs=0.03)
    assert world.waiting.wait(0.0) == 0


def test_it_does_not_wait_for_a_heart_that_it_has_not_seen_beating() -> None:
    world = World()
    world.live(beats=1)
    assert world.waiting.wait(0.25) == 0, "seen once is not seen beating"


def test_it_does_not_wait_for_a_heart_that_stands_still() -> None:
    world = World()
    world.live()
    world.now += 5
    world.waiting.look(world.state)
    assert world.waiting.wait(0.25) == 0


@pytest.mark.parametrize("state", [{"next_tick": 4}, {"next_tick": 6}])
def test_it_does_not_wait_for_one_that_is_further_behind_or_already_there(state: dict[str, int]) -> None:
    world = World(**state)
    world.live()
    assert world.waiting.wait(0.25) == 0


def test_nothing_is_asked_while_nobody_converges() -> None:
    world = World(status="backfilling")
    world.live()
    assert world.waiting.wait(0.25) == 0
    assert world.loads == 0


def test_a_catalog_that_is_away_is_left_to_the_mint() -> None:
    world = World()
    world.live()

    def away() -> SourceState:
        raise CatalogUnreachable("away")

    world.waiting._load = away
    assert world.waiting.wait(0.25) == 0


def test_the_wait_is_a_quarter_of_the_trigger_unless_it_is_set() -> None:
    assert longest_wait(SourceSettings()) == 0.25
    assert longest_wait(SourceSettings(trigger_interval_ms=200)) == 0.05
    assert longest_wait(SourceSettings(cutover_wait_ms=0)) == 0
    assert longest_wait(SourceSettings(cutover_wait_ms=700)) == 0.7
