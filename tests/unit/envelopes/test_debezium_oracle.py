"""The oracle of ENVELOPE DEBEZIUM: equal to a real Debezium's upstream, and cases that can be told by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.debezium.recorded import Stream, check_upstream, streams
from tests.support.debezium_cases import NAMED, SHAPES, drawn, truncates
from tests.support.debezium_oracle import (
    CODED,
    PLACEHOLDER,
    DebeziumCase,
    DebeziumShape,
    Nothing,
    Removes,
    RemovesAll,
    Sets,
    change_of,
    contents,
    unavailable,
)
from tests.support.keyed_oracle import ErrorRow, Record, State, Tick

PLAIN = DebeziumShape(columns=(("n", "bigint"), ("name", "text")), key_format="json", key_columns=(("id", "bigint"),))
KEY, OTHER = b'{"id": 1}', b'{"id": 2}'


def told(op: str, after: Any = None, before: Any = None) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, "source": {}}).encode()


def case(*values: tuple[bytes | None, bytes | None], shape: DebeziumShape = PLAIN) -> DebeziumCase:
    """A tick for each record."""
    records = tuple(Record(0, number, key, value) for number, (key, value) in enumerate(values))
    return DebeziumCase(shape, tuple(Tick(n + 1, {0: (n, n + 1)}) for n in range(len(values))), records)


def last(made: DebeziumCase) -> State:
    return made.states()[made.ticks[-1].number]


@pytest.mark.parametrize("stream", [pytest.param(each, id=each.name) for each in streams()])
def test_recorded_streams_are_their_upstream_at_every_mark(stream: Stream) -> None:
    check_upstream(stream)


def test_recorded_streams_have_everything_in_them() -> None:
    seen: set[object] = set()
    for stream in streams():
        keys: set[bytes | None] = set()
        for record in stream.records:
            change = change_of(stream.case.shape, record, 1)
            assert not isinstance(change, ErrorRow), change
            value = json.loads(record.value or b"null") or {}
            wrapped = "payload" in value
            op = (value.get("payload") or value).get("op")
            again = record.key in keys and op == "r"
            seen |= {(type(change), wrapped, bool(getattr(change, "kept", ())), op, again)}
            seen |= {("kept", name) for name in getattr(change, "kept", ())}
            seen |= {"moved"} if isinstance(change, Sets) and change.before not in (None, change.key) else set()
            seen |= {"transaction"} if (value.get("payload") or value).get("transaction") else set()
            keys.add(record.key)
    for wrapped in (True, False):
        assert (Sets, wrapped, True, "u", False) in seen
        assert (Sets, wrapped, False, "r", True) in seen
        assert (Removes, wrapped, False, "d", False) in seen
        assert (RemovesAll, wrapped, False, "t", False) in seen
    assert (Removes, False, False, None, False) in seen
    assert {("kept", name) for name in ("big", "doc", "raw", "tags", "nums")} <= seen
    assert {"moved", "transaction", (Nothing, False, False, None, False)} <= seen


def test_a_key_is_made_changed_and_removed_and_its_tombstone_changes_nothing_more() -> None:
    made = case(
        (KEY, told("r", {"id": 1, "n": 1})), (KEY, told("u", {"id": 1, "n": 2, "name": "x"})),
        (KEY, told("r", {"id": 1, "n": 2, "name": "x"})), (KEY, told("d", before={"id": 1})), (KEY, None),
    )  # fmt: skip
    assert [list(contents(state).values()) for state in made.states().values()] == [
        [(1, None, 1)], [(2, "x", 1)], [(2, "x", 1)], [], [],
    ]  # fmt: skip
    assert not last(made).errors


@pytest.mark.parametrize("value", [None, b"null", b'{"schema": {}, "payload": null}', told("d")])
def test_a_tombstone_and_a_deletion_without_a_row_remove_the_records_key(value: bytes | None) -> None:
    assert last(case((KEY, told("c", {"n": 1})), (KEY, value))) == State()


def test_placeholders_are_filled_from_the_row_before() -> None:
    made = case((KEY, told("c", {"n": 1, "name": "big"})), (KEY, told("u", {"n": 2, "name": PLACEHOLDER})))
    assert list(contents(last(made)).values()) == [(2, "big", 1)]
    (row,) = last(made).rows.values()
    assert (row.tick, row.offset) == (2, 1)


def test_a_placeholder_without_a_row_is_an_error_and_changes_nothing() -> None:
    made = case(
        (KEY, told("u", {"n": 2, "name": PLACEHOLDER})), (KEY, told("u", {"n": 3, "name": "all"})),
        (KEY, told("d")), (KEY, told("u", {"n": 4, "name": PLACEHOLDER})),
    )  # fmt: skip
    assert [list(contents(state).values()) for state in made.states().values()] == [[], [(3, "all", 1)], [], []]
    assert [each.record.offset for each in last(made).errors] == [0, 3]


@pytest.mark.parametrize("value", [PLACEHOLDER, CODED, [PLACEHOLDER], [CODED], list(PLACEHOLDER.encode())])
def test_what_stands_for_a_value_that_is_not_sent(value: Any) -> None:
    assert unavailable(value)
    assert not unavailable(None)
    assert not unavailable([[value]])
    assert not unavailable([])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, b"{"),
        (KEY, b"[]"),
        (KEY, b"{}"),
        (KEY, told("x", {"n": 1})),
        (KEY, told("c")),
        (KEY, told("u", before={"n": 1})),
        (KEY, told("u", [1])),
        (KEY, told("u", {"n": "1"})),
        (KEY, told("d", before=7)),
        (None, told("c", {"id": 1, "n": 1})),
        (None, None),
        (b"{}", told("d", before={"id": 1})),
        (b'{"id": null}', None),
        (b'{"id": "__debezium_unavailable_value"}', told("c", {"n": 1})),
    ],
)
def test_bad_records_are_errors_and_change_nothing(key: bytes | None, value: bytes | None) -> None:
    made = case((KEY, told("c", {"n": 1})), (key, value))
    assert list(contents(last(made)).values()) == [(1, None, 1)]
    assert [each.record.offset for each in last(made).errors] == [1]


def test_all_rows_go_in_order_in_one_partition_and_nobody_knows_in_several() -> None:
    values = [(KEY, told("c", {"n": 1})), (None, told("t")), (OTHER, told("c", {"n": 2}))]
    assert list(contents(last(case(*values))).values()) == [(2, None, 2)]
    lanes = {0: (0, 1), 1: (0, 2)}
    spread = (Record(0, 0, *values[0]), Record(1, 0, *values[1]), Record(1, 1, *values[2]))
    made = DebeziumCase(PLAIN, (Tick(1, {0: (0, 1), 1: (0, 0)}), Tick(2, lanes)), spread)
    assert made.stalled == 2
    assert list(made.states()) == [1]


def test_where_the_key_is_in_the_row_records_need_none() -> None:
    shape = DebeziumShape(columns=(("id", "bigint"), ("n", "bigint")), primary_key=("id",))
    made = case(
        (None, told("c", {"id": 1, "n": 1})),
        (b"?", told("u", {"id": 2, "n": 1}, before={"id": 1, "n": 1})),
        (KEY, None),
        (None, told("d", before={"id": 2, "n": 1})),
        (b"?", told("d")),
        shape=shape,
    )
    assert [list(contents(state)) for state in made.states().values()] == [[(1,)], [(2,)], [(2,)], [], []]
    assert [each.record.offset for each in last(made).errors] == [4]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_generated_streams_have_everything_in_them(shape: DebeziumShape) -> None:
    seen: set[object] = set()
    for seed in range(20):
        made = drawn(seed, shape)
        states, rows = made.states(), {}
        for tick in made.ticks:
            keys: set[object] = set()
            for record in made.of(tick):
                change = change_of(shape, record, tick.number)
                key = getattr(change, "key", None)
                there = key in rows
                kept = bool(getattr(change, "kept", ()))
                wrapped = b'"payload"' in (record.value or b"")
                seen |= {(type(change), there), (type(change), wrapped), ("kept", kept, there)}
                seen |= {"twice in a tick"} if key in keys else set()
                seen |= (
                    {"again", change.row.values == rows[key].values} if isinstance(change, Sets) and there else set()
                )
                keys.add(key)
            rows = states[tick.number].rows
    wanted: set[object] = {(Sets, True), (Sets, False), (Removes, True), (Removes, False), (ErrorRow, False)}
    wanted |= {("kept", True, True), ("kept", True, False), "twice in a tick", "again"}
    wanted |= {(Nothing, False)} if shape.primary_key else set()
    assert wanted <= seen, wanted - seen


def test_generated_streams_may_say_that_all_rows_are_gone() -> None:
    for shape in (PLAIN, NAMED):
        made = [drawn(seed, shape, partitions=1, clears=0.1) for seed in range(5)]
        assert any(truncates(each) for each in made)
        assert all(each.stalled is None for each in made)
        spread = [drawn(seed, shape, partitions=3, clears=0.1) for seed in range(5)]
        assert any(each.stalled for each in spread)
        assert not any(truncates(drawn(seed, shape)) for seed in range(5))
