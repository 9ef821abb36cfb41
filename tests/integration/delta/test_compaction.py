"""Compaction changes files, never rows: not at any version, not when two do it at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableOptimizer

from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact, compaction_is_safe, put_if_absent_works
from airflow_provider_mzshare.storage.fanout.splicing import parquet_options
from tests.support.delta import NAME, new_collection, read_arrow, read_rows, rows_of, time_of, write_file, write_tick


class HeldBack(Collection):
    """A handle that, once refreshed, waits for the others: so all of them compact from the same version."""

    gate: threading.Barrier | None = None

    def refresh(self) -> None:
        super().refresh()
        if self.gate:
            gate, self.gate = self.gate, None
            gate.wait(30)


def test_many_files_become_one_and_every_version_reads_as_before(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in range(1, 16):
        write_tick(collection, tick)
    before = {version: read_rows(collection, version) for version in range(16)}
    result = compact(collection, min_files=10)
    assert (result.files_before, result.files_after, result.refused) == (15, 1, False)
    for tick in (16, 17):
        write_tick(collection, tick)
    assert {version: read_rows(collection, version) for version in range(16)} == before
    assert before[15] == rows_of(range(1, 16))
    assert read_rows(collection) == rows_of(range(1, 18))
    assert collection.stored_version() == time_of(17)


def test_the_statistics_of_the_system_columns_survive(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in (1, 2, 3):
        write_tick(collection, tick)
    compact(collection, min_files=2)
    [stats] = pa.table(collection.table.get_add_actions(flatten=True)).to_pylist()
    assert (stats["num_records"], stats["min._mz_tick"], stats["max._mz_tick"]) == (9, 1, 3)
    assert (stats["min._mz_offset"], stats["max._mz_offset"]) == (0, 8)


def test_files_are_compressed_as_those_of_the_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    optimize = TableOptimizer.compact

    def compacting(self, **given):
        asked.append(given["writer_properties"])
        return optimize(self, **given)

    monkeypatch.setattr(TableOptimizer, "compact", compacting)
    collection = new_collection(tmp_path)
    for tick in (1, 2, 3):
        write_tick(collection, tick)
    compact(collection, min_files=2)
    [path] = collection.table.file_uris()
    group = pq.read_metadata(path).row_group(0)
    of_pass = parquet_options({})
    assert {group.column(number).compression for number in range(group.num_columns)} == {of_pass["compression"].upper()}
    assert [each.compression for each in asked] == [f"{of_pass['compression'].upper()}({of_pass['compression_level']})"]


def test_too_few_small_files_are_left_alone(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in (1, 2, 3):
        write_tick(collection, tick)
    assert not compact(collection, min_files=4).done
    assert not compact(collection, min_files=1, target_size=1).done
    assert collection.delta_version == 3


def test_of_two_compactors_at_the_same_version_one_is_refused_and_rows_stay_once(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in range(1, 6):
        write_tick(collection, tick)
    handles = [HeldBack.open(str(tmp_path), NAME) for _ in range(2)]
    gate = threading.Barrier(2)
    for handle in handles:
        assert isinstance(handle, HeldBack)
        handle.gate = gate
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda handle: compact(handle, min_files=2), handles))
    assert sorted(result.refused for result in results) == [False, True]
    assert read_rows(collection) == rows_of(range(1, 6))
    # The loser's handle goes on, and its file is one that no version names.
    loser = handles[[result.refused for result in results].index(True)]
    write_tick(loser, 6)
    assert read_rows(collection) == rows_of(range(1, 7))
    assert len(audit.unnamed_files(collection)) == 1


def test_a_tick_committed_during_a_compaction_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, writer = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    for tick in range(1, 6):
        write_tick(collection, tick)
    plain = TableOptimizer.compact

    def compact_late(self: TableOptimizer, *args: object, **kwargs: object) -> object:
        write_tick(writer, 6)
        return plain(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(TableOptimizer, "compact", compact_late)
    assert compact(collection, min_files=2).done
    assert read_rows(collection) == rows_of(range(1, 7))
    assert collection.stored_version() == time_of(6)


def test_values_of_every_type_survive(tmp_path: Path) -> None:
    values = {
        "boolean": (pa.bool_(), True),
        "smallint": (pa.int16(), -32768),
        "integer": (pa.int32(), 2**31 - 1),
        "bigint": (pa.int64(), -(2**63)),
        "real": (pa.float32(), 0.5),
        "double": (pa.float64(), 1e308),
        "numeric": (pa.decimal128(38, 10), Decimal("1234567890123456789012345678.0123456789")),
        "text": (pa.string(), "naïve\x00 😀"),
        "bytea": (pa.binary(), b"\x00\xff"),
        "date": (pa.date32(), date(9999, 12, 31)),
        "timestamp": (pa.timestamp("us"), datetime(1, 1, 1, 0, 0, 0, 1)),
        "timestamptz": (pa.timestamp("us", "UTC"), datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=timezone.utc)),
        "_mz_tick": (pa.int64(), 1),
        "_mz_partition": (pa.int32(), 0),
        "_mz_offset": (pa.int64(), 7),
    }
    schema = pa.schema([(name, type_) for name, (type_, _) in values.items()])
    full = {name: value for name, (_, value) in values.items()}
    empty = {name: value if name.startswith("_mz") else None for name, value in full.items()}
    collection = new_collection(tmp_path, schema=schema)
    for tick, row in enumerate((full, empty), start=1):
        file = write_file(collection, pa.Table.from_pylist([{**row, "_mz_tick": tick}], schema))
        write_tick(collection, tick, files=[file])
    assert compact(collection, min_files=2).done
    table = read_arrow(str(tmp_path), NAME, 3, with_system_columns=True, ordered=True)
    assert table.schema.equals(schema)
    assert table.to_pylist() == [{**full, "_mz_tick": 1}, {**empty, "_mz_tick": 2}]


def test_the_pinned_deltalake_refuses_a_stale_compaction() -> None:
    assert compaction_is_safe()


def test_the_probe_sees_a_deltalake_that_accepts_a_stale_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 1.6.6 does: the second compaction commits its files and every row is there twice."""
    plain = TableOptimizer.compact

    def double(self: TableOptimizer) -> object:
        try:
            return plain(self)
        except CommitFailedError:
            folder = self.table.table_uri
            rows = DeltaTable(folder).to_pyarrow_table()
            write_deltalake(folder, rows, mode="append")
            return {}

    monkeypatch.setattr(TableOptimizer, "compact", double)
    assert not compaction_is_safe()


def test_the_probe_for_put_if_absent_leaves_nothing_behind(tmp_path: Path) -> None:
    assert put_if_absent_works(str(tmp_path))
    assert put_if_absent_works(tmp_path.as_uri())
    assert list(tmp_path.iterdir()) == []


def test_the_probe_for_put_if_absent_sees_storage_that_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every racer is told that it won, as where the last writer of a log entry replaces the first."""
    plain = DeltaTable.create_write_transaction

    def overwrite(table: DeltaTable, *args: object, **kwargs: object) -> None:
        try:
            plain(table, *args, **kwargs)  # type: ignore[arg-type]
        except CommitFailedError:
            return

    monkeypatch.setattr(DeltaTable, "create_write_transaction", overwrite)
    assert not put_if_absent_works(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_probe_for_put_if_absent_says_no_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not put_if_absent_works(str(tmp_path / "file"))
