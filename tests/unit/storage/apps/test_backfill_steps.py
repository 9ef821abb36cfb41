"""Which ticks a backfill executes next, and when."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import TableState, Tick
from airflow_provider_mzshare.storage.apps import backfill_steps
from airflow_provider_mzshare.storage.apps.backfill_steps import Pacer, Rearmost, cut_group, rearmost


def log(*sizes: int, first: int = 1) -> list[Tick]:
    ticks, at = [], 0
    for number, size in enumerate(sizes, start=first):
        ticks.append(Tick(number, Position({0: at}), Position({0: at + size}), mz_timestamp=1000 * number))
        at += size
    return ticks


def numbers(ticks: list[Tick], **limits: int | None) -> list[int]:
    return [tick.number for tick in cut_group(ticks, **limits).ticks]  # type: ignore[arg-type]


def table(name: str, next_tick: int) -> TableState:
    return TableState(ItemId(name), "backfilling", 1, 1, Position(), Position(), next_tick=next_tick)


def test_the_rearmost_tables_go_first_and_stop_where_the_next_one_waits() -> None:
    tables = {ItemId(n): table(n, at) for n, at in {"u1": 7, "u2": 3, "u3": 3, "u4": 9}.items()}
    assert rearmost(tables) == Rearmost(frozenset({ItemId("u2"), ItemId("u3")}), first=3, before=7)
    assert rearmost({ItemId("u1"): tables[ItemId("u1")]}).before is None


def test_they_stop_where_the_spec_of_one_of_them_changes() -> None:
    u1, u2, u3 = (ItemId(name) for name in ("u1", "u2", "u3"))
    tables = {u1: table("u1", 3), u2: table("u2", 3), u3: table("u3", 9)}
    assert rearmost(tables, {u1: [1, 3, 7], u2: [1, 12], u3: [1, 4]}) == Rearmost(frozenset({u1, u2}), 3, before=7)
    assert rearmost(tables, {u1: [1, 2], u2: [1, 12], u3: [1]}).before == 9
    assert rearmost({u2: tables[u2]}, {u2: [1, 12]}).before == 12


def test_who_has_another_spec_by_then_is_left_out_of_a_group_that_must_reach_far() -> None:
    """u2 holds tick 8 already, so its group must; and u1 is not to be written across its change at tick 7."""
    u1, u2 = ItemId("u1"), ItemId("u2")
    tables, specs = {u1: table("u1", 3), u2: table("u2", 3)}, {u1: [1, 7], u2: [1, 12]}
    assert rearmost(tables, specs, at_least=8) == Rearmost(frozenset({u2}), 3, before=12)
    assert rearmost(tables, specs, at_least=6) == Rearmost(frozenset({u1, u2}), 3, before=7)


def test_a_group_is_cut_by_records_by_the_next_table_and_by_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = log(10, 10, 10, 10, 0, 0)
    assert numbers(ticks, max_records=25) == [1, 2]
    assert numbers(ticks, max_records=30) == [1, 2, 3]
    assert numbers(ticks, max_records=40) == [1, 2, 3, 4, 5, 6], "empty ticks cost nothing"
    assert numbers(ticks, max_records=1) == [1], "a tick is never divided"
    assert numbers(ticks, max_records=100, before=3) == [1, 2]
    monkeypatch.setattr(backfill_steps, "MAX_TICKS", 4)
    assert numbers(ticks, max_records=100) == [1, 2, 3, 4]


def test_a_tick_that_a_collection_holds_belongs_to_the_group_whatever_the_limits_say() -> None:
    assert numbers(log(10, 10, 10, 10), max_records=10, before=2, at_least=3) == [1, 2, 3]


def test_no_more_ticks_are_asked_for_than_are_needed() -> None:
    asked: list[int] = []

    def reading() -> object:
        for tick in log(*[10] * 1000):
            asked.append(tick.number)
            yield tick

    cut_group(reading(), max_records=30)  # type: ignore[arg-type]
    assert asked == [1, 2, 3, 4]


@given(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=30), limit=st.integers(1, 120))
def test_groups_one_after_the_other_cover_the_log_once(sizes: list[int], limit: int) -> None:
    rest, seen = log(*sizes), []
    while rest:
        group = cut_group(rest, max_records=limit)
        assert group.records <= limit or len(group.ticks) == 1
        seen += [tick.number for tick in group.ticks]
        rest = rest[len(group.ticks) :]
    assert seen == list(range(1, len(sizes) + 1))


def test_a_rate_limits_the_group_and_the_time_between_two() -> None:
    pacer = Pacer()
    assert pacer.max_records(1000, 500_000) == 10_000
    assert pacer.max_records(1_000_000, 500_000) == 500_000
    assert pacer.max_records(None, 500_000) == 500_000
    assert pacer.wait(1000, now=50.0) == 0, "the first group begins at once"
    pacer.begin(10_000, now=50.0)
    assert pacer.wait(1000, now=52.0) == 8.0
    assert pacer.wait(1000, now=60.5) == 0


def test_a_changed_rate_counts_at_once() -> None:
    pacer = Pacer()
    pacer.begin(10_000, now=50.0)
    assert pacer.wait(100, now=51.0) == 99.0
    assert pacer.wait(5_000, now=51.0) == 1.0
    assert pacer.wait(None, now=51.0) == 0
    assert pacer.wait(0, now=51.0) == math.inf
    assert pacer.wait(0, now=10_000.0) == math.inf


def test_a_group_without_records_costs_no_time() -> None:
    pacer = Pacer()
    pacer.begin(0, now=50.0)
    assert pacer.wait(1, now=50.0) == 0
