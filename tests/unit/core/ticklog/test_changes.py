"""Where a change stream can be cut, and what it is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ticklog.changes import (
    Bounds,
    Commit,
    Gap,
    Piece,
    Swapped,
    Turn,
    check_bounds,
    group_gap,
    nearest_cuts,
    stretches,
    together,
)
from airflow_provider_mzshare.errors import NotReadable

BOUNDS = Bounds("t", as_of=20, up_to=90, snapshot=True, since=10, upper=100)


@pytest.mark.parametrize(
    "bounds",
    [
        BOUNDS,
        replace(BOUNDS, as_of=10),
        replace(BOUNDS, as_of=99, up_to=100),
        replace(BOUNDS, as_of=11, snapshot=False),
        replace(BOUNDS, as_of=100, up_to=100, snapshot=False),
        replace(BOUNDS, up_to=21),
    ],
)
def test_bounds_within_the_table_are_taken(bounds: Bounds) -> None:
    check_bounds(bounds, [Gap(30, 40, "why")])


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        (replace(BOUNDS, as_of=9), "the first time of a snapshot is 10"),
        (replace(BOUNDS, as_of=10, snapshot=False), "the first time of changes without a snapshot is 11"),
        (replace(BOUNDS, as_of=100, up_to=101), "its last time is 99"),
        (replace(BOUNDS, up_to=101), "ask for changes up to 100, or follow the table"),
        (replace(BOUNDS, up_to=20), "t: a stream up to 20 ends before it begins, with the snapshot as of 20."),
        (
            replace(BOUNDS, up_to=15, snapshot=False),
            "t: a stream up to 15 ends before it begins, with the changes from 20 on.",
        ),
    ],
)
def test_bounds_outside_are_refused(bounds: Bounds, says: str) -> None:
    with pytest.raises(NotReadable) as refused:
        check_bounds(bounds, [])
    assert says in refused.value.line


LATE = "t: changes cannot begin at 101 yet: what is before 100 is final"
ENDS = "t: a stream up to {} ends before it begins, with the {}"


@pytest.mark.parametrize(
    ("bounds", "says", "hint"),
    [
        (
            replace(BOUNDS, as_of=101, up_to=100, snapshot=False),
            LATE,
            "ask for changes from 100 on, or follow the table",
        ),
        (
            replace(BOUNDS, as_of=99, up_to=50, given=False),
            ENDS.format(50, "newest snapshot, as of 99"),
            "also say the time of the snapshot, from 10 to 49",
        ),
        (replace(BOUNDS, as_of=99, up_to=5, given=False), ENDS.format(5, "newest snapshot, as of 99"), ""),
        (
            replace(BOUNDS, as_of=41, up_to=35, snapshot=False, given=False),
            ENDS.format(35, "first changes that there are, from 41 on"),
            "",
        ),
    ],
)
def test_a_refusal_names_no_bound_as_the_callers_that_he_has_not_given(bounds: Bounds, says: str, hint: str) -> None:
    with pytest.raises(NotReadable) as refused:
        check_bounds(bounds, [])
    assert (refused.value.message, refused.value.hint) == (says, hint)


def test_a_table_that_has_stalled_is_not_waited_for() -> None:
    stalled = replace(BOUNDS, heal="ALTER TABLE t RESUME")
    for bounds, hint in (
        (replace(stalled, as_of=100, up_to=101), "ALTER TABLE t RESUME"),
        (replace(stalled, up_to=101), "ask for changes up to 100, or ALTER TABLE t RESUME"),
        (replace(stalled, as_of=101, snapshot=False), "ask for changes from 100 on, or ALTER TABLE t RESUME"),
    ):
        with pytest.raises(NotReadable) as refused:
            check_bounds(bounds, [])
        assert refused.value.hint == hint


def test_a_cut_inside_a_gap_is_refused_with_the_nearest_that_are_not() -> None:
    gap = group_gap(30, 40)
    assert gap is not None
    for bounds, near in (
        (replace(BOUNDS, up_to=31), "the nearest times are 30 and 41"),
        (replace(BOUNDS, up_to=40), "the nearest times are 30 and 41"),
        # A snapshot is the state before the first change.
        (replace(BOUNDS, as_of=30), "the nearest times are 29 and 40"),
        (replace(BOUNDS, as_of=40, snapshot=False), "the nearest times are 30 and 41"),
    ):
        with pytest.raises(NotReadable, match="written together") as refused:
            check_bounds(bounds, [gap])
        assert refused.value.hint == near
    for cut in (30, 41):
        check_bounds(replace(BOUNDS, up_to=cut), [gap])
    with pytest.raises(NotReadable) as refused:
        check_bounds(replace(BOUNDS, since=35, as_of=36, snapshot=False), [gap])
    assert refused.value.hint == "the nearest time is 41"


def test_gaps_that_meet_are_gone_around_together() -> None:
    assert nearest_cuts(35, [Gap(30, 40, ""), Gap(20, 32, ""), Gap(41, 50, "")]) == (20, 41)
    assert nearest_cuts(35, [Gap(30, 40, ""), Gap(38, 50, "")]) == (30, 51)
    assert nearest_cuts(20, [Gap(20, 32, "")]) == (20, 20)


@pytest.mark.parametrize("first", [0, 40])
def test_a_commit_of_one_tick_or_from_before_groups_were_noted_is_no_gap(first: int) -> None:
    assert group_gap(first, 40) is None


def test_commits_that_reach_back_over_others_count_with_them() -> None:
    alone, unknown = Commit(1, 10, 10), Commit(2, 20)
    healed = [Commit(3, 40, 30), Commit(4, 50, 30), Commit(6, 60, 30)]
    after = Commit(7, 70, 61)
    found = list(together([alone, unknown, *healed, after]))
    assert found == [(alone,), (unknown,), tuple(healed), (after,)]
    assert list(together([])) == []


# ── generations ───────────────────────────────────────────────────────────────────────────────────────────────────────

FIRST, SECOND = Swapped(1, 50, 40), Swapped(2, 70, 70)


@pytest.mark.parametrize(
    ("lower", "upper", "parts"),
    [
        (20, 30, [Piece(1, 20, 30)]),
        (20, 50, [Piece(1, 20, 50)]),
        (20, 51, [Piece(1, 20, 50), Turn(50, 1, 39, 2)]),
        (50, 60, [Turn(50, 1, 39, 2), Piece(2, 51, 60)]),
        (51, 71, [Piece(2, 51, 70), Turn(70, 2, 69, 3)]),
        (20, 90, [Piece(1, 20, 50), Turn(50, 1, 39, 2), Piece(2, 51, 70), Turn(70, 2, 69, 3), Piece(3, 71, 90)]),
        (71, 90, [Piece(3, 71, 90)]),
        (50, 50, []),
        (80, 80, []),
    ],
)
def test_a_stream_goes_over_all_generations(lower: int, upper: int, parts: list[Piece | Turn]) -> None:
    assert stretches(lower, upper, [SECOND, FIRST], 3) == parts


def test_a_generation_that_stopped_before_its_swap_leaves_a_gap() -> None:
    assert SECOND.gap is None
    gap = FIRST.gap
    assert gap is not None
    assert [cut for cut in range(38, 53) if gap.holds(cut)] == list(range(41, 51))
    assert gap.nearest == (40, 51)
