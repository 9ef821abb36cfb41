"""The oracle of keyed tables: cases that can be told by hand, and what its cases are made of."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.keyed_cases import PLAIN, SHAPES, Step, assemble, drawn, keys_of
from tests.support.keyed_oracle import (
    Case,
    ErrorRow,
    Event,
    Record,
    Row,
    Shape,
    State,
    Tick,
    adding,
    check_errors,
    check_rows,
    event_of,
    row_table,
    state_hash,
)

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'


def case(*ticks: list[Step], shape: Shape = PLAIN) -> Case:
    return assemble(shape, list(ticks))


def rows(state: State) -> list[tuple[object, ...]]:
    return sorted(row.all for row in state.rows.values())


def test_a_key_is_inserted_updated_deleted_and_inserted_again() -> None:
    found = case(
        [Step(0, b"a", ONE), Step(0, b"b", ONE)], [Step(0, b"a", TWO)], [Step(0, b"a", None)], [], [Step(0, b"a", ONE)]
    ).states()
    assert rows(found[1]) == [(1, "one", "a", 1, 0, 0), (1, "one", "b", 1, 0, 1)]
    assert rows(found[2]) == [(1, "one", "b", 1, 0, 1), (2, "two", "a", 2, 0, 2)]
    assert rows(found[3]) == rows(found[4]) == [(1, "one", "b", 1, 0, 1)]
    assert rows(found[5]) == [(1, "one", "a", 5, 0, 4), (1, "one", "b", 1, 0, 1)]


def test_an_update_to_equal_values_moves_the_place() -> None:
    assert rows(case([Step(0, b"a", ONE)], [Step(0, b"a", ONE)]).states()[2]) == [(1, "one", "a", 2, 0, 1)]


def test_ticks_come_before_places() -> None:
    """The tick decides between partitions, whatever their offsets; within a tick it is the place."""
    later = case([Step(1, b"a", ONE)], [Step(0, b"a", TWO)]).states()[2]
    assert rows(later) == [(2, "two", "a", 2, 0, 0)]
    together = case([Step(1, b"a", ONE), Step(0, b"a", TWO)]).states()[1]
    assert rows(together) == [(1, "one", "a", 1, 1, 0)]


def test_what_removes_nothing_is_no_error() -> None:
    assert case([Step(0, b"a", None), Step(0, b"a", None)]).states()[1] == State()


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (None, ONE, "key: NULL"),
        (None, b"{", "key: NULL"),
        (b"\xff", ONE, "key: invalid UTF-8 at byte 0"),
        (b"\xff", b"{", "key: invalid UTF-8 at byte 0"),
        (b"\xff", None, "key: invalid UTF-8 at byte 0"),
        (b"a", b"{", "not valid JSON"),
        (b"a", b"", "value is empty"),
        (b"a", b'{"n": "1", "name": 1}', 'field "n": expected bigint, got string'),
    ],
)
def test_an_error_leaves_the_key_as_it_was(key: bytes | None, value: bytes | None, text: str) -> None:
    found = case([Step(0, b"a", ONE)], [Step(0, key, value)]).states()[2]
    assert rows(found) == [(1, "one", "a", 1, 0, 0)]
    assert found.errors == (ErrorRow(Record(0, 1, key, value), 2, text),)


def test_inline_a_bad_value_is_a_row_and_a_bad_key_is_not() -> None:
    found = case([Step(0, b"a", ONE), Step(0, b"a", b"{"), Step(0, None, ONE)], shape=SHAPES["inline"]).states()[1]
    assert rows(found) == [(None, None, "a", "not valid JSON", 1, 0, 1)]
    assert [each.text for each in found.errors] == ["key: NULL"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b'{"a": null, "b": "x"}', "key: a is NULL"),
        (b'{"a": 1}', "key: b is NULL"),
        (b'{"a": 1, "b": 1}', 'key: field "b": expected text, got number'),
        (b'{"a": null, "b": 1}', 'key: field "b": expected text, got number'),
        (b"[]", "key: the JSON value is not an object"),
    ],
)
def test_every_column_of_a_key_must_be_there(key: bytes, text: str) -> None:
    found = event_of(SHAPES["composite"], Record(0, 0, key, None), 1)
    assert isinstance(found, ErrorRow)
    assert found.text == text


def test_a_composite_key_is_its_columns_and_not_its_bytes() -> None:
    keys = (b'{"a": 1, "b": "x"}', b'{"b":"x","a":1,"c":0}')
    found = case([Step(0, key, value) for key, value in zip(keys, (ONE, TWO), strict=True)], shape=SHAPES["composite"])
    assert rows(found.states()[1]) == [(2, "two", 1, "x", 1, 0, 1)]


def test_a_deletion_needs_its_key_only() -> None:
    shape = Shape(include=(("key", "key"), ("timestamp", "ts")))
    late = 253_402_300_800_000
    assert isinstance(event_of(shape, Record(0, 0, b"a", ONE, late), 1), ErrorRow)
    found = event_of(shape, Record(0, 0, b"a", None, late), 1)
    assert isinstance(found, Event)
    assert found.deletes


def test_an_envelope_that_adds_sees_every_event_once() -> None:
    one = case(
        [Step(0, b"a", ONE), Step(0, b"a", TWO)], [Step(0, b"a", TWO)], [Step(0, b"a", None), Step(0, b"a", ONE)]
    )
    found = one.states(adding(PLAIN))
    assert [rows(found[tick])[0][0] for tick in (1, 2, 3)] == [3, 5, 1]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_generated_streams_have_everything_in_them(shape: Shape) -> None:
    """Over a few seeds: each kind of event in each state of its key, holes, several times in a tick, and errors."""
    seen: set[object] = set()
    for seed in range(20):
        stream = drawn(seed, shape)
        held: set[object] = set()
        for tick in stream.ticks:
            twice: set[object] = set()
            for each in stream.events([tick]):
                if isinstance(each, ErrorRow):
                    seen.add("key error" if each.text.startswith("key: ") else "value error")
                    continue
                seen.add(("delete" if each.deletes else "set", each.key in held))
                seen |= {"twice in a tick"} if each.key in twice else set()
                seen |= {"inline"} if shape.inline and each.row.values[-1] else set()
                twice.add(each.key)
                (held.discard if each.deletes else held.add)(each.key)
        places = {(record.partition, record.offset) for record in stream.records}
        seen |= {"hole"} if any((p, o - 1) not in places for p, o in places if o) else set()
    wanted: set[object] = {(what, there) for what in ("set", "delete") for there in (True, False)}
    wanted |= {"key error", "twice in a tick", "hole"}
    can_be_bad = shape.format != "bytes"
    wanted |= {"inline"} if shape.inline else {"value error"} if can_be_bad else set()
    assert wanted <= seen, wanted - seen


def test_a_seed_is_a_stream() -> None:
    assert drawn(3) == drawn(3) != drawn(4)
    assert all(len(keys_of(shape)[0]) > 3 for shape in SHAPES.values())


def spoiled(table: pa.Table, name: str, value: object) -> pa.Table:
    values = [value, *table.column(name).to_pylist()[1:]]
    number = table.schema.get_field_index(name)
    return table.set_column(number, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def test_a_table_is_compared_in_every_column_and_in_no_order() -> None:
    made = case([Step(0, b"a", ONE), Step(1, b"b", TWO), Step(1, b"c", ONE)])
    state = made.states()[1]
    table = row_table(PLAIN, list(state.rows.values()))
    check_rows(PLAIN, state, table.take([2, 0, 1]))
    wrong = [table.slice(1), pa.concat_tables([table, table.slice(0, 1)])]
    wrong += [spoiled(table, name, 7) for name in ("n", "_mz_tick", "_mz_partition", "_mz_offset")]
    wrong += [spoiled(table, "key", "z"), spoiled(table, "name", None)]
    for other in wrong:
        with pytest.raises(AssertionError):
            check_rows(PLAIN, state, other)


def test_errors_are_compared_by_place_and_by_what_they_say() -> None:
    state = case([Step(0, None, ONE)]).states()[1]
    row = {"_mz_partition": 0, "_mz_offset": 0, "_mz_tick": 1, "key": None, "value": ONE, "error": "key: NULL"}
    check_errors(state, pa.Table.from_pylist([row]))
    check_errors(state, pa.Table.from_pylist([{**row, "error": "?"}]), texts=False)
    for wrong in ([{**row, "error": "?"}], [{**row, "_mz_offset": 1}], [row, row]):
        with pytest.raises(AssertionError):
            check_errors(state, pa.Table.from_pylist(wrong))


def test_a_states_hash_does_not_depend_on_the_way_to_it() -> None:
    here = case([Step(0, b"a", ONE)]).states()[1]
    there = case([Step(0, b"a", TWO)], [Step(1, b"a", None), Step(1, b"a", ONE)]).states()[2]
    assert here != there
    assert state_hash(PLAIN, here) == state_hash(PLAIN, there) != 0
    ((key, row),) = here.rows.items()
    assert state_hash(PLAIN, State({key: replace(row, values=(2, *row.values[1:]))})) != state_hash(PLAIN, here)


def test_records_outside_of_all_ticks_are_not_there_yet() -> None:
    made = Case(PLAIN, (Tick(1, {0: (0, 1)}),), (Record(0, 0, b"a", ONE), Record(0, 1, b"a", None)))
    assert made.states()[1].rows == {("a",): Row((1, "one", "a"), 1, 0, 0)}
    assert made.batch().num_rows == 1
