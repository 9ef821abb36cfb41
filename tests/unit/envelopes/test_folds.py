"""Envelopes that change rows, against the oracle: however the ticks are grouped, the rows are the same."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.envelopes.base import DELETES, KeyedEnvelope
from airflow_provider_mzshare.envelopes.upsert import UPSERT
from tests.plugins.envelope.adding_envelope import ADDING
from tests.support.keyed_cases import PLAIN, SHAPES, cases, drawn, groups
from tests.support.keyed_oracle import Apply, Case, Shape, Tick, adding, check_rows, row_table, upsert

COUNTED = {name: shape for name, shape in SHAPES.items() if shape.columns}
"""Shapes whose first column is a number."""


def of_keys(table: pa.Table, events: pa.Table, shape: Shape) -> tuple[pa.Table, pa.Table]:
    """The rows of the keys of some events, and the others."""
    wanted = set(zip(*(events.column(name).to_pylist() for name in shape.key), strict=True))
    mine = [key in wanted for key in zip(*(table.column(name).to_pylist() for name in shape.key), strict=True)]
    return table.filter(pa.array(mine, pa.bool_())), table.filter(pa.array([not each for each in mine], pa.bool_()))


def put(envelope: KeyedEnvelope, case: Case, before: pa.Table, ticks: Iterable[Tick]) -> pa.Table:
    """The collection after some ticks, which are folded together."""
    events = case.event_table(ticks)
    mine, others = of_keys(before, events, case.shape)
    after = envelope.fold(events, mine, case.shape.key)
    assert after.schema.names == before.schema.names
    return pa.concat_tables([others, after]).combine_chunks()


def check(envelope: KeyedEnvelope, apply: Apply, case: Case, cuts: st.DataObject | Random) -> None:
    """After every group, the rows are the oracle's as of its last tick."""
    wanted, table = case.states(apply), row_table(case.shape, [])
    for group in groups(case, cuts):
        table = put(envelope, case, table, group)
        check_rows(case.shape, wanted[group[-1].number], table)


@settings(max_examples=120, deadline=None)
@given(cases(), st.data())
def test_upserts_are_those_of_the_oracle_in_any_groups(case: Case, data: st.DataObject) -> None:
    check(UPSERT, upsert, case, data)


@settings(max_examples=60, deadline=None)
@given(cases(COUNTED.values()), st.data())
def test_sums_are_those_of_the_oracle_in_any_groups(case: Case, data: st.DataObject) -> None:
    check(ADDING, adding(case.shape), case, data)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_long_streams(shape: Shape, seed: int) -> None:
    case = drawn(seed, shape, ticks=15, most=60)
    check(UPSERT, upsert, case, Random(seed))
    if shape in COUNTED.values():
        check(ADDING, adding(shape), case, Random(seed))


@settings(max_examples=60, deadline=None)
@given(cases(COUNTED.values()), st.sampled_from([UPSERT, ADDING]), st.data())
def test_two_folds_are_one(case: Case, envelope: KeyedEnvelope, data: st.DataObject) -> None:
    """``fold(fold(before, tick 1), tick 2)`` is ``fold(before, tick 1 and tick 2)``, for all keys of both."""
    cut = data.draw(st.integers(0, len(case.ticks)))
    end = data.draw(st.integers(cut, len(case.ticks)))
    before = put(envelope, case, row_table(case.shape, []), case.ticks[:cut])
    one, rest = case.ticks[cut:end], case.ticks[end:]
    stepwise = put(envelope, case, put(envelope, case, before, one), rest)
    at_once = put(envelope, case, before, [*one, *rest])
    order = [(name, "ascending") for name in ("_mz_tick", "_mz_partition", "_mz_offset")]
    assert stepwise.sort_by(order) == at_once.sort_by(order)


def test_a_tick_that_is_applied_twice_shows_only_where_records_add() -> None:
    """Why there is an envelope that adds: with upserts, a second time changes nothing."""
    case = drawn(1, PLAIN, bad=0, deletes=0)
    table = put(UPSERT, case, row_table(PLAIN, []), case.ticks)
    check_rows(PLAIN, case.states()[case.ticks[-1].number], put(UPSERT, case, table, case.ticks[-1:]))
    table = put(ADDING, case, row_table(PLAIN, []), case.ticks)
    check_rows(PLAIN, case.states(adding(PLAIN))[case.ticks[-1].number], table)
    last = next(tick for tick in reversed(case.ticks) if case.of(tick))
    with pytest.raises(AssertionError, match="key"):
        check_rows(PLAIN, case.states(adding(PLAIN))[last.number], put(ADDING, case, table, [last]))


def test_a_record_without_a_value_is_the_one_that_deletes() -> None:
    values = pa.array([b"", None, b"x"], pa.binary())
    assert UPSERT.deletes(values).to_pylist() == [False, True, False]
    assert DELETES == "_mz_deletes"
