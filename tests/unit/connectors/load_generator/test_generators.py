"""Rows of load generators: the same for the same seed, whoever makes which part of them."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.load_generator.generators import OUTPUTS, records
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan, Range, ranges_of
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.load_generator.upstream import plan_of
from airflow_provider_mzshare.connectors.spans import split
from tests.support.generated import EVERY, REFERS, Model, as_value
from tests.support.generated import OUTPUTS as AUCTION

BEGIN = 1_700_000_000_000
SPECS = {
    "counter": LoadGeneratorSpec(generator="counter", tick_interval_ms=250, batch_size=3),
    "auction": LoadGeneratorSpec(generator="auction", seed=7, tick_interval_ms=1_000),
    "key_value": LoadGeneratorSpec(generator="key_value", seed=-1, keys=10, value_size=37, partitions=3, batch_size=5),
}
GOLDEN = {
    "counter": "db8a3b525820e5c56047e80e6724effa33fb9f93ede9354f175950da19d7882a",
    "auction": "b0d499e582e1d195b6882f1a6ff8942c20b79c340daf706800e30464c91f8419",
    "key_value": "b125c07c04a0e97a3b7adaee119d18ad029968e5eda83487e434be3d6b5c204f",
}
"""Of the first 1,000 records of each partition. A change of these loses everybody's sources: see plan.VERSION."""


def plan_for(name: str, **changes: Any) -> GeneratorPlan:
    return plan_of(SPECS[name].model_copy(update=changes), f"loadgen:1:{BEGIN}:00")


def made_tables(plan: GeneratorPlan, *spans: Range) -> dict[int, pa.Table]:
    """By partition: outputs have their own columns."""
    found: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for span in spans:
        found[span.partition] += records(plan, span)
    return {partition: pa.Table.from_batches(batches).combine_chunks() for partition, batches in found.items()}


def made(plan: GeneratorPlan, *spans: Range) -> list[dict[str, Any]]:
    return [row for span in spans for batch in records(plan, span) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", SPECS)
def test_records_are_what_they_always_were(name: str) -> None:
    plan = plan_for(name)
    rows = made(plan, *(Range(partition, 0, 1_000) for partition in plan.partitions))
    told = [[repr(cell) for cell in (*as_json(row["row"]), row["partition"], row["offset"])] for row in rows]
    assert hashlib.sha256(json.dumps(told).encode()).hexdigest() == GOLDEN[name]


def as_json(row: dict[str, Any]) -> tuple[bytes | None, bytes]:
    """The key and the value that it once travelled as."""
    key = row.get("id", row.get("key"))
    return None if key is None else str(key).encode(), as_value(row)


@pytest.mark.parametrize("name", SPECS)
def test_the_model_in_plain_python_makes_the_same(name: str) -> None:
    plan, model = plan_for(name), Model(SPECS[name], BEGIN)
    for partition in plan.partitions:
        for lower in (0, 19_990, 123_456_789_000):
            for row in made(plan, Range(partition, lower, lower + 300)):
                assert row["row"] == model.row(partition, row["offset"])
                assert int(row["timestamp"].timestamp() * 1000) == model.time_ms(row["offset"])


@pytest.mark.parametrize("name", SPECS)
def test_any_split_of_a_range_gives_the_same_records(name: str) -> None:
    plan, chance = plan_for(name), random.Random(5)
    lower = {p: chance.randrange(100) for p in plan.partitions}
    upper = {p: lower[p] + chance.randrange(45_000) for p in plan.partitions}
    whole = made_tables(plan, *(Range(p, lower[p], upper[p]) for p in plan.partitions))
    for tasks in (1, 2, 3, 7):
        parts = split(ranges_of(lower, upper), tasks)
        assert len(parts) <= tasks
        assert made_tables(plan, *(span for part in parts for span in part)) == whole
    cut = sorted(chance.sample(range(lower[0], upper[0]), 3))
    pieces = [Range(0, a, b) for a, b in pairwise([lower[0], *cut, upper[0]])]
    assert made_tables(plan, *pieces) == {0: whole[0]}


def test_another_seed_makes_other_records_and_the_same_shape() -> None:
    one, other = (made(plan_for("auction", seed=seed), Range(4, 0, 500)) for seed in (1, 2))
    assert [row["offset"] for row in one] == [row["offset"] for row in other]
    assert sum(a["row"] == b["row"] for a, b in zip(one, other, strict=True)) < 5


@pytest.mark.parametrize("name", SPECS)
def test_every_record_has_the_columns_that_its_output_tells(name: str) -> None:
    plan = plan_for(name)
    for output in OUTPUTS[name]:
        for partition in output.partitions or plan.partitions:
            for row in made(plan, Range(partition, 0, 50)):
                assert list(row["row"]) == [column for column, _ in output.columns]


def test_what_an_auctions_row_refers_to_is_there_at_every_cut_of_the_stream() -> None:
    """Also in the middle of a step: reading the stream in bits of any size never shows a row without its parents."""
    plan = plan_for("auction", batch_size=7, up_to=300)
    at: dict[int, int] = {}
    known: dict[str, set[int]] = defaultdict(set)
    ends = 0
    while (upper := plan.next_end(at, BEGIN + 10**9, max_records=13)) != at:
        taken = made(plan, *(Range(p, at.get(p, 0), upper[p]) for p in plan.partitions))
        assert 0 < len(taken) <= 13
        rows = [(AUCTION[row["partition"]], row["row"]) for row in taken]
        for output, row in rows:
            known[output].add(row["id"])
        for output, row in rows:
            for (table, column), referred in REFERS.items():
                assert table != output or row[column] in known[referred]
        at, ends = upper, ends + 1
    assert at == dict.fromkeys(range(5), 300)
    assert ends == -(-300 * 5 // 13)


def test_rows_are_updated_and_keep_what_they_refer_to() -> None:
    plan = plan_for("auction")
    for partition, output in enumerate(AUCTION):
        versions: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in made(plan, Range(partition, 0, 4_000)):
            fields = row["row"]
            versions[fields["id"]].append(fields)
        assert sorted(versions) == list(range(1, 4_000 // EVERY[output] + 1)), "no id is left out"
        updated = [each for each in versions.values() if len(each) > 1]
        assert bool(updated) == (output != "bids")
        assert any(each[0] != each[-1] for each in updated) or output == "bids"
        fixed = [column for table, column in REFERS if table == output]
        assert all(len({tuple(v[c] for c in fixed) for v in each}) == 1 for each in versions.values())


def test_keys_and_values_have_the_numbers_and_sizes_asked_for() -> None:
    plan = plan_for("key_value", keys=20, value_size=1_000, partitions=2)
    for partition in plan.partitions:
        rows = [row["row"] for row in made(plan, Range(partition, 0, 500))]
        own = set(range(20 * partition, 20 * (partition + 1)))
        assert [row["key"] for row in rows[:20]] == sorted(own), "first each of them once"
        assert {row["key"] for row in rows[20:]} == own
        assert {len(row["value"]) for row in rows} == {1_000}
        assert len({row["value"] for row in rows}) == 500


@pytest.mark.parametrize("name", SPECS)
def test_speed(name: str) -> None:
    plan = plan_for(name, value_size=16)
    for partition in plan.partitions[:1] if name != "auction" else plan.partitions:
        began = time.perf_counter()
        count = sum(batch.num_rows for batch in records(plan, Range(partition, 0, 200_000)))
        print(f"{name} {partition}: {count / (time.perf_counter() - began):,.0f} records a second")
        assert count == 200_000
