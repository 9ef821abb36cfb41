"""Positions: exclusive uppers per partition, partially ordered, with one JSON for equal ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.core.positions import Position

positions = st.dictionaries(st.integers(0, 12).map(str), st.integers(0, 2**62), max_size=6).map(Position)


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
