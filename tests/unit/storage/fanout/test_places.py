"""The pass over records whose places are a database's: numbering, rows, errors, files and hashes use the place."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.connectors.records import input_schema
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from tests.support.places import BINLOG, LSN
from tests.unit.storage.fanout.records import member

FAR = (1 << 64) + 5
"""A number that 64 bits do not hold."""


def batch_of(place: Place, *places: tuple[Any, ...], bad: int | None = None) -> pa.RecordBatch:
    rows = [
        {"value": b"bad" if number == bad else b'{"a":1}', **dict(zip(place.given, at, strict=True))}
        for number, at in enumerate(places)
    ]
    return pa.RecordBatch.from_pylist(rows, input_schema(place))


LSNS = [(7, 0), (7, 1), (9, 0), (2**62, 0), (2**62, 1)]
BINLOGS = [("a", Decimal(7), 0), ("b", Decimal(7), 0), ("a", Decimal(FAR), 0), ("a", Decimal(FAR), 1)]


def test_records_of_one_lane_get_the_ticks_of_its_ends() -> None:
    plan = FanoutPlan(3, (member(("a", "bigint"), place=LSN),), {"lsn": (8, 9, 2**62)})
    found = decode_batch(batch_of(LSN, *LSNS), FanoutPlan.from_json(plan.to_json()))["u1"]
    assert found.data is not None
    assert found.data.batch.schema.names == ["a", "_mz_tick", "_mz_lsn", "_mz_index"]
    assert found.data.batch.column("_mz_tick").to_pylist() == [3, 3, 5, 6, 6]
    assert list(zip(*(found.data.batch.column(n).to_pylist() for n in LSN.names), strict=True)) == LSNS


def test_records_of_several_lanes_get_the_ticks_of_their_own() -> None:
    plan = FanoutPlan(3, (member(("a", "bigint"), place=BINLOG),), {"a": (8, FAR), "b": (7, 8)})
    found = decode_batch(batch_of(BINLOG, *BINLOGS), FanoutPlan.from_json(plan.to_json()))["u1"]
    assert found.data is not None
    assert found.data.batch.column("_mz_tick").to_pylist() == [3, 4, 5, 5]
    assert found.data.batch.column("_mz_binlog").to_pylist() == [7, 7, FAR, FAR]


def test_a_table_of_some_lanes_takes_theirs() -> None:
    plan = FanoutPlan(3, (member(("a", "bigint"), place=BINLOG, partitions=("b",)),))
    found = decode_batch(batch_of(BINLOG, *BINLOGS), plan)["u1"]
    assert found.data is not None
    assert found.data.batch.column("_mz_server").to_pylist() == ["b"]


@pytest.mark.parametrize(("place", "places"), [(LSN, LSNS), (BINLOG, BINLOGS)])
def test_files_hold_the_places_and_only_bounds_that_are_exact(
    tmp_path: Path, place: Place, places: list[tuple[Any, ...]]
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    table = member(("a", "bigint"), place=place, data_path=str(tmp_path / "d"), errors_path=str(tmp_path / "e"))
    out = write_partition(iter([batch_of(place, *places, bad=1)]), FanoutPlan(3, (table,)).to_json())
    rows = {row["role"]: row for batch in out for row in batch.to_pylist()}
    for role, folder, wanted in (("data", "d", [places[0], *places[2:]]), ("errors", "e", [places[1]])):
        found = pq.read_table(tmp_path / folder / rows[role]["path"])
        assert list(zip(*(found.column(n).to_pylist() for n in place.names), strict=True)) == wanted
        assert f"{hash_table(found):032x}" == rows[role]["hash"]
        bounds = json.loads(rows[role]["stats"])["maxValues"]
        exact = [name for name, kind in place.stored if kind in ("integer", "bigint")]
        assert bounds == {"_mz_tick": 3, **{n: max(found.column(n).to_pylist()) for n in exact}}


def test_a_table_that_stops_tells_the_lowest_place() -> None:
    table = replace(member(("a", "bigint"), place=BINLOG), stop_on_error=True)
    batches = [batch_of(BINLOG, *BINLOGS[2:], bad=1), batch_of(BINLOG, *BINLOGS[:2], bad=1)]
    parts = [list(write_partition(iter([each]), FanoutPlan(3, (table,)).to_json())) for each in batches]
    found = merge_results(row for part in parts for batch in part for row in batch.to_pylist())["u1"]
    assert found.first_error_at == ("a", FAR, 1)
    assert BINLOG.tell(found.first_error_at) == f"server a, binlog {FAR}, index 1"


def test_the_same_values_at_another_place_have_another_hash() -> None:
    hashes = set()
    for at in LSNS:
        found = decode_batch(batch_of(LSN, at), FanoutPlan(1, (member(("a", "bigint"), place=LSN),)))["u1"]
        assert found.data is not None
        hashes.add(found.data.hash)
    assert len(hashes) == len(LSNS)
