"""What people push becomes messages, or one sentence about the first record that cannot."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.journal.cutting import digest
from airflow_provider_mzshare.storage.journal.lines import messages_of_file
from airflow_provider_mzshare.storage.journal.records import (
    CHUNK_ROWS,
    RECORD_BYTES,
    BadRecord,
    BadRecords,
    messages_of,
)

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=timezone.utc)
HEADERS = [{"name": "a", "value": b"1"}, {"name": "b", "value": None}]


def rows(records: Any) -> list[dict[str, Any]]:
    return all_of(messages_of(records))


def all_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    found = []
    for batch in batches:
        assert batch.schema == MESSAGES
        found += batch.to_pylist()
    for row in found:
        assert row.pop("position") is None
    return found


def message(value: Any, key: Any = None, headers: Any = None, timestamp: Any = None) -> dict[str, Any]:
    return {"timestamp": timestamp, "key": key, "value": value, "headers": headers}


def test_values_are_taken_as_they_are() -> None:
    assert rows([b"\xff", "ä", bytearray(b"x"), memoryview(b"y"), b"", ""]) == [
        message(value) for value in (b"\xff", "ä".encode(), b"x", b"y", b"", b"")
    ]
    assert rows([]) == []


@pytest.mark.parametrize(
    "timestamp",
    [
        MOMENT,
        MOMENT.astimezone(timezone(timedelta(hours=2))),
        int(MOMENT.timestamp() * 1000),
        "2026-01-31T12:00:00.250Z",
        "2026-01-31T13:00:00.250+01:00",
    ],
)
def test_times_come_in_several_forms(timestamp: Any) -> None:
    assert rows([{"value": "v", "timestamp": timestamp}]) == [message(b"v", timestamp=MOMENT)]


@pytest.mark.parametrize("headers", [{"a": "1", "b": None}, [("a", b"1"), ("b", None)], (["a", "1"], ["b", None])])
def test_headers_are_a_dictionary_or_pairs(headers: Any) -> None:
    assert rows([{"key": "k", "value": None, "headers": headers}]) == [message(None, b"k", HEADERS)]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (None, "it is None, not bytes or a text, or a dictionary"),
        (7, "it is a value of type int, not bytes or a text, or a dictionary"),
        ("\ud800", "it is a text that is no UTF-8"),
        ({"key": "k"}, "it has no value; None is a deletion"),
        ({"value": "v", "val": 1}, "it has 'val', and a record has key, value, headers, timestamp"),
        ({"value": {"a": 1}}, "its value is a value of type dict, not bytes or a text"),
        ({"value": "v", "key": 1}, "its key is a value of type int, not bytes or a text"),
        ({"value": "v", "timestamp": MOMENT.replace(tzinfo=None)}, "has no time zone"),
        ({"value": "v", "timestamp": "2026-01-31T12:00:00"}, "has no time zone"),
        ({"value": "v", "timestamp": "yesterday"}, "'yesterday' is no time"),
        ({"value": "v", "timestamp": True}, "its timestamp is a value of type bool"),
        ({"value": "v", "timestamp": 1 << 60}, "no time in milliseconds"),
        ({"value": "v", "headers": "h"}, "its headers are a value of type str"),
        ({"value": "v", "headers": ["ab"]}, "no pair"),
        ({"value": "v", "headers": {1: "x"}}, "the name of a header is a value of type int"),
        ({"value": "v", "headers": {"h": 1}}, "the header 'h' is a value of type int"),
        (b"x" * (RECORD_BYTES + 1), f"and a record may have {RECORD_BYTES}"),
    ],
)
def test_a_record_that_is_wrong_is_named_by_its_number(record: Any, problem: str) -> None:
    with pytest.raises(BadRecord, match="record 3: ") as refused:
        rows(["a", "b", record])
    assert problem in refused.value.message
    assert refused.value.number == 3


@pytest.mark.parametrize("records", ["text", b"bytes", {"value": "v"}, 7, None])
def test_one_thing_is_no_records(records: Any) -> None:
    with pytest.raises(BadRecords, match="not an iterable of records"):
        rows(records)


def test_a_generator_is_taken_in_chunks() -> None:
    taken: list[int] = []

    def coming() -> Iterator[str]:
        for number in range(CHUNK_ROWS * 3):
            taken.append(number)
            yield str(number)

    first = next(messages_of(coming()))
    assert (first.num_rows, len(taken)) == (CHUNK_ROWS, CHUNK_ROWS)
    assert next(messages_of([b"x" * (1 << 20)] * 3)).num_rows == 1


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
def test_arrow_columns_of_any_bytes_or_texts(kind: pa.DataType) -> None:
    values = pa.array(["a", None, "ccc"], kind)
    table = pa.table({"value": values, "key": pa.array(["x", "x", None]).dictionary_encode()})
    wanted = [message(b"a", b"x"), message(None, b"x"), message(b"ccc")]
    assert rows(table) == wanted
    assert rows(table.to_batches()[0]) == wanted
    assert rows(table.to_reader(max_chunksize=1)) == wanted
    assert rows(table.slice(1)) == wanted[1:]


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([[("a", "1"), ("b", None)], None, []], pa.map_(pa.string(), pa.string())),
        pa.array([HEADERS, None, []], MESSAGES.field("headers").type),
        pa.array([HEADERS, None, []], pa.large_list(MESSAGES.field("headers").type.value_type)),
    ],
)
def test_arrow_columns_of_headers_and_times(headers: pa.Array) -> None:
    stamps = pa.array([MOMENT, None, MOMENT], pa.timestamp("ns", "Europe/Vienna"))
    table = pa.table({"value": ["v", "v", "v"], "headers": headers, "timestamp": stamps, "key": pa.nulls(3)})
    assert rows(table) == [
        message(b"v", None, HEADERS, MOMENT), message(b"v"), message(b"v", None, [], MOMENT),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table({"key": ["k"]}), "no column 'value'"),
        (pa.table({"value": ["v"], "other": [1]}), "a column 'other'"),
        (pa.table({"value": [1]}), "'value' is int64, not binary or a text"),
        (pa.table({"value": ["v"], "timestamp": [datetime(2026, 1, 1)]}), "not a timestamp with a time zone"),
        (pa.table({"value": ["v"], "headers": ["h"]}), "not a map, or a list"),
        (pa.table({"value": ["v"], "headers": [[1]]}), "cannot be had as"),
    ],
)
def test_an_arrow_table_of_another_shape_is_refused(table: pa.Table, problem: str) -> None:
    with pytest.raises(BadRecords, match=problem):
        rows(table)


def test_a_time_that_nobody_can_have_and_a_header_without_a_name_are_refused() -> None:
    far = pa.array([0, 1 << 61], pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(BadRecord, match="record 2: its timestamp is no time"):
        rows(pa.table({"value": ["v", "v"], "timestamp": far}))
    for header in (None, {"name": None, "value": b""}):
        headers = pa.array([[header]], MESSAGES.field("headers").type)
        with pytest.raises(BadRecords, match="a header without a name"):
            rows(pa.table({"value": ["v"], "headers": headers}))


def test_the_record_of_an_arrow_table_that_is_too_large_is_named() -> None:
    table = pa.table({"value": ["v"] * CHUNK_ROWS + ["x" * (RECORD_BYTES + 1)]})
    with pytest.raises(BadRecord, match=f"record {CHUNK_ROWS + 1}: "):
        rows(table)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_is_a_value() -> None:
    assert all_of(messages_of_file(io.BytesIO(b"a\n\n b\r\nlast"), "lines")) == [
        message(value) for value in (b"a", b"", b" b\r", b"last")
    ]
    assert all_of(messages_of_file(io.BytesIO(b""), "lines")) == []


def test_a_line_of_json_is_a_record_and_what_is_no_string_stays_as_it_was_written() -> None:
    text = (
        '{"value": "v\\u00e4", "key": "k", "headers": {"a": "1", "b": null}, "timestamp": "2026-01-31T12:00:00.250Z"}\n'
        "\n"
        '{"value": { "a" : 1.50 }, "key": 7, "headers": [["a", "1"], ["b", null]]}\n'
        '{"value": null}\n'
        '{"value": true, "timestamp": 1769860800250}'
    )
    assert all_of(messages_of_file(io.BytesIO(text.encode()), "jsonl")) == [
        message("vä".encode(), b"k", HEADERS, MOMENT),
        message(b'{ "a" : 1.50 }', b"7", HEADERS),
        message(None),
        message(b"true", timestamp=MOMENT),
    ]


@pytest.mark.parametrize(
    "line", ["{", "7", '{"value": 1, "val": 2}', '{"key": "k"}', '{"value": "\\ud800"}', '{"value": 1, "headers": 3}']
)
def test_a_line_that_is_no_record_is_named_by_its_number(line: str) -> None:
    with pytest.raises(BadRecord, match="line 2: "):
        all_of(messages_of_file(io.BytesIO(f'{{"value": 1}}\n{line}\n'.encode()), "jsonl"))


def test_a_line_that_never_ends_is_refused() -> None:
    with pytest.raises(BadRecord, match="line 2: "):
        all_of(messages_of_file(io.BytesIO(b"a\n" + b"x" * (RECORD_BYTES + 2)), "lines"))


# ── what says that two batches are the same ───────────────────────────────────────────────────────────────────────────


def test_the_digest_is_of_what_messages_hold_however_they_came() -> None:
    listed = next(messages_of([{"key": "k", "value": "v", "headers": {"a": "1"}}, "w"]))
    headers = pa.array([[("a", "1")], None], pa.map_(pa.string(), pa.string()))
    table = pa.table({"value": ["v", "w"], "key": ["k", None], "headers": headers})
    assert digest(listed) == digest(next(messages_of(table)))


def test_the_digest_tells_everything_apart() -> None:
    batches: list[Any] = [
        ["ab", "c"], ["a", "bc"], ["abc"], [b""], [{"value": None}], [{"value": "", "key": ""}],
        [{"value": "", "headers": {}}], [{"value": "", "headers": {"a": ""}}], [{"value": "", "headers": {"a": None}}],
        [{"value": "", "timestamp": 0}], [{"value": "", "timestamp": -1}], ["", ""],
    ]  # fmt: skip
    digests = {digest(next(messages_of(batch))) for batch in batches}
    assert len(digests) == len(batches)
