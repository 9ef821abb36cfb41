"""Tables whose rows change, compared by key: the oracle's rows do not differ, and whatever is changed is told."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.places import PARTITIONED, Place, PlaceColumn
from airflow_provider_mzshare.storage import keyed_comparison
from airflow_provider_mzshare.storage.fanout.hashing import row_hash
from airflow_provider_mzshare.storage.keyed_comparison import (
    NONE,
    Keyed,
    LastEvents,
    Measures,
    Mismatch,
    OwnFold,
    compare,
    first_of,
)
from tests.plugins.envelope.adding_envelope import ADDING
from tests.support.keyed_cases import PLAIN, SHAPES, Step, assemble, cases, drawn
from tests.support.keyed_oracle import Case, Row, Shape, State, adding, row_table, state_hash

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'


def measures(shape: Shape) -> Measures:
    return Measures(shape.key, PARTITIONED, row_hash(1), [(1, frozenset(shape.schema.names))])


def last_events(case: Case, dice: Random) -> LastEvents:
    """Lane by lane, in parts of any size."""
    events = case.event_table(case.ticks)
    fold = LastEvents(measures(case.shape), events.schema)
    lanes = sorted(set(events.column("_mz_partition").to_pylist()))
    dice.shuffle(lanes)
    for lane in lanes:
        own = events.filter(pa.array([each == lane for each in events.column("_mz_partition").to_pylist()]))
        fold.add(own.combine_chunks().to_batches(max_chunksize=dice.choice((1, 7, 100))))
    return fold


def rows_of(case: Case, state: State) -> Keyed:
    table = row_table(case.shape, list(state.rows.values())[::-1])
    return measures(case.shape).of(table.to_batches(max_chunksize=3), case.shape.schema)


def first(case: Case, rows: list[Row]) -> Mismatch | None:
    events = last_events(case, Random(0)).found()
    found = measures(case.shape).of(row_table(case.shape, rows).to_batches(), case.shape.schema)
    wrong, missing, gone = compare(events, found)
    return first_of([*wrong, missing, gone], events, found)


@settings(max_examples=120, deadline=None)
@given(cases(), st.integers(0, 3))
def test_the_oracles_rows_are_those_of_the_last_events(case: Case, seed: int) -> None:
    state = case.states()[case.ticks[-1].number]
    rows = rows_of(case, state)
    wrong, missing, gone = compare(last_events(case, Random(seed)).found(), rows)
    assert [len(each.rows) for each in (*wrong, missing, gone)] == [0] * 6
    assert (rows.size, rows.hash()) == (len(state.rows), state_hash(case.shape, state))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_of_long_streams_too_however_often_they_are_folded(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_comparison, "PENDING_ROWS", 10)
    case = drawn(5, shape, ticks=20, most=60)
    events = last_events(case, Random(5)).found()
    wrong, missing, gone = compare(events, rows_of(case, case.states()[20]))
    assert [len(each.rows) for each in (*wrong, missing, gone)] == [0] * 6
    assert events.size < len(case.records) / 2


SMALL = assemble(
    PLAIN,
    [
        [Step(0, b"a", ONE), Step(0, b"b", ONE), Step(1, b"c", ONE)],
        [Step(0, b"a", TWO), Step(1, b"d", TWO), Step(1, b"d", None)],
    ],
)
A, B, C = Row((2, "two", "a"), 2, 0, 2), Row((1, "one", "b"), 1, 0, 1), Row((1, "one", "c"), 1, 1, 0)


def test_what_is_wrong_is_told_with_its_first_place() -> None:
    """Events are numbered by their keys' hashes, so only whether there is one is looked at."""

    def told(*rows: Row) -> tuple[Any, ...] | None:
        found = first(SMALL, list(rows))
        return found and (found.what, found.event != NONE, found.row)

    assert told(A, B, C) is None
    assert told(A, C) == ("missing", True, NONE)
    assert told(A, B, C, C) == ("double", True, 2)
    assert told(A, Row((1, "other", "b"), 1, 0, 1), C) == ("differs", True, 1)
    assert told(A, Row((None, "one", "b"), 1, 0, 1), C) == ("differs", True, 1)
    assert told(A, Row((1, "one", "b"), 2, 0, 1), C) == ("differs", True, 1), "another tick"
    assert told(Row((1, "one", "a"), 1, 0, 0), B, C) == ("differs", True, 0), "an older record"
    assert told(A, B, C, Row((2, "two", "d"), 2, 1, 1)) == ("not upstream", True, 3), "a key that was deleted"
    assert told(A, B, C, Row((2, "two", "d"), 2, 1, 2)) == ("differs", True, 3), "the place of the deletion"
    assert told(A, B, C, Row((2, "two", "e"), 2, 1, 3)) == ("not upstream", False, 3), "a key that never was"
    assert told(Row((2, "two", "a"), 2, 0, 3), B, C) == ("not upstream", True, 0), "a place after the last"
    assert told() == ("missing", True, NONE)


