"""Hashes of keys: the same for the same keys in whatever form Arrow holds them, others for other keys."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.storage.collections.vectors.key_hashes import LONG, key_hashes

TEXTS = st.lists(st.none() | st.text(max_size=20) | st.sampled_from(["", "x" * LONG, "x" * (LONG + 1), "é" * 90]))


def hashes(*columns: pa.Array | pa.ChunkedArray) -> list[int]:
    return key_hashes(pa.table(list(columns), [f"c{number}" for number in range(len(columns))])).tolist()


@given(values=TEXTS, cut=st.integers(0, 30))
def test_texts_have_the_same_hash_in_every_form(values: list[str | None], cut: int) -> None:
    plain = pa.array(values, pa.string())
    wanted = hashes(plain)
    beside = pa.concat_arrays([pa.array(["before", None], pa.string()), plain, pa.array(["after"], pa.string())])
    forms = [
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.cast(pa.binary()),
        plain.cast(pa.large_binary()),
        plain.dictionary_encode(),
        beside.slice(2, len(values)),
        beside.cast(pa.string_view()).slice(2, len(values)),
        pa.chunked_array([plain[:cut], plain[cut:]], pa.string()),
        pa.chunked_array([plain.slice(at, 1) for at in range(len(values))], pa.string()),
    ]
    for form in forms:
        assert hashes(form) == wanted, form.type
    by_value = dict(zip(values, wanted, strict=True))
    assert len(set(by_value.values())) == len(by_value), "two texts have one hash"
    assert hashes(pa.array(list(by_value), pa.string())) == list(by_value.values())


DECIMALS = [Decimal("1.10"), Decimal("-1.10"), Decimal("123456789012345678901234567890123456.78"), None, Decimal(0)]
TIMES = [datetime(1970, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31), None]
COLUMNS = [
    pa.array([0, 1, -1, 2**31, None], pa.int64()),
    pa.array([0, 1, -1, 2**31 - 1, None], pa.int32()),
    pa.array(DECIMALS, pa.decimal128(38, 2)),
    pa.array(TIMES, pa.timestamp("us")),
    pa.array(TIMES, pa.timestamp("us", "UTC")),
    pa.array([date(1970, 1, 1), date(2026, 1, 1), None], pa.date32()),
    pa.array([True, False, None]),
    pa.array([0.0, 1.5, -1.5, None], pa.float64()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_every_type_of_key_has_hashes_that_do_not_depend_on_where_the_value_stands(column: pa.Array) -> None:
    found = hashes(column)
    assert len(set(found)) == len(column), "two values have one hash"
    assert hashes(column.dictionary_encode()) == found
    for at in range(len(column)):
        assert hashes(column.slice(at, 1)) == [found[at]]
        assert hashes(pa.concat_arrays([column.slice(at, 1), column]).slice(1)) == found


def test_columns_have_their_order_and_their_borders() -> None:
    one, other = pa.array(["ab", "a", "", None]), pa.array(["c", "bc", "abc", "abc"])
    both = hashes(one, other)
    assert len({*both, *hashes(other, one), *hashes(one), *hashes(other)}) == 4 + 4 + 4 + 3
    assert hashes(one.cast(pa.large_string()), other.dictionary_encode()) == both
    assert hashes(pa.array([1, None], pa.int64()), pa.array([None, 1], pa.int64()))[0] not in hashes(
        pa.array([None], pa.int64()), pa.array([1], pa.int64())
    )


def test_null_is_no_value() -> None:
    found = hashes(pa.array([None, "", "\0", "None", "null"], pa.string()))
    assert len(set(found)) == 5
    # A NULL may have bytes beneath it.
    beneath = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x02"), *pa.array(["junk", "a"]).buffers()[1:]], null_count=1
    )
    assert hashes(beneath) == hashes(pa.array([None, "a"]))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, LONG - 1, LONG, LONG + 1, 5000])
def test_every_byte_counts(length: int) -> None:
    text = bytes(range(256)) * 20
    whole = text[:length]
    others = [whole[:at] + b"\xff" + whole[at + 1 :] for at in range(length) if whole[at] != 255][
        :: max(1, length // 40)
    ]
    others += [whole + b"\0", whole[:-1] if whole else b"x"]
    found = hashes(pa.array([whole, *others], pa.binary()))
    assert len(set(found)) == len(found)


def test_no_rows_have_no_hashes() -> None:
    assert hashes(pa.array([], pa.string())) == []
    assert hashes(pa.chunked_array([], pa.int64())) == []


def test_hashes_of_many_keys_are_spread_evenly() -> None:
    """The index is built by the first bits."""
    found = key_hashes(pa.table({"key": [f"customer-{number}" for number in range(50_000)]}))
    assert np.unique(found).size == 50_000
    counts = np.bincount((found >> np.uint64(56)).astype(int), minlength=256)
    assert counts.min() > 100
    assert counts.max() < 300
