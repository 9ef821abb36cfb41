"""Members that take some partitions of a source."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_mzshare.formats import fastjson
from airflow_provider_mzshare.storage.fanout.decode import Decoded, decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from tests.unit.storage.fanout.records import TICK, batch_of, member

GOOD = [b'{"a":1}', b'{"a":2}', b'{"a":"bad"}']


def mixed() -> pa.RecordBatch:
    """Three partitions, the records of which lie between each other."""
    table = pa.Table.from_batches([batch_of(GOOD, partition=p, first=10 * p) for p in range(3)])
    order = [3 * p + n for n in range(3) for p in range(3)]
    return table.take(pa.array(order)).combine_chunks().to_batches()[0]


def decoded(table: MemberPlan, batch: pa.RecordBatch, ends: dict[str, tuple[int, ...]] | None = None) -> Decoded:
    return decode_batch(batch, FanoutPlan(TICK, (table,), ends or {}))[table.table_id]


def same(one: Decoded, other: Decoded) -> bool:
    pairs = ((one.data, other.data), (one.errors, other.errors))
    return all(a.hash == b.hash and a.batch.equals(b.batch) if a and b else a is b for a, b in pairs)


def test_a_member_takes_the_records_of_its_partitions_and_no_others() -> None:
    table = member(("a", "bigint"), partitions=(1,))
    only = decoded(member(("a", "bigint")), batch_of(GOOD, partition=1, first=10))
    assert None not in (only.data, only.errors)
    assert same(decoded(table, mixed()), only)


def test_of_a_batch_without_any_of_them_it_gets_nothing() -> None:
    table = member(("a", "bigint"), partitions=(7,))
    assert decoded(table, mixed()) == Decoded(None, None)


def test_ticks_of_a_group_are_told_by_the_records_own_partition() -> None:
    ends = {"0": (1,), "1": (12,), "2": (20,)}
    table = member(("a", "bigint"), partitions=(1, 2))
    found = decoded(table, mixed(), ends)
    assert found.data is not None
    assert found.errors is not None
    places = found.data.batch.select(["_mz_partition", "_mz_offset", "_mz_tick"]).to_pylist()
    assert sorted(tuple(row.values()) for row in places) == [
        (1, 10, TICK), (1, 11, TICK), (2, 20, TICK + 1), (2, 21, TICK + 1)
    ]  # fmt: skip
    assert sorted(found.errors.batch.column("_mz_tick").to_pylist()) == [TICK + 1, TICK + 1]


def test_members_of_the_same_partitions_share_one_parse(monkeypatch) -> None:
    parsed = []
    decode_all = fastjson._decode_all

    def counting(shape, raw):
        parsed.append(len(raw))
        return decode_all(shape, raw)

    monkeypatch.setattr(fastjson, "_decode_all", counting)
    tables = tuple(member(("a", "bigint"), id=f"u{n}", partitions=(n % 2,)) for n in range(8))
    found = decode_batch(mixed(), FanoutPlan(TICK, tables))
    assert parsed == [3, 3]
    assert all(same(found[f"u{n}"], found[f"u{n % 2}"]) for n in range(8))


def test_a_plan_with_partitions_travels() -> None:
    plan = FanoutPlan(TICK, (member(("a", "text"), partitions=(3, 4), text_columns=("a",), format="none"),))
    assert FanoutPlan.from_json(plan.to_json()) == plan
