"""Tables of a real Postgres, as ours hold them: their stream decoded and folded in memory, in any groups of ticks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.postgres.decoding import rows
from airflow_provider_mzshare.connectors.postgres.place import LANE, PLACE
from airflow_provider_mzshare.connectors.postgres.specs import PostgresExportDetails, UpstreamColumn
from airflow_provider_mzshare.connectors.postgres.types import our_type
from airflow_provider_mzshare.connectors.records import chunks, from_spark
from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.envelopes.base import CLEARS, MARKS
from airflow_provider_mzshare.storage.fanout.decode import Decoded, decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from tests.support.pgoutput import Segment

Row = tuple[Any, ...]


def spec_of(connection: psycopg.Connection[Any], table: str, keys: Sequence[str]) -> TableSpec:
    """As CREATE TABLE would keep it."""
    (oid,) = connection.execute("SELECT %s::regclass::oid::bigint", [table]).fetchone() or (0,)
    found = connection.execute(
        "SELECT attname, atttypid::bigint, atttypmod, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [oid],
    ).fetchall()
    upstream = tuple(
        UpstreamColumn(name=name, oid=kind, mod=mod, upstream=text, type=our_type(kind, mod))
        for name, kind, mod, text in found
    )
    return TableSpec(
        reference=table,
        namespace="public",
        format="postgres",
        envelope="postgres",
        columns=tuple(ColumnSpec(name=each.name, type=each.type or "text") for each in upstream),
        details=PostgresExportDetails(oid=oid, columns=upstream, keys=tuple(keys)),
    )


def plan_of(spec: TableSpec, table_id: str = "u1", visible: tuple[int, str] | None = None) -> MemberPlan:
    return member_plan(table_id, spec, place=PLACE, hash_version=1, visible=visible)


def row_batches(segments: Iterable[Segment]) -> list[pa.RecordBatch]:
    """As they come through Spark."""
    return list(from_spark(chunks(batch for each in segments for batch in rows(each.batch, each.prologue))))


@dataclass(frozen=True)
class Stream:
    """:param ends: of ticks 1, 2, …; a tick has what was committed since the one before."""

    batches: Sequence[pa.RecordBatch]
    ends: Sequence[int]

    def decoded(self, first: int, last: int, members: Sequence[MemberPlan]) -> dict[str, list[Decoded]]:
        """A pass over the ticks from ``first`` to ``last``."""
        low, high = ([0, *self.ends][first - 1], self.ends[last - 1])
        plan = FanoutPlan(first, tuple(members), {LANE: tuple(self.ends[first - 1 : last - 1])})
        found: dict[str, list[Decoded]] = {each.table_id: [] for each in members}
        for batch in self.batches:
            lsn = batch.column("lsn")
            some = batch.filter(pc.and_(pc.greater_equal(lsn, low), pc.less(lsn, high)))
            if some.num_rows:
                for table_id, each in decode_batch(some, FanoutPlan.from_json(plan.to_json())).items():
                    found[table_id].append(each)
        return found


class Held:
    """A table's rows, in memory, which groups of ticks are put into."""

    def __init__(self, member: MemberPlan) -> None:
        self.member = member
        self.schema = pa.schema([each for each in member.events_schema if each.name not in MARKS])
        self.rows = self.schema.empty_table()
        self.refused: list[str] = []
        self.errors: list[str] = []
        self.bad: list[dict[str, Any]] = []
        """The changes that could not be decoded, as the errors show them."""

    def put(self, decoded: Sequence[Decoded]) -> None:
        member = self.member
        events = pa.Table.from_batches([each.data.batch for each in decoded if each.data], member.events_schema)
        self.bad += [json.loads(v) for each in decoded if each.errors for v in each.errors.batch["value"].to_pylist()]
        self.errors += [t for each in decoded if each.errors for t in each.errors.batch.column("error").to_pylist()]
        events = events.sort_by([(n, "ascending") for n in system_names(events.schema.names) if n not in MARKS])
        keys = list(member.keys)
        touched = set(zip(*(events.column(name).to_pylist() for name in keys), strict=True))
        cleared = any(events.column(CLEARS).to_pylist())
        mask = [cleared or key in touched for key in zip(*(self.rows.column(n).to_pylist() for n in keys), strict=True)]
        mine = pa.array(mask, pa.bool_())
        assert member.change_envelope is not None
        settled = member.change_envelope.settle(events, self.rows.filter(mine), member.keys)
        self.refused += settled.refused.values()
        after = settled.after.select(self.schema.names)
        self.rows = pa.concat_tables([self.rows.filter(pc.invert(mine)), after]).combine_chunks()

    def contents(self) -> Mapping[Row, Row]:
        names = [name for name, _ in self.member.columns]
        kinds = dict(self.member.columns)
        columns = [self.rows.column(name).to_pylist() for name in names]
        columns = [_parsed(each) if kinds[name] == "jsonb" else each for name, each in zip(names, columns, strict=True)]
        return by_key(list(zip(*columns, strict=True)), names, self.member.keys)


def _parsed(texts: Sequence[str | None]) -> list[Any]:
    return [None if text is None else json.loads(text) for text in texts]


def by_key(found: Sequence[Row], names: Sequence[str], keys: Sequence[str]) -> Mapping[Row, Row]:
    at = [list(names).index(name) for name in keys]
    wanted = {tuple(row[number] for number in at): row for row in found}
    assert len(wanted) == len(found), "a key twice"
    return wanted


def check_groups(
    stream: Stream,
    members: Mapping[str, MemberPlan],
    states: Sequence[Mapping[str, Mapping[Row, Row]]],
    cuts: Iterable[int],
) -> dict[str, Held]:
    """Put groups of ticks, and compare with what the upstream held at the end of each. :param cuts: last ticks."""
    held = {name: Held(member) for name, member in members.items()}
    for before, last in pairwise([0, *cuts]):
        found = stream.decoded(before + 1, last, list(members.values()))
        for name, each in held.items():
            each.put(found[each.member.table_id])
            assert (each.errors, each.refused) == ([], [])
            found_rows, wanted = each.contents(), states[last - 1][name]
            for key in found_rows.keys() | wanted.keys():
                there, asked = found_rows.get(key, ()), wanted.get(key, ())
                apart = [pair for pair in zip_longest(there, asked) if pair[0] != pair[1]]
                assert not apart, f"{name}, tick {last}, key {key}: {apart}"
    return held
