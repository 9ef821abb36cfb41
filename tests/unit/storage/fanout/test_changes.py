"""Records that say how a row has changed, through the pass: events and error rows, by each record alone."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.envelopes.base import CLEARS, DELETES, KEPT, RECORD
from airflow_provider_mzshare.formats.json_changes import UNAVAILABLE
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan

COLUMNS = (ColumnSpec(name="name", type="text"), ColumnSpec(name="n", type="smallint"))
ID = ColumnSpec(name="id", type="bigint")
IN_VALUE = TableSpec(reference="t", format="json", envelope="debezium", columns=(ID, *COLUMNS), primary_key=("id",))
IN_KEY = TableSpec(
    reference="t", format="json", key_format="json", envelope="debezium", columns=COLUMNS, key_columns=(ID,)
)
BOTH = pytest.mark.parametrize("spec", [IN_VALUE, IN_KEY], ids=["key in the value", "key of the record"])


def member(spec: TableSpec, name: str = "u1") -> MemberPlan:
    return member_plan(name, spec, place=PARTITIONED, hash_version=1)


def decoded(spec: TableSpec, *records: tuple[Any, Any]) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    """Events, without the place but for the offset, and errors by offset."""
    raw = [[None if part is None else _bytes(part) for part in record] for record in records]
    columns = {
        "key": [key for key, _ in raw],
        "value": [value for _, value in raw],
        "partition": [0] * len(raw),
        "offset": list(range(len(raw))),
        "timestamp": [1_000_000] * len(raw),
    }
    batch = pa.RecordBatch.from_pydict(columns, schema=INPUT_SCHEMA)
    found = decode_batch(batch, FanoutPlan(1, (member(spec),)))["u1"]
    events = found.data.batch.to_pylist() if found.data else []
    errors = found.errors.batch.to_pylist() if found.errors else []
    return events, [(row["_mz_offset"], row["error"]) for row in errors]


def _bytes(part: Any) -> bytes:
    return part.encode() if isinstance(part, str) else json.dumps(part).encode()


def change(op: str, after: Any = None, before: Any = None) -> dict[str, Any]:
    return {"op": op, "after": after, "before": before}


def shown(event: dict[str, Any]) -> tuple[Any, ...]:
    return (event["id"], event["name"], event[DELETES], event[CLEARS], event["_mz_offset"])


ROW = {"id": 1, "name": "a", "n": 1}


@BOTH
def test_rows_are_set_and_taken_away(spec: TableSpec) -> None:
    key = {"schema": {}, "payload": {"id": 1}}
    records = [(key, change(op, ROW)) for op in "cur"] + [(key, change("d", None, ROW)), (key, None), (key, "null")]
    events, errors = decoded(spec, *records)
    assert errors == []
    assert [shown(event)[0] for event in events] == [1] * 6
    assert [event[DELETES] for event in events] == [False] * 3 + [True] * 3
    assert [event["name"] for event in events[:3]] == ["a"] * 3


@BOTH
def test_a_truncation_has_no_key(spec: TableSpec) -> None:
    events, errors = decoded(spec, (None, change("t")), ({"id": 1}, change("c", ROW)))
    assert errors == []
    assert [(event["id"], event[DELETES], event[CLEARS]) for event in events] == [(None, True, True), (1, False, False)]


@pytest.mark.parametrize(
    ("key", "before"),
    [({"id": 7}, None), ({"id": 7}, {"name": "x"}), ({"x": 1}, {"id": 7}), (None, {"id": 7, "n": "bad"})],
    ids=["none", "without the key", "with the key", "with a bad column"],
)
def test_a_deletion_has_its_key_in_the_row_before_or_else_in_the_records_key(key: Any, before: Any) -> None:
    events, errors = decoded(IN_VALUE, (key, change("d", None, before)))
    assert (errors, events[0]["id"], events[0][DELETES]) == ([], 7, True)


def test_a_tombstone_that_does_not_say_the_rows_key_says_nothing_where_that_is_in_the_value() -> None:
    events, errors = decoded(IN_VALUE, (None, None), ({"x": 1}, None), ("[]", None), ({"id": 7}, None))
    assert ([event["_mz_offset"] for event in events], errors) == ([3], [])
    assert decoded(IN_KEY, (None, None)) == ([], [(0, "key: NULL")])


def test_the_old_key_of_a_changed_key_loses_its_row() -> None:
    """Where the upstream does not know that it is a key: otherwise it sends a deletion of its own."""
    events, errors = decoded(
        IN_VALUE,
        (None, change("u", {"id": 2, "name": "b"}, {"id": 1, "name": "a"})),
        (None, change("u", {"id": 3, "name": "c"}, {"id": 3, "name": "b"})),
    )
    assert errors == []
    assert sorted(shown(event) for event in events) == [
        (1, "b", True, False, 0), (2, "b", False, False, 0), (3, "c", False, False, 1),
    ]  # fmt: skip


@BOTH
def test_values_that_were_not_sent_are_kept_and_the_record_goes_with_them(spec: TableSpec) -> None:
    sent = change("u", {"id": 1, "name": UNAVAILABLE, "n": 2, "other": UNAVAILABLE})
    events, errors = decoded(spec, ({"id": 1}, change("u", ROW)), ({"id": 1}, sent))
    assert errors == []
    assert [event[KEPT] for event in events] == [None, '["name"]']
    assert [event["name"] for event in events] == ["a", None]
    assert [event[RECORD["value"]] for event in events] == [None, json.dumps(sent).encode()]
    assert [event[RECORD["key"]] for event in events] == [None, b'{"id": 1}']


@pytest.mark.parametrize(
    ("spec", "key", "value", "error"),
    [
        (IN_VALUE, {"id": 1}, "{", "not valid JSON"),
        (IN_KEY, None, "{", "not valid JSON"),
        (IN_VALUE, None, {}, 'field "op": missing'),
        (IN_VALUE, None, change("x", ROW), 'field "op": none of c, r, u, d and t'),
        (IN_VALUE, None, change("c"), 'field "after": missing'),
        (IN_VALUE, None, change("c", {"name": "a"}), "key: id is NULL"),
        (IN_VALUE, None, change("c", {"id": "1", "n": "x"}), 'field "id": expected bigint, got string'),
        (IN_VALUE, None, change("c", {"id": 1, "n": "x"}), 'field "n": expected smallint, got string'),
        (IN_VALUE, None, change("u", {"id": UNAVAILABLE, "n": "x"}), "key: id was not sent"),
        (IN_VALUE, {"x": 1}, change("d"), "key: id is NULL"),
        (IN_VALUE, "[]", change("d", None, {"name": "a"}), "key: id is NULL"),
        (IN_KEY, None, change("c", ROW), "key: NULL"),
        (IN_KEY, "[]", change("c", {"n": "x"}), "key: the JSON value is not an object"),
        (IN_KEY, {"id": None}, change("d"), "key: id is NULL"),
        (IN_KEY, {"id": "1"}, None, 'key: field "id": expected bigint, got string'),
        (IN_KEY, {"id": 1}, change("c", {"n": 1.5}), 'field "n": expected smallint, got number with a fraction'),
    ],
)
def test_the_records_own_error_comes_first_then_that_of_its_key(
    spec: TableSpec, key: Any, value: Any, error: str
) -> None:
    events, errors = decoded(spec, (key, value))
    assert (events, len(errors)) == ([], 1)
    assert errors[0][1].startswith(error)


def test_what_else_is_included_is_a_column_of_the_event() -> None:
    spec = IN_VALUE.model_copy(update={"include": (Include(what="offset", name="at"),)})
    events, _ = decoded(spec, (None, change("c", ROW)), (None, change("u", {"id": 2}, {"id": 1})))
    assert sorted((event["id"], event["at"]) for event in events) == [(1, 0), (1, 1), (2, 1)]


def test_tables_of_one_topic_do_not_touch_each_other() -> None:
    """Also one whose records are rows."""
    plain = TableSpec(reference="t", format="json", columns=(ColumnSpec(name="op", type="text"),))
    members = tuple(member(spec, name) for name, spec in (("u1", IN_VALUE), ("u2", IN_KEY), ("u3", plain)))
    columns = {"key": [b'{"id":1}'], "value": [_bytes(change("c", ROW))], "partition": [0], "offset": [5]}
    batch = pa.RecordBatch.from_pydict({**columns, "timestamp": [0]}, schema=INPUT_SCHEMA)
    together = decode_batch(batch, FanoutPlan(1, members))
    for one in members:
        assert together[one.table_id] == decode_batch(batch, FanoutPlan(1, (one,)))[one.table_id]
    assert FanoutPlan.from_json(FanoutPlan(1, members).to_json()).members == members
