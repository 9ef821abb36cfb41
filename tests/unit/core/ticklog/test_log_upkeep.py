"""Which entries are part of a log, and what maintenance may remove of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_mzshare.core.ticklog.log_upkeep import log_part, log_removals, may_go_unnamed


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


def test_the_log_goes_below_a_checkpoint_that_since_has_passed() -> None:
    assert log_removals(range(8), (2, 4, 6), keep_from=5) == ((2,), (0, 1, 2, 3))
    assert log_removals(range(8), (2, 4, 6), keep_from=5, is_usable=lambda version: version != 4) == ((), (0, 1))
    assert log_removals(range(8), (6,), keep_from=5) == ((), ())


@pytest.mark.parametrize(
    ("hours", "newest", "may_go"), [(24, 8, True), (24, 7, False), (23, 8, False)], ids=["passed", "still", "young"]
)
def test_unnamed_files_go_once_the_log_has_gone_on(hours: int, newest: int, may_go: bool) -> None:
    day = timedelta(hours=24)
    assert may_go_unnamed(timedelta(hours=hours), min_age=day, newest_when_listed=7, newest=newest) is may_go
