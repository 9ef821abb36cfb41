"""Reads give exactly the rows of a version, without the system columns unless asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.rows import read_batches
from tests.support.delta import NAME, ROWS, new_collection, read_arrow, rows_of, tick_file, write_tick


@pytest.fixture
def five_ticks(tmp_path: Path) -> Collection:
    collection = new_collection(tmp_path)
    for tick in range(1, 6):
        write_tick(collection, tick)
    return collection


def user_rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: row[name] for name in ("n", "text")} for row in rows]


def test_version_0_has_the_columns_and_no_rows(tmp_path: Path) -> None:
    new_collection(tmp_path)
    table = read_arrow(str(tmp_path), NAME, 0)
    assert (table.column_names, table.num_rows) == (["n", "text"], 0)
    assert read_arrow(str(tmp_path), NAME, 0, ordered=True, limit=3).num_rows == 0


@pytest.mark.parametrize("version", range(6))
def test_a_version_gives_the_ticks_up_to_it(five_ticks: Collection, version: int) -> None:
    table = read_arrow(five_ticks.root, NAME, version, ordered=True)
    assert table.to_pylist() == user_rows(rows_of(range(1, version + 1)))
    assert read_batches(five_ticks.root, NAME, version).read_all().num_rows == version * ROWS


def test_system_columns_come_when_asked_for(five_ticks: Collection) -> None:
    everything = read_arrow(five_ticks.root, NAME, 5, with_system_columns=True, ordered=True)
    assert everything.to_pylist() == rows_of(range(1, 6))
    chosen = read_arrow(five_ticks.root, NAME, 5, columns=["text", "_mz_offset"])
    assert chosen.column_names == ["text", "_mz_offset"]
    added = read_arrow(five_ticks.root, NAME, 5, columns=["_mz_tick", "n"], with_system_columns=True)
    assert added.column_names == ["_mz_tick", "n", "_mz_partition", "_mz_offset"]


@pytest.mark.parametrize("limit", [0, 1, 4, 14, 15, 99])
@pytest.mark.parametrize("compacted", [False, True])
def test_the_first_rows_are_the_same_whatever_the_files(five_ticks: Collection, limit: int, compacted: bool) -> None:
    if compacted:
        compact(five_ticks, min_files=2)
    version = five_ticks.delta_version
    table = read_arrow(five_ticks.root, NAME, version, limit=limit, ordered=True)
    assert table.to_pylist() == user_rows(rows_of(range(1, 6)))[:limit]
    assert read_arrow(five_ticks.root, NAME, version, limit=limit).num_rows == min(limit, 15)


def test_a_version_that_is_not_there_is_not_readable(five_ticks: Collection) -> None:
    with pytest.raises(NotReadable, match="no readable version 6"):
        read_arrow(five_ticks.root, NAME, 6)


def test_a_collection_that_is_not_there_is_not_readable(tmp_path: Path) -> None:
    with pytest.raises(NotReadable):
        read_arrow(str(tmp_path), "missing", 0)


def test_an_unknown_column_is_named(five_ticks: Collection) -> None:
    with pytest.raises(NotReadable, match="no column nn; there are: n, text"):
        read_arrow(five_ticks.root, NAME, 5, columns=["nn"])


def test_the_log_names_every_file_but_those_on_their_way(five_ticks: Collection) -> None:
    assert len(audit.named_files(five_ticks)) == 5
    assert audit.unnamed_files(five_ticks) == frozenset()
    in_flight = tick_file(five_ticks, 6)
    compact(five_ticks, min_files=2)
    assert len(audit.named_files(five_ticks)) == 6
    assert len(audit.named_files(five_ticks, from_version=6)) == 1
    assert audit.unnamed_files(five_ticks) == {in_flight.path}


def test_the_log_lists_its_ticks_and_not_its_compactions(five_ticks: Collection) -> None:
    compact(five_ticks, min_files=2)
    write_tick(five_ticks, 6)
    assert [(c.version, c.metadata["mz_tick"]) for c in audit.transactions(five_ticks)] == [
        (1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5"), (7, "6"),
    ]  # fmt: skip


def test_the_order_is_that_of_the_system_columns(five_ticks: Collection) -> None:
    assert system_names(five_ticks.table.to_pyarrow_dataset().schema.names) == (
        "_mz_tick", "_mz_partition", "_mz_offset",
    )  # fmt: skip