def test_the_first_is_that_of_the_lowest_tick_and_place() -> None:
    spoiled = [Row((9, "two", "a"), 2, 0, 2), Row((1, "one", "b"), 1, 0, 1), Row((9, "one", "c"), 1, 1, 0)]
    assert first(SMALL, spoiled) is not None
    assert first(SMALL, spoiled)[2] == 2  # type: ignore[index]
    # b is missing at tick 1, before c.
    found = first(SMALL, [spoiled[0], spoiled[2]])
    assert found is not None
    assert found.what == "missing"


def test_rows_that_only_lost_records_explain_are_told_apart() -> None:
    events = last_events(SMALL, Random(0)).found()
    later = measures(PLAIN).of(row_table(PLAIN, [Row((7, "x", "a"), 2, 0, 9), B]).to_batches(), PLAIN.schema)
    wrong, missing, gone = compare(events, later)
    assert [len(each.rows) for each in wrong] == [0, 0, 0, 0]
    assert (len(missing.rows), gone.rows.tolist()) == (1, [0])


def test_a_key_in_several_lanes_is_noticed() -> None:
    fold = last_events(SMALL, Random(0))
    fold.found()
    assert not fold.is_spread
    fold = last_events(assemble(PLAIN, [[Step(0, b"a", ONE)], [Step(1, b"a", ONE)]]), Random(0))
    fold.found()
    assert fold.is_spread


@settings(max_examples=40, deadline=None)
@given(cases([shape for shape in SHAPES.values() if shape.columns]))
def test_an_envelope_without_a_fold_of_ours_is_folded_by_its_own(case: Case) -> None:
    fold = OwnFold(ADDING, measures(case.shape), case.event_table([]).schema)
    for tick in case.ticks:
        fold.add(case.event_table([tick]).combine_chunks().to_batches(max_chunksize=2)[::-1])
        fold.end_ticks()
    rows = rows_of(case, case.states(adding(case.shape))[case.ticks[-1].number])
    found = compare(fold.found(), rows)
    assert all(not len(each.rows) for each in (*found.wrong, found.missing, found.gone))


def test_a_row_is_hashed_with_the_columns_of_its_tick() -> None:
    old, new = frozenset({"n", "key"}), frozenset({"n", "key", "name"})
    hashes = measures(PLAIN)
    hashes = Measures(hashes.keys, hashes.place, hashes.how, [(1, old), (5, new)])
    table = row_table(PLAIN, [Row((1, None, "a"), 4, 0, 0), Row((1, None, "a"), 5, 0, 1)])
    both = hashes.of(table.to_batches(), PLAIN.schema)
    shorter = table.slice(0, 1).drop_columns(["name"])
    alone = hashes.of(shorter.to_batches(), shorter.schema)
    assert both.row.lo[0] == alone.row.lo[0] != both.row.lo[1]
    assert both.key.lo[0] == both.key.lo[1]


def test_places_are_told_as_they_are() -> None:
    wide = Place(
        (PlaceColumn("lsn", "_mz_lsn", "numeric(20,0)"), PlaceColumn("slot", "_mz_slot", "integer")), "lsn", "slot"
    )
    hashes = Measures(("k",), wide, row_hash(1), [(1, frozenset({"k"}))])
    kinds = [("k", pa.int64()), ("_mz_tick", pa.int64()), ("_mz_lsn", pa.decimal128(20, 0)), ("_mz_slot", pa.int32())]
    row = {"k": 1, "_mz_tick": 3, "_mz_lsn": 2**64 + 5, "_mz_slot": 7}
    found = hashes.of(pa.Table.from_pylist([row], pa.schema(kinds)).to_batches(), pa.schema(kinds))
    assert hashes.place_of(found.at(0)) == (2**64 + 5, 7)
    assert hashes.lane_word == 3
    assert np.asarray(found.order[3]).tolist() == [7]
