"""Where a range of positions is, by what the segments of a journal say."""

from __future__ import annotations

from airflow_provider_mzshare.core.journal.positions import Slice, slices
from airflow_provider_mzshare.core.journal.state import Segment


def segment(epoch: int, number: int, low: int | None, boundary: int | None) -> Segment:
    at = epoch * 100 + number * 10
    return Segment(0, epoch, number, at, at if low is None else at + 10, 100, 0, 100, low=low, boundary=boundary)


def test_a_range_takes_what_it_needs_of_each_segment() -> None:
    one, two, beyond = segment(1, 1, 100, 200), segment(1, 2, 200, 300), segment(1, 3, 300, 400)
    assert slices([one, two, beyond], 150, 300) == [Slice(one, 150, 300), Slice(two, 150, 300)]


def test_what_an_epoch_left_behind_its_last_boundary_does_not_count_once_another_follows() -> None:
    one, tail, after = segment(1, 1, 100, 200), segment(1, 2, 250, 200), segment(2, 1, 250, 300)
    assert slices([one, tail], 100, 200) == [Slice(one, 100, 200)]
    assert slices([one, tail, after], 100, 300) == [Slice(one, 100, 200), Slice(after, 100, 300)]


def test_a_segment_counts_up_to_the_last_boundary_of_its_epoch() -> None:
    begun, ended, after = segment(1, 1, 100, None), segment(1, 2, 100, 200), segment(2, 1, 210, 300)
    assert slices([begun, ended, after], 100, 300) == [
        Slice(begun, 100, 200),
        Slice(ended, 100, 200),
        Slice(after, 100, 300),
    ]


def test_an_epoch_without_a_boundary_has_nothing() -> None:
    begun, after = segment(1, 1, 100, None), segment(2, 1, 100, 200)
    assert slices([begun, after], 50, 200) == [Slice(after, 50, 200)]


def test_segments_without_messages_only_carry_boundaries() -> None:
    one, idle, after = segment(1, 1, 100, 200), segment(1, 2, None, 260), segment(2, 1, 300, 400)
    assert slices([one, idle, after], 100, 400) == [Slice(one, 100, 260), Slice(after, 100, 400)]
