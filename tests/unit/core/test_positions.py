"""Positions: exclusive uppers per partition, partially ordered, with one JSON for equal ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.core.positions import Position

lanes = st.integers(0, 12).map(str) | st.sampled_from(["lsn", "binlog"])
"""Kafka's partitions, and what a database calls its only one."""
numbers = (
    st.integers(0, 2**62) | st.integers(2**53 - 2, 2**53 + 2) | st.integers(2**63 - 2, 2**64) | st.integers(0, 2**96)
)
positions = st.dictionaries(lanes, numbers, max_size=6).map(Position)


def test_a_missing_partition_is_at_zero() -> None:
    assert Position({"0": 5, "1": 0}) == Position({0: 5})
    assert Position({"0": 5})[7] == 0
    assert Position({"0": 5, "1": 0}).to_json() == '{"0":5}'


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    assert Position({"10": 1, "9": 2, "lsn": 3}).to_json() == '{"9":2,"10":1,"lsn":3}'


def test_positions_may_be_incomparable() -> None:
    one, other = Position({"0": 5, "1": 1}), Position({"0": 4, "1": 2})
    assert not one <= other
    assert not other <= one
    assert one.join(other) == Position({"0": 5, "1": 2})
    assert one.meet(other) == Position({"0": 4, "1": 1})


def test_a_partition_added_later_is_only_more() -> None:
    assert Position({"0": 5}) < Position({"0": 5, "1": 1})
    assert Position({"0": 5, "1": 1}).gap(Position({"0": 3})) == 3


@pytest.mark.parametrize("bad", [-1, 1.5, "1", True, None])
def test_what_is_no_offset_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="whole number"):
        Position({"0": bad})  # type: ignore[dict-item]


@pytest.mark.parametrize("text", ["[]", "1", '"x"'])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON object"):
        Position.from_json(text)


@given(positions)
def test_json_brings_it_back(position: Position) -> None:
    assert Position.from_json(position.to_json()) == position
    assert list(json.loads(position.to_json())) == list(position)


@given(positions, positions, positions)
def test_join_and_meet_are_a_lattice(a: Position, b: Position, c: Position) -> None:
    assert a <= a.join(b)
    assert a.meet(b) <= a
    assert a.join(b) == b.join(a)
    assert a.join(b).join(c) == a.join(b.join(c))
    assert a.join(a.meet(b)) == a
    assert (a <= b) == (a.join(b) == b) == (a.meet(b) == a)


@given(positions, positions)
def test_the_gap_of_a_range_counts_its_offsets(a: Position, b: Position) -> None:
    assert a.join(b).gap(a) == sum(max(0, b[p] - a[p]) for p in b)


@given(positions, positions, positions)
def test_order_is_a_partial_order_whatever_the_lanes_and_however_large(a: Position, b: Position, c: Position) -> None:
    assert a <= a
    assert (a == b) == (a <= b <= a)
    assert (a < b) == (a <= b and a != b) == (b > a)
    if a <= b <= c:
        assert a <= c
        assert c.gap(a) == c.gap(b) + b.gap(a)


@given(positions, positions)
def test_what_lies_between_is_counted_exactly(a: Position, b: Position) -> None:
    meet, join = a.meet(b), a.join(b)
    assert join.gap(meet) == a.gap(meet) + b.gap(meet)
    assert join.total - meet.total == join.gap(meet)
    assert a.gap(join) == 0


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, (9_999_999 << 64) + 154])
def test_large_numbers_are_kept_to_the_last_digit(number: int) -> None:
    position = Position({"lsn": number})
    assert position.to_json() == f'{{"lsn":{number}}}'
    assert Position.from_json(position.to_json())["lsn"] == number
    assert position < Position({"lsn": number + 1})
    assert Position({"lsn": number + 1}).gap(position) == 1


@given(positions, positions, st.integers(1, 60))
def test_a_step_toward_an_end_takes_its_share_of_every_partition_and_comes_there(
    a: Position, b: Position, most: int
) -> None:
    end = a.join(b)
    step = a.toward(end, most)
    assert a <= step <= end
    waiting = [p for p in end if a[p] < end[p]]
    assert all(a[p] < step[p] for p in waiting), "no partition waits for another one that always has more"
    assert step == end or abs(step.gap(a) - most) <= len(waiting), "shares are rounded"
    assert a.toward(b.meet(a), most) == a, "nobody goes back"
