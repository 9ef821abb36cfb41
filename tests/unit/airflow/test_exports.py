"""Rows to files: whole or not at all, and again over what was there."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.hooks.exports import export, file_format

ROWS = pa.table(
    {
        "id": [1, 2],
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "at": [datetime(2026, 1, 1, tzinfo=timezone.utc)] * 2,
        "raw": [b"\x00", b"x"],
    }
)


def test_each_format_holds_the_rows(tmp_path: Path) -> None:
    for _ in range(2):
        for name in ("t.parquet", "t.csv", "t.json"):
            export(
                ROWS.drop_columns(["raw"]) if name == "t.csv" else ROWS, str(tmp_path / "new" / name), file_format(name)
            )
    folder = tmp_path / "new"
    assert pq.read_table(folder / "t.parquet").equals(ROWS)
    lines = [json.loads(line) for line in (folder / "t.json").read_text().splitlines()]
    assert lines[0] == {"id": 1, "price": "1.50", "at": "2026-01-01T00:00:00+00:00", "raw": "\\x00"}
    assert (folder / "t.csv").read_text().splitlines()[1].startswith("1,1.50,2026-01-01")
    assert sorted(os.listdir(folder)) == ["t.csv", "t.json", "t.parquet"]
    assert (folder / "t.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()


def test_rows_are_written_as_they_come_with_times_that_python_cannot_hold(tmp_path: Path) -> None:
    times = pa.array([253_402_300_800_000_000, 0], pa.timestamp("us", "UTC"))
    batches = [pa.record_batch({"n": [1, 2], "at": times}), pa.record_batch({"n": [3, 4], "at": times})]
    for name in ("t.parquet", "t.csv", "t.json"):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
        assert export(reader, str(tmp_path / name), file_format(name)) == 4
    assert pq.read_table(tmp_path / "t.parquet").equals(pa.Table.from_batches(batches))
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        '"n","at"', '1,"10000-01-01 00:00:00+00"', '2,"1970-01-01 00:00:00.000000Z"',
        '3,"10000-01-01 00:00:00+00"', '4,"1970-01-01 00:00:00.000000Z"',
    ]  # fmt: skip
    lines = [json.loads(line)["at"] for line in (tmp_path / "t.json").read_text().splitlines()]
    assert lines == ["10000-01-01 00:00:00+00", "1970-01-01T00:00:00+00:00"] * 2
    nothing = pa.RecordBatchReader.from_batches(batches[0].schema, iter([]))
    assert export(nothing, str(tmp_path / "none.csv"), "csv") == 0
    assert (tmp_path / "none.csv").read_text() == '"n","at"\n'


def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old")
    with pytest.raises(pa.ArrowInvalid):
        export(pa.table({"nested": [[1, 2]]}), str(target), "csv")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_the_format_is_told_or_named(tmp_path: Path) -> None:
    assert file_format("x.CSV") == "csv"
    assert file_format("x", "Parquet") == "parquet"
    with pytest.raises(TerminalError, match="parquet, csv, json"):
        file_format("x.txt")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
