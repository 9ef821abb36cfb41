"""Parts of a range: nothing is left out, nothing is in two parts."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate
from airflow_provider_mzshare.control.lifecycle.upstream_parts import cut
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope, Segment
from airflow_provider_mzshare.core.positions import Position

SOURCE: Any = SimpleNamespace(place=PARTITIONED)


def scope(lower: Position, upper: Position, certificate: Certificate | None) -> Scope:
    unused: Any = None
    return Scope(SOURCE, unused, unused, lower, upper, upper, certificate)


def certificate(start: Position, cutover: Position) -> Certificate:
    values = {field.name: None for field in fields(Certificate)}
    return Certificate(**{**values, "start": start, "cutover": cutover})  # type: ignore[arg-type]


def test_segments_are_cut_where_the_backfill_began_and_ended() -> None:
    found = scope(
        Position({0: 2}), Position({0: 20, 1: 9, 2: 4}), certificate(Position({0: 5, 2: 4}), Position({0: 15, 1: 9}))
    ).segments()
    assert found == [
        Segment(0, 2, 5), Segment(0, 5, 15, True), Segment(0, 15, 20), Segment(1, 0, 9, True), Segment(2, 0, 4),
    ]  # fmt: skip


def test_without_a_certificate_a_partition_is_one_segment() -> None:
    assert scope(Position({0: 3, 1: 4}), Position({0: 3, 1: 9}), None).segments() == [Segment(1, 4, 9)]


def test_a_table_of_some_partitions_has_nothing_to_prove_or_to_show_in_the_others() -> None:
    upper = Position({0: 3, 1: 4, 2: 5})
    table: Any = SimpleNamespace(start=Position({1: 1}))
    unused: Any = None
    found = Scope(SOURCE, table, unused, Position(), upper, upper, None, partitions=(1, 2))
    assert found.segments() == [Segment(1, 0, 4), Segment(2, 0, 5)]
    assert found.covered() == {1: (1, 4), 2: (0, 5)}, "a row of partition 0 would be a stray"


@given(
    st.lists(st.integers(0, 60), unique=True).map(sorted),
    st.integers(1, 7),
    st.integers(1, 20),
    st.sampled_from([1, 10_000]),
)
def test_parts_follow_each_other_and_keep_every_record(offsets: list[int], batch: int, part: int, size: int) -> None:
    table = pa.table({"offset": pa.array(offsets, pa.int64())})
    parts = list(cut(table.to_batches(max_chunksize=batch), 0, 61, "offset", offsets=part, size=size))
    edges = [(lower, upper) for lower, upper, _ in parts]
    assert edges[0][0] == 0
    assert edges[-1][1] == 61
    assert all(before[1] == after[0] for before, after in pairwise(edges))
    for lower, upper, records in parts:
        own = [offset for each in records for offset in each.column("offset").to_pylist()]
        assert own == [offset for offset in offsets if lower <= offset < upper]


@pytest.mark.parametrize("upper", [5, 9])
def test_a_range_without_records_is_one_part(upper: int) -> None:
    assert list(cut([], 0, upper, "offset")) == [(0, upper, [])]
