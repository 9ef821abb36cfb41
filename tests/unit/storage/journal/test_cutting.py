"""Messages are cut at the same places, whatever pieces they come in."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.storage.journal.cutting import cut, stamped, weight, weight_at_most, weights
from airflow_provider_mzshare.storage.journal.records import messages_of


def some(seed: int) -> pa.RecordBatch:
    pick = random.Random(seed)
    headers: list[Any] = [None, {}, {"name": "v" * 5}, {"a": None, "b": "xx"}]
    keys, values = [None, "k" * 7], [None, *("v" * length for length in range(90))]
    choices: dict[str, list[Any]] = {"key": keys, "value": values, "headers": headers}
    return next(messages_of([{name: pick.choice(of) for name, of in choices.items()} for _ in range(200)]))


def in_pieces(whole: pa.RecordBatch, seed: int) -> list[pa.RecordBatch]:
    pick, pieces, start = random.Random(seed), [], 0
    while start < whole.num_rows:
        pieces.append(whole.slice(start, pick.randint(0, 30)))
        start += pieces[-1].num_rows
    return pieces


@pytest.mark.parametrize("limit", [1, 90, 500, 3_000, 1 << 20])
def test_parts_are_the_same_and_as_large_as_may_be(limit: int) -> None:
    whole = some(1)
    parts = list(cut([whole], limit))
    for seed in range(5):
        assert [p.to_pylist() for p in cut(in_pieces(whole, seed), limit)] == [p.to_pylist() for p in parts]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    for part, following in pairwise(parts):
        assert weight(part) <= limit or part.num_rows == 1
        assert weight(part) + weights(following)[0] > limit
    assert list(cut([], limit)) == []


def test_what_is_counted_in_haste_is_never_too_little() -> None:
    for piece in in_pieces(some(3), 3):
        assert weight(piece) <= weight_at_most(piece)


def test_a_slice_weighs_what_its_own_messages_do() -> None:
    whole = some(2)
    one_by_one = [weight(next(messages_of([_given(row)]))) for row in whole.to_pylist()]
    assert weights(whole.slice(50, 100)).tolist() == one_by_one[50:150]


def _given(row: dict[str, object]) -> dict[str, object]:
    pairs = row["headers"]
    headers = None if pairs is None else [(one["name"], one["value"]) for one in pairs]  # type: ignore[attr-defined]
    return {"key": row["key"], "value": row["value"], "headers": headers}


def test_a_time_that_was_given_stays() -> None:
    messages = next(messages_of(["a", {"value": "b", "timestamp": 5}]))
    assert stamped(messages, 7).column("timestamp").cast("int64").to_pylist() == [7, 5_000]
