"""Several ticks in one pass: every row as if its own tick had been executed alone."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from tests.unit.storage.fanout.records import MICROS, batch_of, member

FIRST = 5
ENDS = {"0": (10, 10, 12), "1": (0, 0, 4)}
"""Ticks 5 to 8: partition 1 comes with tick 7, tick 6 is empty."""
VALUES = [b'{"a":1}', b'{"a":2}', b'{"a":"bad"}', b"oops", b"{}"]


def numbers(partition: int, offsets: list[int]) -> list[int]:
    batch = batch_of([None] * len(offsets), partition=partition)
    batch = batch.set_column(3, "offset", pa.array(offsets, pa.int64()))
    return TickNumbers(FIRST, ENDS).of(batch).tolist()


def test_the_tick_of_a_row_is_the_one_whose_range_holds_its_offset():
    assert numbers(0, [0, 9, 10, 11, 12, 99]) == [5, 5, 7, 7, 8, 8]
    assert numbers(1, [0, 3, 4]) == [7, 7, 8]


def test_partitions_may_be_mixed_in_a_batch_in_any_order():
    rows = pa.Table.from_batches([batch_of([None] * 14), batch_of([None] * 6, partition=1)])
    mixed = rows.take(np.random.default_rng(1).permutation(20)).combine_chunks().to_batches()[0]
    alone = {partition: numbers(partition, list(range(14))) for partition in (0, 1)}
    places = zip(mixed.column("partition").to_pylist(), mixed.column("offset").to_pylist(), strict=True)
    assert TickNumbers(FIRST, ENDS).of(mixed).tolist() == [alone[partition][offset] for partition, offset in places]


def test_a_record_of_a_partition_that_no_tick_reads_is_no_ticks():
    with pytest.raises(KeyError):
        numbers(2, [0])


def test_rows_up_to_the_tick_a_collection_holds_are_left_out_of_it_alone():
    batch = batch_of([b'{"a":1}', b'{"a":"x"}'] * 7)
    whole = decode_batch(batch, FanoutPlan(FIRST, (member(("a", "bigint")),), ENDS))["u1"]
    table = member(("a", "bigint"), data_after=6, errors_after=7)
    found = decode_batch(batch, FanoutPlan(FIRST, (table,), ENDS))["u1"]
    assert whole.data.batch.column("_mz_offset").to_pylist() == [0, 2, 4, 6, 8, 10, 12]
    assert found.data.batch.select(["_mz_tick", "_mz_offset"]).to_pylist() == [
        {"_mz_tick": 7, "_mz_offset": 10},
        {"_mz_tick": 8, "_mz_offset": 12},
    ]
    assert found.errors.batch.select(["_mz_tick", "_mz_offset"]).to_pylist() == [{"_mz_tick": 8, "_mz_offset": 13}]
    rest = decode_batch(batch.slice(10), FanoutPlan(7, (member(("a", "bigint")),)))["u1"]
    assert found.data.hash == rest.data.hash != whole.data.hash


def test_nothing_is_left_of_a_group_that_is_there():
    table = member(("a", "bigint"), data_after=8, errors_after=8)
    found = decode_batch(batch_of(VALUES), FanoutPlan(FIRST, (table,), ENDS))["u1"]
    assert (found.data, found.errors) == (None, None)


def test_table_that_stops_looks_only_at_rows_that_are_due(tmp_path):
    batches = [batch_of([b'{"a":1}'] * 9 + [b"bad"] + [b'{"a":1}'] * 3 + [b"worse"])]
    paths = {"data_path": str(tmp_path), "errors_path": str(tmp_path)}

    def run(after: int):
        table = member(("a", "bigint"), stop_on_error=True, data_after=after, errors_after=after, **paths)
        out = write_partition(iter(batches), FanoutPlan(FIRST, (table,), ENDS).to_json())
        return merge_results(row for batch in out for row in batch.to_pylist())["u1"]

    assert run(0).first_error_at == (0, 9)
    assert run(5).first_error_at == (0, 13)
    batches = [batches[0].slice(0, 13)]
    assert (run(5).first_error_at, run(5).rows("data")) == (None, 3)


def test_a_file_of_a_group_says_which_ticks_it_spans(tmp_path):
    table = member(format="bytes", data_path=str(tmp_path))
    out = write_partition(iter([batch_of([b"x"] * 14)]), FanoutPlan(FIRST, (table,), ENDS).to_json())
    row = next(out).to_pylist()[0]
    stats = json.loads(row["stats"])
    assert (stats["minValues"]["_mz_tick"], stats["maxValues"]["_mz_tick"]) == (5, 8)
    assert row["path"].startswith("part-5-")
    assert set(pq.read_table(tmp_path / row["path"]).column("_mz_tick").to_pylist()) == {5, 7, 8}


# ── a group is the union of its ticks ─────────────────────────────────────────────────────────────────────────────────

STEPS = st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=7)
TABLES = (
    member(("a", "bigint"), id="u1"),
    member(id="u2", include=(("offset", "o"),)),
    member(format="text", id="u3"),
)


@given(STEPS, st.lists(st.integers(0, 3), min_size=3, max_size=3), st.data())
@settings(max_examples=30, deadline=None)
def test_a_group_gives_row_for_row_and_hash_for_hash_what_its_ticks_give(steps, start, data):
    group = group_of(steps, start)
    records = pa.Table.from_batches([batch_of_range(group.lower, group.upper)]).combine_chunks()
    chosen = np.random.default_rng(len(records)).permutation(len(records))
    batch = (records.take(chosen).combine_chunks().to_batches() or [batch_of([])])[0]
    after = data.draw(st.integers(0, group.number))
    tables = tuple(replace(table, data_after=after) for table in TABLES)

    found = decode_batch(batch, FanoutPlan(group.first.number, tables, group.ends()))

    for table in TABLES:
        for role, first in (("data", after + 1), ("errors", 1)):
            single = [one_tick(tick, table, role) for tick in group.ticks if tick.number >= first]
            rows = [row for part in single if part for row in part.batch.to_pylist()]
            total = sum(part.hash for part in single if part) % MODULUS
            got = getattr(found[table.table_id], role)
            assert sorted(got.batch.to_pylist() if got else [], key=place) == sorted(rows, key=place)
            assert (got.hash if got else 0) == total


def group_of(steps: list[list[int]], start: list[int]) -> TickGroup:
    lower, ticks = Position(dict(enumerate(start))), []
    for number, step in enumerate(steps, start=FIRST):
        upper = Position({partition: lower[partition] + more for partition, more in enumerate(step)})
        ticks.append(Tick(number, lower, upper, mz_timestamp=number))
        lower = upper
    return TickGroup(tuple(ticks))


def one_tick(tick: Tick, table, role: str):
    decoded = decode_batch(batch_of_range(tick.lower, tick.upper), FanoutPlan(tick.number, (table,)))
    return getattr(decoded[table.table_id], role)


def batch_of_range(lower: Position, upper: Position) -> pa.RecordBatch:
    """Every record of a range; what it holds follows from its place."""
    places = [(int(p), offset) for p in upper for offset in range(lower[p], upper[p])]
    rows = [
        {"key": None, "value": VALUES[(3 * p + o) % len(VALUES)], "partition": p, "offset": o, "timestamp": MICROS}
        for p, o in places
    ]
    return pa.RecordBatch.from_pylist(rows, INPUT_SCHEMA)


def place(row: dict[str, int]) -> tuple[int, int]:
    return row["_mz_partition"], row["_mz_offset"]


# ── many ticks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_twenty_thousand_ticks_of_four_partitions_are_a_small_plan_and_cost_little():
    ticks, base = 20_000, 10**12
    rng = np.random.default_rng(2)
    ends = {str(p): tuple((base + np.cumsum(rng.integers(0, 13, ticks - 1))).tolist()) for p in range(4)}
    plan = FanoutPlan(FIRST, (member(format="bytes"),), ends)
    text = plan.to_json()
    assert len(text) < 300_000
    assert FanoutPlan.from_json(text) == plan

    places = TickNumbers(FIRST, ends)
    batch = batch_of([b"x"] * 100_000, partition=3, first=base)
    began = time.process_time()
    found = places.of(batch)
    took = time.process_time() - began
    expected = FIRST + np.searchsorted(np.asarray(ends["3"]), np.arange(base, base + 100_000), side="right")
    assert np.array_equal(found, expected)
    assert took < 0.1, f"{took:.3f} s for 100,000 records"
