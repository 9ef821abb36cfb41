from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import TYPES
from airflow_provider_mzshare.formats import columns
from airflow_provider_mzshare.formats.columns import convert, convert_one_by_one
from airflow_provider_mzshare.formats.jsontext import JsonParser

ALL_TYPES = [name for name in TYPES if name != "numeric"] + ["numeric(5,2)", "numeric(38,0)", "numeric(38,38)"]

edges = [2**15, 2**31, 2**53 + 1, 2**63, 2**64, 10**38]
whole = st.one_of(st.integers(), st.sampled_from([sign * n + d for n in edges for sign in (1, -1) for d in (-1, 0, 1)]))
fractions = st.builds(
    lambda sign, a, b, e: f"{sign}{a}.{b:03}" + (f"e{e}" if e else ""),
    st.sampled_from(["", "-"]),
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.sampled_from([0, 0, 0, 2, -3, 30, 38, 39, 400, -400]),
)
stamps = st.builds(
    lambda day, sep, time, fraction, zone: f"{day}{sep}{time}{fraction}{zone}",
    st.sampled_from(["2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "0000-01-01", "2024-1-01", "1969-12-31"]),
    st.sampled_from(["T", " ", "t", ""]),
    st.sampled_from(["00:00:00", "23:59:59", "24:00:00", "12:00", "12:60:00", ""]),
    st.sampled_from(["", ".1", ".123456", ".1234567", "."]),
    st.sampled_from(["", "Z", "+00:00", "-01:30", "+23:59", "+24:00", "+5:00"]),
)
scalars = st.one_of(
    st.none().map(json.dumps),
    st.booleans().map(json.dumps),
    whole.map(str),
    fractions,
    stamps.map(json.dumps),
    st.text().map(json.dumps),
    st.dates().map(lambda d: json.dumps(d.isoformat())),
    st.sampled_from(['"\\ud800"', '"AP8="']),
)
nested = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: "[" + ",".join(each) + "]"),
        st.dictionaries(st.text(max_size=3).map(json.dumps), inner, max_size=3).map(
            lambda each: "{" + ", ".join(f"{k} : {v}" for k, v in each.items()) + "}"
        ),
    ),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(nested, min_size=1, max_size=20), exact=st.booleans())
@pytest.mark.parametrize("type_name", ALL_TYPES)
def test_bulk_and_one_by_one_agree_on_every_value(type_name, texts, exact):
    exact = exact or type_name == "jsonb" or type_name.startswith("numeric")
    values, errors = JsonParser(exact=exact).parse_all(texts)
    assert not errors
    slow, slow_errors = convert_one_by_one(values, type_name)
    slow.validate(full=True)
    for row, value in enumerate(values):
        fast, fast_errors = convert([value], type_name)
        assert fast.type == slow.type == arrow_type(type_name)
        assert list(fast_errors.values()) == [slow_errors[row]] if row in slow_errors else not fast_errors
        assert fast[0] == slow[row]
    together, errors_together = convert(values, type_name)
    assert errors_together == slow_errors
    assert together.equals(slow)
    good = [value for row, value in enumerate(values) if row not in slow_errors]
    fast, none = convert(good, type_name)
    assert not none
    assert fast.to_pylist() == [cell for row, cell in enumerate(slow.to_pylist()) if row not in slow_errors]


@pytest.mark.parametrize(
    "type_name", ["bigint", "double", "real", "text", "numeric(20,4)", "timestamptz", "date", "jsonb"]
)
def test_thousand_good_rows_are_converted_in_bulk_to_the_same_column(type_name, monkeypatch):
    make = {
        "bigint": lambda n: n * 7_919,
        "double": lambda n: n / 7,
        "real": lambda n: n / 3,
        "text": lambda n: f"é{n}" * 3,
        "numeric(20,4)": lambda n: n / 16,
        "timestamptz": lambda n: f"2024-01-02T03:{n % 60:02}:05.{n:06}+01:00",
        "date": lambda n: f"{1 + n * 9:04}-02-{1 + n % 28:02}",
        "jsonb": lambda n: {"n": [n, n / 8]},
    }[type_name]
    texts = [json.dumps(None if n % 11 == 0 else make(n)) for n in range(1_000)]
    values, _ = JsonParser(exact=True).parse_all(texts)
    expected, errors = convert_one_by_one(values, type_name)
    monkeypatch.setattr(columns, "convert_one_by_one", lambda *_: pytest.fail("the bulk path was left"))
    found, none = convert(values, type_name)
    assert found.equals(expected)
    assert not errors
    assert not none
    assert found.null_count == 91
