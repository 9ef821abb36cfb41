"""The rule about tombstones: a table that may have missed a delete stalls, and one that was in time does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import tombstones
from airflow_provider_mzshare.core.ticklog.state import Done, EndSeen, Left, SourceState, TableState
from tests.support.compacted import Deadline, Run

SEEDS = 40


# ── against a broker that compacts ────────────────────────────────────────────────────────────────────────────────────


def test_no_table_keeps_a_key_that_should_be_gone() -> None:
    stalled = moved = 0
    for seed in range(SEEDS):
        run = Run(seed)
        run.run()
        stalled, moved = stalled + run.stalled, moved + run.moved
    assert stalled > SEEDS / 2, "hardly any table was ever late"
    assert moved > 50 * SEEDS


def test_a_table_that_is_in_time_never_stalls() -> None:
    """The ends that are kept are a little apart, so a little of the time is lost; no more than that."""
    moved = 0
    for seed in range(SEEDS):
        run = Run(seed, longest=300)
        run.run()
        assert run.stalled == 0, f"seed {seed}"
        moved += run.moved
    assert moved > 50 * SEEDS


def _counts_from_the_end_itself(table: TableState, ends: Sequence[EndSeen]) -> int | None:
    """As if all before an end had been written just before it was seen."""
    missed = next((seen.at for seen in ends if not seen.end <= table.position), None)
    return None if missed is None or table.begun_at is None else max(missed, table.begun_at) + ends[-1].kept_ms


def _knows_no_beginning(table: TableState, ends: Sequence[EndSeen]) -> int | None:
    """As if the time began anew with each read."""
    return None if not ends else ends[-1].at + ends[-1].kept_ms


def _gives_more_time_at_the_beginning(table: TableState, ends: Sequence[EndSeen]) -> int | None:
    """As if what was old when the reads began could not be cleaned at once."""
    found = tombstones.deadline(table, ends)
    return None if found is None or table.begun_at is None else max(found, table.begun_at + 2 * ends[-1].kept_ms)


@pytest.mark.parametrize(
    "deadline", [None, _counts_from_the_end_itself, _knows_no_beginning, _gives_more_time_at_the_beginning]
)
def test_another_rule_is_caught(deadline: Deadline | None) -> None:
    with pytest.raises(AssertionError, match="has"):
        _run_all(deadline)


def _run_all(deadline: Deadline | None) -> None:
    for seed in range(20 * SEEDS):
        Run(seed, deadline=deadline).run()


# ── one by one ────────────────────────────────────────────────────────────────────────────────────────────────────────

U1 = ItemId("u1")
HOUR = 3_600_000


def at(offset: int) -> Position:
    return Position({0: offset})


def table(offset: int, *, begun_at: int | None = 0, keyed: bool = True, **changes: object) -> TableState:
    found = TableState(U1, "live", 1, 1, Position(), at(offset), keyed=keyed, begun_at=begun_at)
    return replace(found, **changes)  # type: ignore[arg-type]


ENDS = (EndSeen(10, at(5), 100, 7), EndSeen(40, at(8), 100, 7), EndSeen(90, at(20), 100, 7))


@pytest.mark.parametrize(
    ("late", "until"),
    [
        (table(3, begun_at=0), 100),
        (table(3, begun_at=30), 130),
        (table(5), 117),
        (table(7), 117),
        (table(8, begun_at=60), 160),
        (table(8), 147),
        (table(25), 197),
        (table(3, begun_at=None), None),
        (table(3, keyed=False), None),
    ],
)
def test_until_when_a_table_has_to_go_on(late: TableState, until: int | None) -> None:
    assert tombstones.deadline(late, ENDS) == until
    assert tombstones.deadline(late, ()) is None


def test_the_shortest_time_counts() -> None:
    """A tombstone keeps the time that was set when it was cleaned: a longer one helps only those that come later."""
    assert tombstones.deadline(table(8), (*ENDS, EndSeen(95, at(21), 5_000, 900))) == 147
    assert tombstones.deadline(table(8), (*ENDS, EndSeen(95, at(21), 20, 0))) == 60


def test_an_upstream_that_begins_to_compact_has_lost_nothing_yet() -> None:
    """Neither does one that ends it: but what was lost before stays lost."""
    whole, since = EndSeen(500, at(5), None), EndSeen(560, at(9), 100)
    assert tombstones.deadline(table(3), (whole,)) is None
    assert tombstones.deadline(table(3), (whole, since)) == 600
    assert tombstones.deadline(table(7), (whole, since)) == 600
    assert tombstones.deadline(table(3), (since, EndSeen(900, at(9), None))) == 100
    assert tombstones.with_end((since,), EndSeen(900, at(9), None))[-1] == EndSeen(900, at(9), None)
    assert tombstones.with_end((whole,), EndSeen(900, at(9), None)) == (EndSeen(900, at(9), None),)


def test_what_was_read_too_late_does_not_count() -> None:
    states = {U1: table(8)}
    judge = tombstones.judged
    assert judge(states, ENDS, {U1: Done()}, at(20), 147) == {U1: Done()}
    (left,) = judge(states, ENDS, {U1: Done()}, at(20), 148).values()
    assert isinstance(left, Left)
    assert left.reason.startswith("tombstones_lost: it was behind for 0.1 s, and the upstream keeps deletes for 0.1 s")
    assert judge(states, ENDS, {U1: Done()}, at(8), 148) == {U1: Done()}, "an empty tick reads nothing"
    assert judge({U1: table(8, keyed=False)}, ENDS, {U1: Done()}, at(20), 148) == {U1: Done()}
    assert judge({}, ENDS, {U1: Done()}, at(20), 148) == {U1: Done()}
    assert judge(states, (), {U1: Done()}, at(20), 10**9) == {U1: Done()}, "an upstream that keeps all records"
    assert judge(states, ENDS, {U1: Left("full")}, at(20), 148) == {U1: Left("full")}


def test_who_is_lost() -> None:
    """Each generation by itself; those that are not written any more have their reason already."""
    others = {
        ItemId(f"u{n}"): table(8, table_id=ItemId(f"u{n}"), status=s) for n, s in ((2, "stalled"), (3, "created"))
    }
    new = table(20, generation=2, status="backfilling")
    state = SourceState(U1, "active", "", at(0), tables={U1: table(8), **others}, replacements={U1: new}, ends=ENDS)
    assert tombstones.lost(state, 147) == []
    assert tombstones.lost(state, 150) == [state.tables[U1]]
    assert tombstones.lost(state, 300) == [state.tables[U1], new]


def test_a_stalled_table_may_have_missed_deletes() -> None:
    late = (*ENDS, EndSeen(150, at(30), 100, 7))
    assert not tombstones.may_have_missed(table(8, status="stalled", reason="the disk was full"), ENDS)
    assert tombstones.may_have_missed(table(8, status="stalled", reason="the disk was full"), late)
    assert not tombstones.may_have_missed(table(30, status="stalled", reason="the disk was full"), late)
    assert tombstones.may_have_missed(table(30, status="stalled", reason="tombstones_lost: …"), ())
    assert not tombstones.may_have_missed(table(8, keyed=False, reason="the disk was full"), late)


def test_few_ends_are_kept() -> None:
    ends: tuple[EndSeen, ...] = ()
    for second in range(0, 2 * 24 * 3600, 60):
        ends = tombstones.with_end(ends, EndSeen(1_000 * second, at(second), 24 * HOUR, 0))
    newest = ends[-1].at
    assert len(ends) < 70
    assert newest - ends[0].at > 23.5 * HOUR, "a table that is a day late has to find the end that it has reached"
    assert max(b.at - a.at for a, b in pairwise(ends)) <= 24 * HOUR / 64 + 120_000


def test_an_end_that_does_not_move_is_kept_once() -> None:
    ends: tuple[EndSeen, ...] = (EndSeen(5, at(3), 100, 0),)
    for now in (10, 20, 30):
        ends = tombstones.with_end(ends, EndSeen(now, at(9), 100, 0))
    assert ends == (EndSeen(5, at(3), 100, 0), EndSeen(30, at(9), 100, 0))


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Clocks:
    def __init__(self, wall: int) -> None:
        self.wall, self.monotonic = wall, 500

    def steady(self) -> tombstones.SteadyClock:
        return tombstones.SteadyClock(lambda: self.wall, lambda: self.monotonic)


def test_a_clock_that_is_set_back_changes_nothing() -> None:
    clocks = _Clocks(1_000_000)
    steady = clocks.steady()
    assert steady.now(()) == 1_000_000
    clocks.wall, clocks.monotonic = 1_000_000 - HOUR, clocks.monotonic + 40
    assert steady.now(()) == 1_000_040
    clocks.monotonic += 60
    assert steady.now(()) == 1_000_100


def test_a_clock_that_is_set_forward_counts() -> None:
    """So does the time of a machine that slept, which its monotonic clock does not know of."""
    clocks = _Clocks(1_000_000)
    steady = clocks.steady()
    steady.now(())
    clocks.wall += HOUR
    assert steady.now(()) == 1_000_000 + HOUR


def test_a_new_process_that_is_clearly_behind_counts_all_the_time() -> None:
    ends = (EndSeen(1_000_000, at(8), 10_000, 0),)
    assert _Clocks(1_003_000).steady().now(ends) == 1_003_000
    assert _Clocks(999_950).steady().now(ends) == 1_000_000, "two machines' clocks are never quite the same"
    assert _Clocks(999_000).steady().now(ends) > 1_010_000
