"""ENVELOPE DEBEZIUM: what its fold makes of events, against a dict, whatever the groups of ticks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.schema import system_columns
from airflow_provider_mzshare.envelopes.base import CLEARS, DELETES, KEPT, RECORD
from airflow_provider_mzshare.envelopes.debezium import DEBEZIUM
from airflow_provider_mzshare.formats.base import Changes

COLUMNS = (("a", "text"), ("b", "bigint"), ("id", "bigint"))
SCHEMA = arrow_schema((*COLUMNS, *system_columns((("_mz_partition", "integer"), ("_mz_offset", "bigint")))))
Row = dict[str, Any]
Rows = dict[int, Row]


class Event(NamedTuple):
    """:param kept: columns whose values are those of the row before. :param clears: it takes all rows away."""

    key: int | None
    a: str | None = None
    b: int | None = None
    kept: tuple[str, ...] = ()
    deletes: bool = False
    clears: bool = False


CLEAR = Event(None, deletes=True, clears=True)
KEYS = st.integers(0, 2)
NONE, NO = st.just(None), st.just(False)


def _events(a: st.SearchStrategy[Any], b: st.SearchStrategy[Any], kept: tuple[str, ...]) -> st.SearchStrategy[Event]:
    return st.builds(Event, KEYS, a, b, st.just(kept), NO, NO)


EVENTS = st.lists(
    st.one_of(
        _events(st.sampled_from(["x", "y", None]), st.integers(0, 3), ()),
        _events(NONE, st.integers(0, 3), ("a",)),
        _events(NONE, NONE, ("a", "b")),
        st.builds(Event, KEYS, NONE, NONE, st.just(()), st.just(True), NO),
        st.just(CLEAR),
    ),
    max_size=14,
)


def oracle(events: Sequence[Event]) -> tuple[Rows, dict[int, str]]:
    """One event after the other. Its number is its place."""
    rows: Rows = {}
    refused = {}
    for number, event in enumerate(events):
        if event.clears:
            rows.clear()
        elif event.deletes:
            rows.pop(event.key or 0, None)
        elif event.kept and event.key not in rows:
            refused[number] = event.kept[0]
        else:
            before = rows.get(event.key or 0, {})
            told = {"a": event.a, "b": event.b} | {name: before[name] for name in event.kept}
            rows[event.key or 0] = {**told, "id": event.key, "_mz_offset": number}
    return rows, refused


def table(events: Sequence[Event], first: int) -> pa.Table:
    count = len(events)
    columns: Mapping[str, tuple[list[Any], pa.DataType]] = {
        "a": ([e.a for e in events], pa.string()),
        "b": ([e.b for e in events], pa.int64()),
        "id": ([e.key for e in events], pa.int64()),
        "_mz_tick": (list(range(first, first + count)), pa.int64()),
        "_mz_partition": ([0] * count, pa.int32()),
        "_mz_offset": (list(range(first, first + count)), pa.int64()),
        DELETES: ([e.deletes for e in events], pa.bool_()),
        CLEARS: ([e.clears for e in events], pa.bool_()),
        KEPT: ([json.dumps(e.kept) if e.kept else None for e in events], pa.string()),
        **{name: ([None] * count, pa.binary()) for name in RECORD.values()},
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def put(there: Mapping[int, Row], group: Sequence[Event], first: int) -> tuple[Rows, dict[int, str]]:
    """As a commit does it: the rows of the events' keys, or all of them where an event clears."""
    cleared = any(event.clears for event in group)
    mine = [row for key, row in there.items() if cleared or any(event.key == key for event in group)]
    before = pa.Table.from_pylist([{"_mz_tick": row["_mz_offset"], "_mz_partition": 0, **row} for row in mine], SCHEMA)
    settled = DEBEZIUM.settle(table(group, first), before, ("id",))
    assert settled.after.schema.names == SCHEMA.names
    others = {key: row for key, row in there.items() if not cleared and all(event.key != key for event in group)}
    found = [{name: row[name] for name in ("a", "b", "id", "_mz_offset")} for row in settled.after.to_pylist()]
    assert len({row["id"] for row in found}) == len(found), "a key has one row"
    return others | {row["id"]: row for row in found}, {first + n: text for n, text in settled.refused.items()}


def check(events: Sequence[Event], cuts: Sequence[int]) -> None:
    there: Rows = {}
    refused: dict[int, str] = {}
    edges = sorted({0, len(events), *(cut for cut in cuts if cut <= len(events))})
    for first, last in pairwise(edges):
        there, more = put(there, events[first:last], first)
        refused |= more
    wanted, names = oracle(events)
    assert there == wanted
    assert refused == {
        number: f'field "{name}": not sent, because it has not changed, and there is no row to take it from'
        for number, name in names.items()
    }


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 14), max_size=6))
def test_rows_and_errors_are_those_of_the_oracle_in_any_groups(events: list[Event], cuts: list[int]) -> None:
    check(events, cuts)


def test_a_value_that_was_not_sent_is_that_of_the_row_at_this_place() -> None:
    events = [Event(1, "x", 1), Event(1, None, 2, ("a",)), Event(1, "y", 3), Event(1, None, None, ("a", "b"))]
    rows, _ = put({}, events, 0)
    assert rows == {1: {"a": "y", "b": 3, "id": 1, "_mz_offset": 3}}


def test_a_row_that_is_gone_gives_no_value() -> None:
    for gone in (Event(1, deletes=True), CLEAR):
        rows, refused = put({}, [Event(1, "x", 1), gone, Event(1, None, 2, ("a",)), Event(1, None, 3, ("a",))], 0)
        assert (rows, list(refused)) == ({}, [2, 3])


def changes(*ops: str | None, after: bytes | None = b"{}", empty: bool = False) -> Changes:
    nothing, rows = pa.nulls(len(ops), pa.binary()), pa.array([after] * len(ops), pa.binary())
    return Changes(ops, nothing, nothing, rows, [empty] * len(ops), {}, {})


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_what_sets_a_row_has_to_have_one(op: str) -> None:
    assert DEBEZIUM.judge(changes(op)) == ([False], [False], {})
    assert DEBEZIUM.judge(changes(op, after=None)).errors == {0: 'field "after": missing'}


def test_what_takes_rows_away() -> None:
    assert DEBEZIUM.judge(changes("d", after=None)) == ([True], [False], {})
    assert DEBEZIUM.judge(changes("t", after=None)) == ([True], [True], {})
    assert DEBEZIUM.judge(changes(None, after=None, empty=True)) == ([True], [False], {})


def test_what_is_no_change_is_an_error_row() -> None:
    assert DEBEZIUM.judge(changes(None, "m", "C")).errors == {
        0: 'field "op": missing',
        1: 'field "op": none of c, r, u, d and t',
        2: 'field "op": none of c, r, u, d and t',
    }
