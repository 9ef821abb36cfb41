"""A few messages are the same, whether they become Arrow one by one or together, and are weighed as Arrow is."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.journal.cutting import digest, stamped, weight
from airflow_provider_mzshare.storage.journal.records import messages_of, pieces_of
from airflow_provider_mzshare.storage.journal.rows import (
    FEW,
    Messages,
    Rows,
    as_arrow,
    as_one_batch,
    digest_of,
    stamp,
    weight_of,
)

RECORDS: list[Any] = [
    b"value",
    "text: ü",
    b"",
    {"value": None, "key": b"k"},
    {"value": bytearray(b"v"), "headers": {}, "timestamp": 5},
    {"value": "v", "key": "", "headers": [("ä", None), ("ä", b"1"), ("b", "")], "timestamp": "2026-01-31T12:00:00Z"},
]
NOW = 1_700_000_000_000_000


def pushes(seed: int) -> list[list[Any]]:
    pick = random.Random(seed)
    return [pick.choices(RECORDS, k=pick.choice((1, 1, 1, 3, FEW, FEW + 1, 200))) for _ in range(30)]


def only(records: Any) -> Messages:
    (piece,) = pieces_of(records)
    return piece


def test_only_a_few_stay_plain() -> None:
    assert isinstance(only([b"v"] * FEW), Rows)
    assert isinstance(only([b"v"] * (FEW + 1)), pa.RecordBatch)
    assert isinstance(only(pa.table({"value": [b"v"]})), pa.RecordBatch)
    assert [type(piece) for piece in pieces_of(["v"] * 2_001)] == [pa.RecordBatch, Rows]
    assert list(pieces_of([])) == []


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_together_is_what_it_is_one_by_one(seed: int) -> None:
    """Plain ones and Arrow, in whatever order they come."""
    given = pushes(seed)
    expected = [row for records in given for batch in messages_of(records) for row in stamped(batch, NOW).to_pylist()]
    together = as_one_batch([stamp(only(records), NOW) for records in given])
    assert together.schema == MESSAGES
    together.validate(full=True)
    assert together.to_pylist() == expected


@pytest.mark.parametrize("record", RECORDS)
def test_plain_ones_weigh_what_they_weigh_in_arrow_and_are_the_same_batch(record: Any) -> None:
    for piece in (only([record]), only([record] * 7), only([record, b"x" * 100])):
        assert isinstance(piece, Rows)
        assert weight_of(piece) == weight(as_arrow(piece))
        assert weight_of(piece) == weight_of(stamp(piece, NOW))
        assert digest_of(piece) == digest(as_arrow(piece)) == digest_of(as_arrow(piece))


def test_what_is_changed_after_it_was_given_is_not_seen() -> None:
    value, headers = bytearray(b"before"), {"h": b"1"}
    piece = only([{"value": value, "headers": headers}])
    value[:] = b"behind"
    headers["h"] = b"2"
    (row,) = as_arrow(piece).to_pylist()
    assert (row["value"], row["headers"]) == (b"before", [{"name": "h", "value": b"1"}])
