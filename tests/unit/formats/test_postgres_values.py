"""Values as Postgres writes them, in bulk and one by one alike. What a type cannot hold is an error of its column."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import TYPES
from airflow_provider_mzshare.formats.base import Batch
from airflow_provider_mzshare.formats.postgres import POSTGRES
from airflow_provider_mzshare.formats.postgres_values import typed

UTC = ZoneInfo("UTC")
YEARS = "outside the years 0001 to 9999"
TOO_LARGE = ValueError("out of range for numeric(38,0)")
CASES: dict[str, dict[str, Any]] = {
    "boolean": {"t": True, "f": False, "true": ValueError("not a boolean"), "": ValueError("not a boolean")},
    "smallint": {"-32768": -32768, "32767": 32767, "32768": ValueError("out of range for smallint")},
    "integer": {"0": 0, "-2147483648": -(2**31), "0x10": ValueError("no integer")},
    "bigint": {
        "9223372036854775807": 2**63 - 1,
        "9223372036854775808": ValueError("out of range for bigint"),
        "9" * 5000: ValueError("out of range for bigint"),
        "1.0": ValueError("no bigint"),
    },
    "real": {"0.1": 0.10000000149011612, "3.4028235e+38": 3.4028234663852886e38, "-0": -0.0, "1e-45": 2**-149,
             "Infinity": math.inf, "1e39": ValueError("out of range for real"), "nan": ValueError("no real")},
    "double": {"1e+20": 1e20, "5e-324": 5e-324, "1.0000000000000002": 1.0000000000000002, "-Infinity": -math.inf,
               "1e400": ValueError("out of range for double"), "inf": ValueError("no double")},
    "numeric(5,2)": {
        "1.5": Decimal("1.50"), "-999.99": Decimal("-999.99"), "0.00": Decimal("0.00"), "1.500": Decimal("1.50"),
        "1.005": ValueError("more than 2 digits after the decimal point"),
        "1000": ValueError("out of range for numeric(5,2)"),
        "NaN": ValueError("NaN or infinite, which numeric(5,2) cannot be"),
        "-Infinity": ValueError("NaN or infinite, which numeric(5,2) cannot be"),
        "abc": ValueError("no numeric(5,2)"),
    },
    "numeric(38,0)": {
        "9" * 38: Decimal("9" * 38), "1e60": ValueError("out of range for numeric(38,0)"),
        **dict.fromkeys([digit * n for digit in "19" for n in (39, 40, 41, 77)], TOO_LARGE),
    },
    "text": {"": "", "x y ": "x y ", "é😀": "é😀", "NaN": "NaN"},
    "date": {
        "2024-02-29": date(2024, 2, 29), "0001-01-01": date(1, 1, 1), "9999-12-31": date(9999, 12, 31),
        "0044-03-15 BC": ValueError(YEARS), "10000-01-01": ValueError(YEARS), "5874897-12-31": ValueError(YEARS),
        "infinity": ValueError("infinite, which no date is here"), "2023-02-29": ValueError("no such date"),
        "2024-2-9": ValueError("no date"),
    },
    "timestamp": {
        "2024-01-02 03:04:05": datetime(2024, 1, 2, 3, 4, 5),
        "2024-01-02 03:04:05.1": datetime(2024, 1, 2, 3, 4, 5, 100000),
        "1582-10-15 23:59:59.999999": datetime(1582, 10, 15, 23, 59, 59, 999999),
        "4714-11-24 00:00:00 BC": ValueError(YEARS), "294276-12-31 23:59:59.999999": ValueError(YEARS),
        "-infinity": ValueError("infinite, which no timestamp is here"),
        "2024-01-02 03:04:05+00": ValueError("no timestamp"),
    },
    "timestamptz": {
        "2024-01-02 03:04:05+00": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        "2024-01-02 03:04:05.000001+05:30": datetime(2024, 1, 1, 21, 34, 5, 1, tzinfo=UTC),
        "1800-01-01 00:00:00-00:01:15": datetime(1800, 1, 1, 0, 1, 15, tzinfo=UTC),
        "9999-12-31 23:59:59.999999+00": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "0001-01-01 00:00:00+01": ValueError(YEARS), "10000-01-01 00:00:00+00": ValueError(YEARS),
        "infinity": ValueError("infinite, which no timestamptz is here"),
        "2024-01-02 03:04:05": ValueError("no timestamptz"),
    },
    "bytea": {"\\x": b"", "\\x00ff10": b"\0\xff\x10", "\\xABCD": ValueError("not bytea in hex"),
              "\\x0": ValueError("not bytea in hex"), "abc": ValueError("not bytea in hex")},
    "jsonb": {
        '{"b": 1, "a": [1.10, null]}': '{"b":1,"a":[1.10,null]}', "null": "null", '"x"': '"x"',
        '{"a": 1, "a": 2}': '{"a":2}', "1" * 700: "1" * 700,
        "[" * 200 + "]" * 200: ValueError("nested deeper than 128 levels"),
        '"\\ud800"': ValueError("half of a surrogate pair, which is no character"), "{": ValueError("not valid JSON"),
    },
}  # fmt: skip
CELLS = [(kind, text, wanted) for kind, cases in CASES.items() for text, wanted in cases.items()]


def test_all_types_are_here() -> None:
    assert {kind.partition("(")[0] for kind in CASES} == set(TYPES)


@pytest.mark.parametrize("kind", CASES)
def test_good_and_bad_values_side_by_side(kind: str) -> None:
    texts = [None, *CASES[kind], None]
    column = typed(pa.array(texts), kind)
    assert column.values.type == arrow_type(kind)
    column.values.validate(full=True)
    for row, (text, got) in enumerate(zip(texts, column.values.to_pylist(), strict=True)):
        wanted = None if text is None else CASES[kind][text]
        if isinstance(wanted, ValueError):
            assert (got, column.errors[row]) == (None, str(wanted)), text
        else:
            assert (repr(got), column.errors.get(row)) == (repr(wanted), None), text


@pytest.mark.parametrize("kind", CASES)
def test_good_values_in_bulk_in_any_slice(kind: str) -> None:
    good = {text: wanted for text, wanted in CASES[kind].items() if not isinstance(wanted, ValueError)}
    texts = pa.array([None, *good, *good, None, *good])
    wanted = [None, *good.values(), *good.values(), None, *good.values()]
    for low, high in ((0, len(texts)), (1, 3), (2, len(texts) - 1), (0, 0), (0, 1)):
        column = typed(texts.slice(low, high - low), kind)
        assert column.errors == {}
        assert column.values.type == arrow_type(kind)
        column.values.validate(full=True)
        assert list(map(repr, column.values.to_pylist())) == list(map(repr, wanted[low:high]))


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(CASES)),
    texts=st.lists(
        st.one_of(
            st.none(),
            st.sampled_from([text for _, text, _ in CELLS]),
            st.text('0123456789-+:. eEtfxBCNaninfy\\{}[],"', max_size=12),
        ),
        min_size=1,
        max_size=250,
    ),
)
def test_no_value_depends_on_its_neighbours(kind: str, texts: list[str | None]) -> None:
    together = typed(pa.array(texts, pa.string()), kind)
    for row, text in enumerate(texts):
        (alone,), errors = typed(pa.array([text], pa.string()), kind)
        assert repr(together.values[row].as_py()) == repr(alone.as_py()), text
        assert together.errors.get(row) == errors.get(0)


def test_errors_name_the_column_and_text_that_is_no_utf8_is_one() -> None:
    rows = pa.StructArray.from_arrays([pa.array([b"1", b"x", None]), pa.array([b"a", b"\xff", b""])], names=["n", "s"])
    nothing = pa.nulls(3, pa.binary())
    records = Batch(pa.RecordBatch.from_arrays([nothing, nothing], names=["key", "value"]), rows)
    reading = POSTGRES.reader([])(records)
    assert reading.field("n", "integer", as_text=False).errors == {1: 'field "n": no integer'}
    texts = reading.field("s", "text", as_text=False)
    assert (texts.values.to_pylist(), texts.errors) == (["a", None, ""], {1: 'field "s": invalid UTF-8 at byte 0'})
