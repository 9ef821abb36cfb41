from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.errors import LogConflict

UPPERS = [Position({0: 10}), Position({0: 10}), Position({0: 12, 1: 5}), Position({0: 20, 1: 5, 2: 1})]


def ticks(first: int = 7) -> tuple[Tick, ...]:
    lowers = [Position({0: 4}), *UPPERS]
    return tuple(
        Tick(first + n, lower, upper, mz_timestamp=1000 + 10 * n)
        for n, (lower, upper) in enumerate(zip(lowers, UPPERS, strict=False))
    )


def test_a_group_is_as_one_tick_from_the_first_to_the_last():
    group = TickGroup(ticks())
    assert (group.first.number, group.last.number, group.number) == (7, 10, 10)
    assert (group.lower, group.upper) == (Position({0: 4}), UPPERS[-1])
    assert (group.first_timestamp, group.mz_timestamp) == (1000, 1030)
    assert group.records == 16 + 5 + 1


def test_a_group_of_one_is_its_tick():
    (tick,) = ticks()[:1]
    group = TickGroup((tick,))
    assert (group.first, group.last, group.records, group.ends()) == (tick, tick, 6, {})


def test_a_group_without_ticks_is_none():
    with pytest.raises(ValueError, match="at least one"):
        TickGroup(())


@pytest.mark.parametrize(
    "change",
    [{"number": 9}, {"number": 7}, {"lower": Position({0: 11})}, {"lower": Position()}, {"mz_timestamp": 1000}],
    ids=["a gap in numbers", "a number twice", "a gap in offsets", "an overlap", "a time that stands still"],
)
def test_ticks_that_do_not_follow_each_other_are_refused(change):
    first, second = ticks()[:2]
    with pytest.raises(LogConflict, match="does not follow tick 7"):
        TickGroup((first, replace(second, **change)))


def test_its_ticks_are_found_by_time_and_by_number():
    group = TickGroup(ticks())
    assert [tick and tick.number for tick in map(group.at, (999, 1000, 1005, 1010, 1030, 1031))] == [
        None, 7, None, 8, 10, None,
    ]  # fmt: skip
    assert [group.after(number).number for number in (0, 6, 7, 9)] == [7, 7, 8, 10]


def test_ends_name_every_partition_that_has_something_to_read():
    """A partition that comes later ends at 0 in the ticks before; one that stands still is not read at all."""
    still = TickGroup(tuple(replace(t, lower=with_idle(t.lower), upper=with_idle(t.upper)) for t in ticks()))
    assert still.ends() == {"0": (10, 10, 12), "1": (0, 0, 5), "2": (0, 0, 0)}


def with_idle(position: Position) -> Position:
    return Position({**position.offsets, "9": 77})
