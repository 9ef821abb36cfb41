"""Differences between what is upstream and what was found, against a model that looks at one offset at a time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.storage.comparison import Difference, Rows, Sums, differences, first_of
from airflow_provider_mzshare.storage.fanout.hashing import hash_table, row_hash

SCHEMA = pa.schema(
    [("n", pa.int64()), ("_mz_tick", pa.int64()), ("_mz_partition", pa.int32()), ("_mz_offset", pa.int64())]
)
Row = tuple[str, int, int]
"""Collection, offset, value."""


def table(rows: list[Row], role: str, tick: int) -> pa.Table:
    system = {"_mz_tick": tick, "_mz_partition": 3}
    own = [{"n": value, **system, "_mz_offset": offset} for where, offset, value in rows if where == role]
    return pa.Table.from_pylist(own, SCHEMA)


def rows_of(rows: list[Row], *, tick: int = 1, size: int = 2) -> Rows:
    parts = {role: table(rows, role, tick).to_batches(max_chunksize=size) for role in ("data", "errors")}
    return Rows.of(parts, PARTITIONED, row_hash(1))


def expected(upstream: list[Row], found: list[Row]) -> Difference | None:
    for offset in range(8):
        wanted = [row for row in upstream if row[1] == offset]
        there = [row for row in found if row[1] == offset]
        if len(there) > 1:
            return Difference((offset,), "double")
        if wanted != there:
            what = "missing" if not there else "differs" if wanted else "not upstream"
            return Difference((offset,), what)
    return None


row = st.tuples(st.sampled_from(["data", "errors"]), st.integers(0, 7), st.integers(0, 2))


@settings(max_examples=300, deadline=None)
@given(st.lists(row, unique_by=lambda each: each[1]), st.lists(row, max_size=3), st.data())
def test_the_first_difference_is_that_of_a_look_at_each_offset(
    upstream: list[Row], more: list[Row], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(upstream), unique=True)) if upstream else []
    found = kept + more
    kinds = differences(rows_of(sorted(upstream, key=lambda each: each[1])), rows_of(found, tick=2), PARTITIONED)
    assert first_of(kinds) == expected(upstream, found)


def test_equal_rows_are_equal_whatever_their_order_batches_and_ticks() -> None:
    rows: list[Row] = [("data", 1, 5), ("errors", 2, 5), ("data", 3, 5)]
    assert differences(rows_of(rows), rows_of(rows[::-1], tick=9, size=1), PARTITIONED) == {}
    assert differences(rows_of([]), rows_of([]), PARTITIONED) == {}


def test_sums_are_those_of_the_collections() -> None:
    rows: list[Row] = [("data", 1, 5), ("errors", 2, 6), ("data", 3, 7)]
    data, errors = (hash_table(table(rows, role, 1)) for role in ("data", "errors"))
    assert rows_of(rows).sums() == Sums(2, 1, data, errors)
    assert rows_of(rows[:1]).sums() + rows_of(rows[1:]).sums() == Sums(2, 1, data, errors)
