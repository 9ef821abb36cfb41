"""Collections whose rows have a database's places: read in order, by range, and compared with what is upstream."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.schema import system_columns
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.ordered_rows import Ordered
from airflow_provider_mzshare.storage.collections.placed_rows import PlacedRows
from airflow_provider_mzshare.storage.collections.rows import open_snapshot, read_batches
from airflow_provider_mzshare.storage.comparison import (
    DIFFERS,
    DOUBLE,
    MISSING,
    NOT_UPSTREAM,
    Rows,
    differences,
    first_of,
)
from airflow_provider_mzshare.storage.fanout.hashing import row_hash
from tests.support.delta import NAME, new_collection, write_file, write_tick
from tests.support.places import BINLOG, LSN

FAR = 1 << 70


def places(place: Place, n: int) -> list[tuple[Any, ...]]:
    """Of tick n, not in order: two transactions of two records each."""
    if place is LSN:
        return [(2**60 + 10 * n + lsn, index) for lsn in (5, 0) for index in (1, 0)]
    return [(server, Decimal(FAR + 10 * n + at), index) for server, at in (("b", 5), ("a", 0)) for index in (1, 0)]


def schema_of(place: Place) -> pa.Schema:
    return arrow_schema((("n", "bigint"), *system_columns(place.stored)))


def rows_of(place: Place, tick: int) -> list[dict[str, Any]]:
    return [{"n": tick, "_mz_tick": tick, **dict(zip(place.names, at, strict=True))} for at in places(place, tick)]


def filled(root: Path, place: Place, ticks: int = 4) -> Collection:
    collection = new_collection(root, schema=schema_of(place))
    for tick in range(1, ticks + 1):
        rows = pa.Table.from_pylist(rows_of(place, tick), schema_of(place))
        write_tick(collection, tick, files=[write_file(collection, rows)])
    collection.refresh()
    return collection


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("place", [LSN, BINLOG])
def test_rows_come_in_the_order_of_their_places(tmp_path: Path, place: Place, compacted: bool) -> None:
    collection = filled(tmp_path, place)
    if compacted:
        assert compact(collection, min_files=2).done
    wanted = [(tick, *at) for tick in range(1, 5) for at in sorted(places(place, tick))]
    snapshot = open_snapshot(collection.root, NAME, collection.delta_version)
    for part in (1, 3, 100):
        ordered = Ordered(snapshot, ["_mz_tick", *place.names], rows=part).batches()
        assert [tuple(row.values()) for batch in ordered for row in batch.to_pylist()] == wanted
    plain = read_batches(collection.root, NAME, collection.delta_version, ordered=True).read_all()
    assert plain.column_names == ["n"]


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_of_a_range_are_found_however_far_it_is(tmp_path: Path, compacted: bool) -> None:
    for place, lane, base in ((LSN, "lsn", 2**60), (BINLOG, "a", FAR)):
        root = tmp_path / (place.only_lane + place.counted)
        collection = filled(root, place)
        if compacted:
            compact(collection, min_files=2)
        placed = PlacedRows(str(root), NAME, collection.delta_version, place, schema_of(place))
        for tick in range(1, 5):
            found = placed.between(lane, base + 10 * tick, base + 10 * tick + 1)
            assert [row["_mz_tick"] for batch in found for row in batch.to_pylist()] == [tick, tick]
        lanes = ("lsn",) if place is LSN else ("a", "b")
        whole = dict.fromkeys(lanes, (base, base + 100))
        assert placed.first_outside(whole) is None
        short = dict.fromkeys(lanes, (base, base + 40))
        assert placed.first_outside(short) == min(places(place, 4))


@pytest.mark.parametrize("place", [LSN, BINLOG])
def test_every_kind_of_difference_is_found_at_its_place(place: Place) -> None:
    lane = "lsn" if place is LSN else "a"

    def rows(*numbers: tuple[int, int], value: int = 1) -> pa.Table:
        base = 2**60 if place is LSN else FAR
        exact = int if place is LSN else Decimal
        told = [place.in_lane(lane, (exact(base + number), index)) for number, index in numbers]
        made = [{"n": value, "_mz_tick": 1, **dict(zip(place.names, at, strict=True))} for at in told]
        return pa.Table.from_pylist(made, schema_of(place))

    def compared(upstream: pa.Table, *found: pa.Table) -> Any:
        ours = Rows.of({"data": upstream.to_batches(), "errors": []}, place, row_hash(1))
        theirs = Rows.of({"data": pa.concat_tables(found).to_batches(), "errors": []}, place, row_hash(1))
        return first_of(differences(ours, theirs, place))

    base = 2**60 if place is LSN else FAR
    whole = rows((1, 0), (1, 1), (2, 0))
    assert compared(whole, rows((2, 0)), rows((1, 1), (1, 0))) is None
    assert compared(whole, rows((1, 0), (2, 0))) == ((base + 1, 1), MISSING)
    assert compared(whole, whole, rows((1, 2))) == ((base + 1, 2), NOT_UPSTREAM)
    assert compared(whole, whole, rows((1, 1))) == ((base + 1, 1), DOUBLE)
    assert compared(whole, rows((1, 0), (1, 1)), rows((2, 0), value=2)) == ((base + 2, 0), DIFFERS)
