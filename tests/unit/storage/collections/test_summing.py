"""Changes are added up as a counter does it, however little memory there is for them."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.storage.collections.summing import DIFF, Sum

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string()), (DIFF, pa.int64())])


def batch(rows: list[tuple[int | None, str | None, int]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def left(total: Sum) -> dict[tuple[object, ...], int]:
    found: dict[tuple[object, ...], int] = {}
    for one in total.batches():
        for *row, diff in zip(*(column.to_pylist() for column in one.columns), strict=True):
            assert tuple(row) not in found, "one row twice"
            found[tuple(row)] = diff
    return found


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("limit", [100, 1_000, 10_000, 1 << 20])
@pytest.mark.parametrize("distinct", [1, 40, 3_000])
def test_what_is_left_is_what_a_counter_has(scratch: Path, limit: int, distinct: int) -> None:
    dice, counted = random.Random(limit + distinct), Counter[tuple[object, ...]]()
    with Sum(SCHEMA, limit=limit) as total:
        for _ in range(25):
            rows = []
            for _ in range(dice.randrange(200)):
                number = dice.randrange(distinct)
                row = (number if number % 7 else None, None if number % 5 == 1 else f"text {number}")
                diff = dice.choice((-1, 1, 2))
                counted[row] += diff
                rows.append((*row, diff))
            total.add(batch(rows))
        spilled = any(scratch.iterdir())
        assert left(total) == {row: count for row, count in counted.items() if count}
    assert spilled == (distinct > 1 and limit <= (10_000 if distinct > 1_000 else 1_000))
    assert not any(scratch.iterdir()), "files are left"


def test_many_changes_of_one_row_need_the_room_of_one(scratch: Path) -> None:
    with Sum(SCHEMA, limit=1_000) as total:
        for _ in range(200):
            total.add(batch([(1, "x", 1)] * 50))
        assert not any(scratch.iterdir())
        assert left(total) == {(1, "x"): 10_000}


def test_a_row_larger_than_the_limit_is_added_up_all_the_same(scratch: Path) -> None:
    long = "x" * 5_000
    with Sum(SCHEMA, limit=1_000) as total:
        for diff in (1, -1, 1):
            total.add(batch([(1, long, diff), (2, long, diff)]))
        assert left(total) == {(1, long): 1, (2, long): 1}


@pytest.mark.parametrize("limit", [50, 1 << 20])
def test_values_of_every_type_are_compared(scratch: Path, limit: int) -> None:
    values = {
        "boolean": (True, False), "smallint": (1, 2), "integer": (1, 2), "bigint": (1, 2), "real": (1.5, 2.5),
        "double": (1.5, float("inf")), "numeric(10,2)": (Decimal("1.50"), Decimal("2.50")), "text": ("a", ""),
        "bytea": (b"a", b""), "date": (1, 2), "timestamp": (1, 2), "timestamptz": (1, 2), "jsonb": ("1", "2"),
    }  # fmt: skip
    schema = pa.schema([*((name, arrow_type(name)) for name in values), (DIFF, pa.int64())])
    with Sum(schema, limit=limit) as total:
        for row, diff in ((0, 1), (1, 1), (None, 1), (1, -1), (None, 1)):
            columns = [
                pa.array([None if row is None else pair[row]], arrow_type(name)) for name, pair in values.items()
            ]
            total.add(pa.RecordBatch.from_arrays([*columns, pa.array([diff], pa.int64())], schema=schema))
        found = pa.Table.from_batches(total.batches(), schema).sort_by("boolean")
    assert found.column(DIFF).to_pylist() == [1, 2]
    assert [column[1].as_py() for column in found.columns[:-1]] == [None] * len(values)


def test_nothing_is_left_of_nothing_and_of_no_columns_a_number(scratch: Path) -> None:
    with Sum(SCHEMA) as total:
        assert left(total) == {}
    none = pa.schema([(DIFF, pa.int64())])
    with Sum(none) as total:
        for diffs in ([1, 1], [-1]):
            total.add(pa.RecordBatch.from_arrays([pa.array(diffs, pa.int64())], schema=none))
        assert [batch.to_pydict() for batch in total.batches()] == [{DIFF: [1]}]
