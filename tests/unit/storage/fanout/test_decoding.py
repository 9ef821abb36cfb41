"""One case per row of docs/reference/decoding.md, and that the document and the cases name the same rows."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.envelopes.base import DELETES
from airflow_provider_mzshare.envelopes.registry import envelope_target
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from tests.support.decoding_table import FIELDS
from tests.unit.storage.fanout.records import MICROS, TICK, batch_of, decode_one, member

UTC = timezone.utc
DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "decoding.md"

# The record as a whole: JSON with columns, JSON without, TEXT, BYTES. A bytes result is the value of the one column.
NULL, EMPTY, BLANK = "value is NULL", "value is empty", "value is blank"
BAD_JSON, TRAILING = "not valid JSON", "text after the JSON value"
NO_OBJECT = "the JSON value is not an object"
RECORDS = {
    "R1": (None, NULL, NULL, NULL, {"data": None}),
    "R2": (b"", EMPTY, EMPTY, EMPTY, {"data": b""}),
    "R3": (b" \n", BLANK, BLANK, {"data": " \n"}, {"data": b" \n"}),
    "R4": (b'{"a":"\xff"}', *["invalid UTF-8 at byte 6"] * 3, {"data": b'{"a":"\xff"}'}),
    "R5": (b"\xef\xbb\xbf{}", *["byte order mark before the JSON value"] * 2, {"data": "\ufeff{}"}, None),
    "R6": (b'{"a":"x"', BAD_JSON, BAD_JSON, {"data": '{"a":"x"'}, None),
    "R7": (b'{"a":"x"} x', TRAILING, TRAILING, None, None),
    "R8": (b'{"a":"x"}{"a":"y"}', TRAILING, TRAILING, None, None),
    "R9": (b'{"b":NaN}', *["NaN and Infinity are not JSON"] * 2, None, None),
    "R10": (b"{'a':'x'}", BAD_JSON, BAD_JSON, None, None),
    "R11": (b'{"a":"x"/* */}', BAD_JSON, BAD_JSON, None, None),
    "R12": (b'{"a":"x",}', BAD_JSON, BAD_JSON, None, None),
    "R13": (b'{"a":"x\ny"}', BAD_JSON, BAD_JSON, None, None),
    "R14": (b'{"b":01}', BAD_JSON, BAD_JSON, None, None),
    "R15": (b'{"b":' + b"[" * 128 + b"]" * 128 + b"}", *["nested deeper than 128 levels"] * 2, None, None),
    "R16": (b'["a"]', NO_OBJECT, {"data": '["a"]'}, {"data": '["a"]'}, {"data": b'["a"]'}),
    "R17": (b' {"a" : "x"}\n', {"a": "x"}, {"data": ' {"a" : "x"}\n'}, {"data": ' {"a" : "x"}\n'}, None),
    "R18": (b'{"other":{"deep":[1e400]}}', {"a": None}, {"data": '{"other":{"deep":[1e400]}}'}, None, None),
    "R19": (b'{"a":null}', {"a": None}, None, None, None),
    "R20": (b'{"a":"x","a":"y"}', {"a": "y"}, {"data": '{"a":"x","a":"y"}'}, None, None),
    "R21": (b'{"a":"\\u0000"}', {"a": "\0"}, {"data": '{"a":"\\u0000"}'}, None, None),
}
TABLES = (member(("a", "text")), member(), member(format="text"), member(format="bytes"))


@pytest.mark.parametrize("row", RECORDS)
def test_record_decodes_as_documented(row):
    value, *expected = RECORDS[row]
    for table, wanted in zip(TABLES, expected, strict=True):
        if wanted is not None:
            assert decode_one(table, value) == wanted


@pytest.mark.parametrize("row", FIELDS)
def test_field_decodes_as_documented(row):
    type_name, cases = FIELDS[row]
    for sent, expected in cases:
        found = decode_one(member(("a", type_name)), f'{{"a":{sent}}}'.encode())
        wanted = expected if isinstance(expected, str) and expected.startswith('field "a"') else {"a": expected}
        assert found == wanted, sent


# INCLUDE columns: what, key sent, format, value or error.
INCLUDES = {
    "I1": ("key", "json", [(b"k\xc3\xa9", "ké"), (b"", ""), (None, None), (b"a\xff", "key: invalid UTF-8 at byte 1")]),
    "I2": ("key", "bytes", [(b"a\xff", b"a\xff"), (None, None)]),
    "I3": ("partition", "text", [(None, 0)]),
    "I4": ("offset", "text", [(None, 0)]),
}

# INCLUDE TIMESTAMP: microseconds as Spark tells them (None where not even it could), value or error.
TOO_FAR = "timestamp: outside the years 1900 to 9999"
TIMES = {
    "I5": [
        (1_700_000_000_123_456, datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1_000, datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        (-2_208_988_800_000_000, datetime(1900, 1, 1, tzinfo=UTC)),
        (253_402_300_799_999_000, datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
    "I6": [
        (-2_208_988_800_001_000, TOO_FAR),
        (253_402_300_800_000_000, TOO_FAR),
        (1_700_000_000_000_000_000, TOO_FAR),
        (-(2**63), TOO_FAR),
        (2**63 - 1, TOO_FAR),
        (None, TOO_FAR),
    ],
}


@pytest.mark.parametrize("row", INCLUDES)
def test_include_column_decodes_as_documented(row):
    what, format, cases = INCLUDES[row]
    for key, expected in cases:
        found = decode_one(member(format=format, include=((what, "x"),)), b"{}", key)
        assert (
            found == expected if isinstance(expected, str) and expected.startswith("key:") else found["x"] == expected
        )


TWO = (("a", "bigint"), ("b", "text"))
# KEY FORMAT: format, its columns, and pairs of the key that is sent and of its columns or the error.
KEYS = {
    "K1": ("text", (), [(b"k", ("k",)), (None, (None,)), (b"", "key: value is empty"),
                        (b"a\xff", "key: invalid UTF-8 at byte 1")]),
    "K2": ("bytes", (), [(b"a\xff", (b"a\xff",)), (b"", (b"",)), (None, (None,))]),
    "K3": ("json", (), [(b' {"a": 1}', (' {"a": 1}',)), (None, (None,)), (b"{", "key: not valid JSON")]),
    "K4": ("json", TWO, [(b'{"b": "x", "a": 1}', (1, "x")), (b"{}", (None, None)), (None, (None, None)),
                         (b"[1]", "key: the JSON value is not an object"),
                         (b'{"a": "1"}', 'key: field "a": expected bigint, got string')]),
}  # fmt: skip
BAD_VALUE = 'field "v": expected bigint, got string'
# ENVELOPE UPSERT: key, value, whether errors are inline, and the event or the error.
EVENTS = {
    "E1": [(None, b'{"v": 1}', False, "key: NULL"), (b'{"a": 1}', b'{"v": 1}', True, "key: b is NULL"),
           (None, None, False, "key: NULL")],
    "E2": [(b"{", b'{"v": 1}', False, "key: not valid JSON"), (b"[]", None, True, KEYS["K4"][2][3][1])],
    "E3": [(b'{"a": 1, "b": "x"}', None, False, {"a": 1, "b": "x", "v": None, "_mz_deletes": True})],
    "E4": [(b'{"a": 1, "b": "x"}', b'{"v": "no"}', False, BAD_VALUE)],
    "E5": [(b'{"a": 1, "b": "x"}', b'{"v": "no"}', True,
            {"a": 1, "b": "x", "v": None, "error": BAD_VALUE, "_mz_deletes": False})],
    "E6": [(b'{"a": 1, "b": "x"}', b'{"v": 7}', True, {"a": 1, "b": "x", "v": 7, "error": None, "_mz_deletes": False})],
}  # fmt: skip


@pytest.mark.parametrize("row", KEYS)
def test_key_decodes_as_documented(row):
    format, columns, cases = KEYS[row]
    include = () if columns else (("key", "k"),)
    table = member(format="bytes", key_format=format_target(format), key_columns=columns, include=include)
    for sent, expected in cases:
        found = decode_one(table, b"v", sent)
        assert found == expected or tuple(found.values()) == (b"v", *expected), sent


@pytest.mark.parametrize("row", EVENTS)
def test_event_of_a_key_is_as_documented(row):
    for key, value, inline, expected in EVENTS[row]:
        table = member(
            ("v", "bigint"),
            key_format=format_target("json"),
            key_columns=TWO,
            keys=("a", "b"),
            envelope=envelope_target("upsert"),
            inline_errors="error" if inline else "",
        )
        decoded = decode_batch(batch_of([value], keys=[key]), FanoutPlan(TICK, (table,)))["u1"]
        if isinstance(expected, str):
            assert decoded.errors.batch.column("error").to_pylist() == [expected]
            continue
        (found,) = decoded.data.batch.to_pylist()
        places = set(system_names(found)) - {DELETES}
        assert {name: found[name] for name in found if name not in places} == expected


@pytest.mark.parametrize("row", TIMES)
def test_time_of_a_record_decodes_as_documented(row):
    for micros, expected in TIMES[row]:
        found = decode_one(member(format="text", include=(("timestamp", "x"),)), b"v", micros=micros)
        assert found == (expected if expected == TOO_FAR else {"data": "v", "x": expected})


def test_a_time_that_cannot_be_held_harms_no_table_that_does_not_ask_for_it():
    batch = batch_of([b"good", b"\xff", b"also"], micros=[2**62, 2**62, MICROS])
    with_time = member(format="text", include=(("timestamp", "x"),), id="u1")
    decoded = decode_batch(batch, FanoutPlan(TICK, (with_time, member(format="text", id="u2"))))
    assert decoded["u2"].data.batch.column("data").to_pylist() == ["good", "also"]
    (bad,) = decoded["u2"].errors.batch.to_pylist()
    assert (bad["timestamp"], bad["value"], bad["error"]) == (None, b"\xff", "invalid UTF-8 at byte 0")
    assert decoded["u1"].data.batch.column("data").to_pylist() == ["also"]
    assert [(row["error"], row["timestamp"], row["_mz_offset"]) for row in decoded["u1"].errors.batch.to_pylist()] == [
        (TOO_FAR, None, 0),
        ("invalid UTF-8 at byte 0", None, 1),
    ]


def test_document_has_exactly_these_rows():
    cells = [line.split("|")[1].strip() for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    named = [cell for cell in cells if cell[:1] in "RFIKE" and cell[1:].isdecimal()]
    assert named == [*RECORDS, *FIELDS, *INCLUDES, *TIMES, *KEYS, *EVENTS]


@pytest.mark.parametrize("depth", [128, 129, 100_000])
def test_nesting_has_a_fixed_limit_and_never_overflows_the_stack(depth):
    found = decode_one(member(), b"[" * depth + b"]" * depth)
    assert (found == "nested deeper than 128 levels") == (depth > 128)


@pytest.mark.parametrize("space", ["\x0b", "\x0c", "\u00a0", "\u2028", "\x00"])
def test_only_the_four_json_white_spaces_are_white_space(space):
    assert decode_one(member(), f"{{}}{space}".encode()) == "text after the JSON value"
    assert decode_one(member(), f"{space}{{}}".encode()) == "not valid JSON"


def test_brackets_in_strings_are_no_nesting():
    text = json.dumps({"a": '"[{' * 500 + "\\"})
    assert decode_one(member(("a", "text")), text.encode()) == json.loads(text)


def test_deepest_jsonb_is_kept():
    nested = "[" * 127 + "]" * 127
    assert decode_one(member(("a", "jsonb")), f'{{"a":{nested}}}'.encode()) == {"a": nested}


def test_rows_do_not_depend_on_what_other_tables_need():
    plain = member(("d", "double"), ("i", "bigint"), id="u1")
    exact = member(("d", "numeric(10,2)"), ("d2", "jsonb"), id="u2")
    batch = batch_of([b'{"d":0.1,"i":7,"d2":1.0}', b'{"d":1e400,"i":1}', b'{"d":12345678901234567890,"i":1.0}'])
    alone = decode_batch(batch, FanoutPlan(TICK, (plain,)))["u1"]
    together = decode_batch(batch, FanoutPlan(TICK, (plain, exact)))["u1"]
    assert together.data.batch.equals(alone.data.batch)
    assert together.errors.batch.equals(alone.errors.batch)
    assert (together.data.hash, together.errors.hash) == (alone.data.hash, alone.errors.hash)
