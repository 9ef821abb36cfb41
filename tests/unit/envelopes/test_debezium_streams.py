"""Streams of Debezium, made by a real one and generated, through the pass and the fold, against the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.schema import TICK, system_names
from airflow_provider_mzshare.envelopes.base import CLEARS, MARKS, RECORD
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, errors_schema
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from tests.support.debezium.recorded import Stream, streams
from tests.support.debezium_cases import SHAPES, drawn
from tests.support.debezium_oracle import DebeziumCase, DebeziumShape
from tests.support.keyed_cases import groups
from tests.support.keyed_oracle import Tick, check_errors, check_rows, row_table
from tests.unit.envelopes.test_folds import of_keys


class Held:
    """A table's collections, in memory, which groups of ticks are put into."""

    def __init__(self, case: DebeziumCase) -> None:
        self._case = case
        self._member: MemberPlan = member_plan("u1", case.shape.spec, place=PARTITIONED, hash_version=1)
        self.rows = row_table(case.shape, [])
        self.errors = errors_schema(PARTITIONED).empty_table()

    def put(self, group: Sequence[Tick]) -> None:
        """The records are decoded tick by tick, and folded at once."""
        decoded = [
            decode_batch(self._case.batch([tick]), FanoutPlan(tick.number, (self._member,)))["u1"] for tick in group
        ]
        schema = self._member.events_schema
        events = pa.Table.from_batches([each.data.batch for each in decoded if each.data], schema)
        order = [(name, "ascending") for name in system_names(schema.names) if name not in MARKS]
        events = events.sort_by(order)
        cleared = any(events.column(CLEARS).to_pylist())
        mine, others = of_keys(self.rows, events, self._case.shape)
        before, others = (self.rows, self.rows.slice(0, 0)) if cleared else (mine, others)
        envelope = self._member.change_envelope
        assert envelope is not None
        settled = envelope.settle(events, before, self._member.keys)
        self.rows = pa.concat_tables([others, settled.after]).combine_chunks()
        refused = events.take(pa.array(list(settled.refused), pa.int64()))
        columns = [refused.column(name) for name in RECORD.values()]
        texts = pa.array(list(settled.refused.values()), pa.string())
        system = [refused.column(name) for name in (TICK, *PARTITIONED.names)]
        late = pa.Table.from_arrays([*columns, texts, *system], schema=self.errors.schema)
        found = pa.Table.from_batches([each.errors.batch for each in decoded if each.errors], self.errors.schema)
        self.errors = pa.concat_tables([self.errors, found, late])


def check(case: DebeziumCase, cuts: Random) -> None:
    states, held = case.states(), Held(case)
    for group in groups(case, cuts):
        if case.stalled is not None and group[-1].number >= case.stalled:
            return
        held.put(group)
        state = states[group[-1].number]
        check_rows(case.shape, state, held.rows)
        check_errors(state, held.errors, texts=False)


@pytest.mark.parametrize("stream", streams(), ids=lambda stream: stream.name)
def test_what_a_real_debezium_said(stream: Stream) -> None:
    for seed in range(2):
        check(stream.case, Random(seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_generated_streams(shape: DebeziumShape, seed: int) -> None:
    check(drawn(seed, shape), Random(seed))
    check(drawn(seed, shape, partitions=1, clears=0.05), Random(seed))
