"""Dates and times that Python cannot hold, written as PostgreSQL writes them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.storage.collections.values import far_text, python_rows, with_texts

SECOND = 1_000_000
LAST = 253_402_300_799 * SECOND + 999_999
FIRST = -62_135_596_800 * SECOND


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (LAST + 1, "10000-01-01 00:00:00+00"),
        (LAST + 1 + SECOND // 2, "10000-01-01 00:00:00.5+00"),
        (FIRST - 1, "0001-12-31 23:59:59.999999+00 BC"),
        (-210_866_803_200 * SECOND, "4714-11-24 00:00:00+00 BC"),
        (9_223_372_036_854_775_807, "294247-01-10 04:00:54.775807+00"),
        (-9_223_372_036_854_775_808, "290309-12-21 19:59:05.224192+00 BC"),
    ],
)
def test_times_beyond_pythons(micros: int, text: str) -> None:
    aware, plain = (pa.array([micros], pa.timestamp("us", zone)) for zone in ("UTC", None))
    assert python_rows(pa.record_batch({"t": aware})) == [{"t": text}]
    assert python_rows(pa.record_batch({"t": plain})) == [{"t": text.replace("+00", "")}]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (2_932_897, "10000-01-01"),
        (-719_163, "0001-12-31 BC"),
        (-719_528, "0001-01-01 BC"),
        (2**31 - 1, "5881580-07-11"),
    ],
)
def test_dates_beyond_pythons(days: int, text: str) -> None:
    assert python_rows(pa.record_batch({"d": pa.array([days], pa.date32())})) == [{"d": text}]


def test_near_ones_stay_what_they_are_also_beside_far_ones() -> None:
    near = dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.timezone.utc)
    stamps = pa.array([near, None, None], pa.timestamp("us", "UTC"))
    mixed = pa.concat_arrays([stamps, pa.array([LAST + 1], pa.timestamp("us", "UTC"))])
    numbers = pa.array([1, 2, None, 4], pa.int64())
    rows = python_rows(pa.record_batch({"t": mixed, "n": numbers}))
    assert rows == [
        {"t": near, "n": 1}, {"t": None, "n": 2}, {"t": None, "n": None}, {"t": "10000-01-01 00:00:00+00", "n": 4},
    ]  # fmt: skip
    texts = with_texts(pa.record_batch({"t": mixed, "n": numbers}))
    assert texts.column("t").to_pylist() == ["2024-02-29 12:00:00.000000Z", None, None, "10000-01-01 00:00:00+00"]
    assert texts.column("n") == numbers


@given(st.datetimes())
def test_the_text_is_pythons_own_where_python_has_one(moment: dt.datetime) -> None:
    told = far_text(pa.scalar(moment, pa.timestamp("us")))
    date, time = told.split(" ")
    assert date == f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    assert dt.time.fromisoformat(f"{time}000000"[:15] if "." in time else time) == moment.time()
