"""What is part of a log, what maintenance may remove of it, and that the one never takes from the other."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.core.ticklog.log_upkeep import log_part, log_removals, may_go_unnamed

DAY = timedelta(days=1)


def test_all_below_the_newest_checkpoint_that_serves_the_oldest_reader_goes_oldest_first() -> None:
    removals = log_removals([3, 1, 2, 4, 5, 6, 7], [6, 2, 4], keep_from=5)
    assert removals.checkpoints == (2,)
    assert removals.entries == (1, 2, 3)


def test_nothing_goes_without_a_checkpoint_that_serves_the_oldest_reader() -> None:
    assert log_removals(range(9), [], keep_from=8) == ((), ())
    assert log_removals(range(9), [5], keep_from=4) == ((), ())
    assert log_removals(range(9), [5], keep_from=5).entries == (0, 1, 2, 3, 4)


def test_a_checkpoint_that_is_not_whole_serves_nobody() -> None:
    removals = log_removals(range(9), [3, 6], keep_from=8, is_usable=lambda version: version != 6)
    assert removals == ((), (0, 1, 2))


@pytest.mark.parametrize(
    ("entries", "checkpoints", "part"),
    [
        ((0, 1, 2), (), (0, 1, 2)),
        ((0, 1, 2), (1, 2), (0, 1, 2)),  # nothing was removed
        ((2, 3, 4), (2, 4), (3, 4)),
        ((1, 3, 4), (3,), (4,)),  # 1 has come into a hole
        ((2, 3, 4), (3,), (4,)),  # and 2, which touches what is above it
        ((0, 1, 3, 4), (3,), (3, 4)),
        ((3, 4), (), ()),
        ((7, 8, 9), (6, 8), (9,)),  # the writer of 6 has slept until its entry was gone
        ((7, 8, 9), (7, 8), (8, 9)),  # and that of 7 until a sleeper's entry stood there
    ],
)
def test_entries_in_holes_are_no_part_of_the_log(
    entries: tuple[int, ...], checkpoints: tuple[int, ...], part: tuple[int, ...]
) -> None:
    assert log_part(entries, checkpoints) == frozenset(part)


@given(newest=st.integers(0, 12), data=st.data())
def test_a_removal_that_ends_anywhere_leaves_what_readers_need_and_makes_late_entries_no_part(
    newest: int, data: st.DataObject
) -> None:
    checkpoints = data.draw(st.sets(st.integers(0, newest)))
    keep_from = data.draw(st.integers(0, newest))
    removals = log_removals(range(newest + 1), checkpoints, keep_from=keep_from)
    base = max((version for version in checkpoints if version <= keep_from), default=0)
    steps = [*removals.checkpoints, *removals.entries]
    done = data.draw(st.integers(0, len(steps)))
    gone = set(removals.checkpoints[:done])
    left_checkpoints = checkpoints - gone
    removed = removals.entries[: max(0, done - len(removals.checkpoints))]
    entries = set(range(newest + 1)) - set(removed)
    assert set(range(base + 1, newest + 1)) <= log_part(entries, left_checkpoints), (
        "a version cannot be loaded any more"
    )
    if late_ones := [version for version in removed if version]:  # Entry 0 makes the table: no plan is put there.
        late = data.draw(st.sampled_from(late_ones))
        assert late not in log_part(entries | {late}, left_checkpoints), "who slept has succeeded in the hole"


def test_what_no_entry_names_goes_when_it_is_old_and_its_only_slot_is_taken() -> None:
    old, young = 2 * DAY, DAY / 2
    assert may_go_unnamed(old, min_age=DAY, newest_when_listed=5, newest=6)
    assert may_go_unnamed(DAY, min_age=DAY, newest_when_listed=5, newest=6)
    assert not may_go_unnamed(old, min_age=DAY, newest_when_listed=5, newest=5)
    assert not may_go_unnamed(young, min_age=DAY, newest_when_listed=5, newest=9)
