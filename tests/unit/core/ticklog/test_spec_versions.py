from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.spec_versions import first_tick_of_change, next_change, version_at
from airflow_provider_mzshare.core.ticklog.state import SourceState, Tick

SOURCE = SourceState(ItemId("u1"), "active", "topic-1", Position())
TICKS = [Tick(n, Position({0: n - 1}), Position({0: n}), 1_000 + n) for n in range(1, 4)]


def test_a_change_reaches_no_tick_that_was_minted() -> None:
    assert first_tick_of_change(SOURCE) == 1
    assert first_tick_of_change(replace(SOURCE, last=TICKS[1])) == 3
    assert first_tick_of_change(replace(SOURCE, last=TICKS[1], pending=(TICKS[2],))) == 4


@pytest.mark.parametrize(
    ("tick", "version", "change"), [(1, 0, 4), (3, 0, 4), (4, 1, 6), (5, 1, 6), (6, 3, None), (99, 3, None)]
)
def test_a_version_is_valid_from_its_first_tick_until_the_next_one_s(
    tick: int, version: int, change: int | None
) -> None:
    """Of two that begin at one tick, the later."""
    first_ticks = [1, 4, 6, 6]
    assert version_at(first_ticks, tick) == version
    assert next_change(first_ticks, tick) == change
