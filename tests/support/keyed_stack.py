"""Keyed tables on a real source, by the oracle's shapes, compared with it at every tick that can be read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from sqlalchemy import select

from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable
from tests.support import kafka as broker
from tests.support.debezium_oracle import DebeziumCase, DebeziumShape
from tests.support.keyed_cases import PLAIN
from tests.support.keyed_oracle import Apply, Case, Record, Shape, State, Tick, check_errors, check_rows, upsert
from tests.support.model import records
from tests.support.stack import Stack, Table


@dataclass(frozen=True)
class KeyedTable(Table):
    """:param shape: says everything but the name and the reference.
    :param apply: what an event of its envelope does.
    :param vectors: its files have deletion vectors.
    """

    shape: Shape = PLAIN
    apply: Apply = upsert
    vectors: bool = True

    def spec(self, topic: str) -> TableSpec:
        return self.shape.spec.model_copy(update={"reference": topic, "deletion_vectors": self.vectors})


@dataclass(frozen=True)
class ChangedTable(KeyedTable):
    """Of a topic with changes."""

    def states(self, stack: Stack, source_id: ItemId) -> Mapping[int, State]:
        upstream = records(stack.kafka, stack.topic(source_id))
        read = tuple(Record(r.partition, r.offset, r.key, r.value, r.timestamp_ms) for r in upstream)
        return DebeziumCase(cast(DebeziumShape, self.shape), ticks_of(stack, source_id), read).states()


def keyed_tables(shapes: Mapping[str, Shape]) -> list[Table]:
    """Two of each shape: one with deletion vectors, and one that is merged."""
    return [
        KeyedTable(name.replace(" ", "_") + ("" if vectors else "_merged"), shape=shape, vectors=vectors)
        for vectors in (True, False)
        for name, shape in shapes.items()
    ]


def sent(case: Case) -> Iterable[broker.Record]:
    """What a case's records are to a producer. The broker gives offsets of its own, and would remove old records."""
    now = int(time.time() * 1000)
    return [broker.Record(r.value, r.key, r.partition, now - r.timestamp % 1000) for r in case.records]


def ticks_of(stack: Stack, source_id: ItemId) -> tuple[Tick, ...]:
    query = select(TickRow).where(TickRow.source_id == source_id).order_by(TickRow.number)
    with stack.catalog.read() as session:
        rows = [(row.number, row.lower, row.upper) for row in session.scalars(query)]
    return tuple(
        Tick(number, {int(lane): (lower.offsets.get(lane, 0), end) for lane, end in upper.offsets.items()})
        for number, lower, upper in rows
    )


def states_of(stack: Stack, source_id: ItemId, table: KeyedTable) -> dict[int, State]:
    """What the table must hold as of every tick that there has been."""
    upstream = records(stack.kafka, stack.topic(source_id))
    read = tuple(Record(r.partition, r.offset, r.key, r.value, r.timestamp_ms) for r in upstream)
    return Case(table.shape, ticks_of(stack, source_id), read).states(table.apply)


def check_keyed(stack: Stack, source_id: ItemId, table: KeyedTable) -> int:
    """Rows and errors as of every tick that the table can be read at; the newest of these."""
    return check_states(stack, table, states_of(stack, source_id, table))


def check_states(stack: Stack, table: KeyedTable, states: Mapping[int, State], *, texts: bool = True) -> int:
    """:param texts: also what errors say."""
    compared = 0
    for number, state in states.items():
        try:
            with stack.catalog.read() as session:
                point = reads.table_read_point(session, stack.table(table.name).id, tick=number)
        except NotReadable:
            continue
        check_rows(table.shape, state, stack._read(point, "data"))
        check_errors(state, stack._read(point, "errors"), texts=texts)
        compared = number
    stack.check_changes(table.name)
    with stack.catalog.read() as session:
        assert reads.table_read_point(session, stack.table(table.name).id).tick == compared
    return compared
