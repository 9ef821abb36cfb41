"""Records of Debezium, taken apart: the fast way and the strict one give the same parts, with a schema or without."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.formats import json_changes
from airflow_provider_mzshare.formats.base import Batch, Changes
from airflow_provider_mzshare.formats.json_changes import UNAVAILABLE, is_unavailable, take_apart

ROW = '{"id":1,"amount":1.50,"note":"\\ud83d\\ude00"}'


def taken(*values: str | bytes | None, keys: list[bytes | None] | None = None) -> Changes:
    raw = [each.encode() if isinstance(each, str) else each for each in values]
    columns = [pa.array(keys or [None] * len(raw), pa.binary()), pa.array(raw, pa.binary())]
    return take_apart(Batch(pa.RecordBatch.from_arrays(columns, names=["key", "value"])))


def wrapped(payload: str) -> str:
    return f'{{"schema":{{"type":"struct"}},"payload":{payload}}}'


@pytest.fixture(params=["fast", "strict"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Executors of a cluster have no msgspec."""
    if request.param == "strict":
        monkeypatch.setattr(json_changes, "msgspec", None)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("wrap", [str, wrapped])
def test_the_schema_around_a_record_does_not_matter(wrap: Any) -> None:
    value = f'{{"before":null,"after":{ROW},"op":"u","source":{{"lsn":1}},"transaction":{{"id":"7"}},"ts_ms":1}}'
    found = taken(wrap(value))
    assert (found.ops, found.empty, found.errors) == (["u"], [False], {})
    assert found.before.to_pylist() == [None]
    (after,) = found.after.to_pylist()
    assert json.loads(after) == json.loads(ROW)
    assert b"1.50" in after, "every digit is kept"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", "value is empty"),
        ("{", "not valid JSON"),
        (b"\xff", "invalid UTF-8 at byte 0"),
        ("[]", "the JSON value is not an object"),
        ('{"op":"c","after":NaN}', "NaN and Infinity are not JSON"),
        ('{"op":"c","after":"x"}', 'field "after": the JSON value is not an object'),
        ('{"op":"d","before":1}', 'field "before": the JSON value is not an object'),
        ('{"op":"c","after":' + "[" * 200 + "]" * 200 + "}", "nested deeper than 128 levels"),
    ],
)
def test_what_is_no_change_is_an_error(value: str | bytes, error: str) -> None:
    found = taken(value)
    assert found.errors == {0: error}
    assert (found.ops, found.after.to_pylist()) == ([None], [None])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("value", [None, "null", " null ", '{"schema":null,"payload":null}', wrapped("null")])
def test_a_value_that_is_null_is_empty(value: str | None) -> None:
    assert (taken(value).empty, taken(value).errors) == ([True], {})


@pytest.mark.usefixtures("way")
def test_an_operation_that_is_no_text_is_none() -> None:
    assert taken('{"op":1}', '{"op":null}', "{}", '{"op":"\\u0063"}').ops == [None, None, None, "c"]


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ('{"id":1}', '{"id":1}'),
        ('{"schema":{"type":"struct"},"payload":{"id":1}}', '{"id":1}'),
        ('{"schema":"x","payload":"y"}', '{"schema":"x","payload":"y"}'),
        ('{"schema":{},"payload":{"id":1},"more":1}', '{"schema":{},"payload":{"id":1},"more":1}'),
        ('{"payload":', '{"payload":'),
    ],
    ids=["bare", "with its schema", "columns of these names", "another field", "no JSON"],
)
def test_a_key_loses_its_schema_and_nothing_else(key: str, own: str) -> None:
    assert taken("null", keys=[key.encode()]).keys.to_pylist() == [own.encode()]


@pytest.mark.usefixtures("way")
def test_half_a_character_is_left_to_whoever_reads_the_field() -> None:
    found = taken('{"op":"c","after":{"a":"\\ud800","b":1}}')
    assert json.loads(found.after[0].as_py()) == {"a": "\ud800", "b": 1}


@pytest.mark.parametrize(
    "value",
    [
        UNAVAILABLE,
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "b68a35a7-17ad-35b3-af2a-ae46edb4545a",
        f'{{"{UNAVAILABLE}":"{UNAVAILABLE}"}}',
        [UNAVAILABLE],
        ["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="],
        list(UNAVAILABLE.encode()),
        {UNAVAILABLE: UNAVAILABLE},
    ],
    ids=["text", "bytes", "uuid", "map as text", "texts", "list of bytes", "numbers", "map"],
)
def test_a_value_that_was_not_sent_is_found_in_every_form(value: Any) -> None:
    assert is_unavailable(value)
    for separators in ((",", ":"), (", ", ": ")):
        after = json.dumps({"id": 1, "big": value, "other": "x"}, separators=separators)
        assert taken(f'{{"op":"u","after":{after}}}').unavailable == {0: {"big"}}


@pytest.mark.parametrize(
    "value", [f"{UNAVAILABLE}!", [UNAVAILABLE, "x"], {"a": UNAVAILABLE}, [], "", 95, None, {UNAVAILABLE: 1}], ids=repr
)
def test_a_value_that_only_resembles_it_was_sent(value: Any) -> None:
    assert taken(json.dumps({"op": "u", "after": {"big": value}})).unavailable == {}


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
ENVELOPES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("op", "before", "after", "schema", "payload", "source"), VALUES)
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(ENVELOPES, VALUES, st.builds(lambda p: {"schema": {}, "payload": p}, ENVELOPES)), max_size=4))
def test_both_ways_give_the_same_parts(documents: list[Any]) -> None:
    texts = [json.dumps(document, ensure_ascii=False) for document in documents]
    fast = taken(*texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_changes, "msgspec", None)
        strict = taken(*texts)
    assert (fast.ops, fast.empty, fast.errors, fast.unavailable) == (
        strict.ops, strict.empty, strict.errors, strict.unavailable,
    )  # fmt: skip
    for one, other in ((fast.before, strict.before), (fast.after, strict.after)):
        assert list(map(_parsed, one.to_pylist())) == list(map(_parsed, other.to_pylist()))


def _parsed(raw: bytes | None) -> Any:
    return None if raw is None else json.loads(raw)
