"""What records say of keys, by the pass's own decoding and by the oracle: the same events, ticks and error rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, errors_schema
from airflow_provider_mzshare.storage.writing.member_plans import key_of, member_plan
from tests.support.keyed_cases import SHAPES, cases, drawn
from tests.support.keyed_oracle import DELETES, Case, Shape, check_errors


def decoded(case: Case) -> tuple[pa.Table, pa.Table]:
    """Events and error rows, of all ticks in one batch."""
    member = member_plan("u1", case.shape.spec, place=PARTITIONED, hash_version=1)
    lanes = case.ticks[-1].ranges
    ends = {str(lane): tuple(tick.ranges.get(lane, (0, 0))[1] for tick in case.ticks[:-1]) for lane in lanes}
    found = decode_batch(case.batch(), FanoutPlan(1, (member,), ends if len(case.ticks) > 1 else {}))["u1"]
    parts = ((found.data, member.events_schema), (found.errors, errors_schema()))
    events, errors = (pa.Table.from_batches([rows.batch] if rows else [], schema) for rows, schema in parts)
    return events, errors


def shown(events: pa.Table, shape: Shape) -> list[tuple[Any, ...]]:
    """In the order of ticks and places. An event that deletes has a key and nothing else."""
    names = [*shape.key, "_mz_tick", "_mz_partition", "_mz_offset", DELETES]
    rows = events.sort_by([(name, "ascending") for name in ("_mz_tick", "_mz_partition", "_mz_offset")]).to_pylist()
    return [tuple(row[name] for name in (names if row[DELETES] else events.schema.names)) for row in rows]


def check(case: Case) -> None:
    events, errors = decoded(case)
    wanted = case.event_table(case.ticks)
    assert events.schema == wanted.schema
    assert shown(events, case.shape) == shown(wanted, case.shape)
    check_errors(case.states()[case.ticks[-1].number], errors)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_events_are_the_oracles(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_of_long_streams_too(shape: Shape) -> None:
    assert key_of(shape.spec) == shape.key
    for seed in range(5):
        check(drawn(seed, shape, most=80, bad=0.3))
