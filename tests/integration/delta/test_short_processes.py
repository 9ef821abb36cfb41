"""A process that reads a table and ends at once ends well: no thread of Arrow's holds anything of Python's."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from airflow_provider_mzshare.storage.collections import rows
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.rows import native_filesystem, open_snapshot, read_batches
from tests.support.delta import NAME, new_collection, read_arrow, rows_of, write_tick

ROOT = Path(__file__).parents[3]
TICKS = 5
READS = {
    "ordered": "read_batches(root, name, 5, limit=3, ordered=True).read_all()",
    "first rows": "read_batches(root, name, 5, limit=3).read_all()",
    "one batch": "read_batches(root, name, 5).read_next_batch()",
}
SCRIPT = """
import sys
from airflow_provider_mzshare.storage.collections.rows import read_batches
root, name = sys.argv[1:]
assert {read}.num_rows == 3
"""


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    root = tmp_path / "a place"
    root.mkdir()
    made = new_collection(root)
    for tick in range(1, TICKS + 1):
        write_tick(made, tick)
    return made


def run(collection: Collection, read: str) -> str:
    """What a process that only reads says; it hangs or is aborted when a thread touches a dead interpreter."""
    command = [sys.executable, "-c", SCRIPT.format(read=read), collection.root, NAME]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200)
    return "" if done.returncode == 0 else f"{done.returncode}: {done.stderr[-300:]}"


def run_all(collection: Collection, runs: int) -> list[str]:
    reads = [list(READS.values())[number % len(READS)] for number in range(runs)]
    with ThreadPoolExecutor(3) as pool:
        return [said for said in pool.map(lambda read: run(collection, read), reads) if said]


def test_processes_that_read_and_end_at_once_end_well(collection: Collection) -> None:
    assert run_all(collection, 12) == []


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_many_processes_that_read_and_end_at_once_end_well(collection: Collection) -> None:
    assert run_all(collection, 60) == []


def test_files_are_read_by_arrows_own_file_system(collection: Collection) -> None:
    """Buffers of a file system in Python are what Arrow's threads must not be left with."""
    snapshot = open_snapshot(collection.root, NAME, TICKS)
    assert snapshot.native
    assert isinstance(snapshot.dataset.filesystem, pafs.SubTreeFileSystem)
    assert isinstance(snapshot.dataset.filesystem.base_fs, pafs.LocalFileSystem)
    by_uri = open_snapshot(Path(collection.root).as_uri(), NAME, TICKS)
    assert by_uri.rows(["n"]).num_rows == snapshot.rows(["n"]).num_rows > 0


def test_where_arrow_has_no_file_system_reads_are_the_same(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert native_filesystem("s3a://bucket/table") is None
    monkeypatch.setattr(rows, "native_filesystem", lambda uri: None)
    wanted = rows_of(range(1, TICKS + 1))
    assert not open_snapshot(collection.root, NAME, TICKS).native
    assert read_arrow(collection.root, NAME, TICKS, ordered=True, with_system_columns=True).to_pylist() == wanted
    assert read_arrow(collection.root, NAME, TICKS, limit=4).num_rows == 4
    batches = read_batches(collection.root, NAME, TICKS, columns=["text", "n"])
    assert batches.schema.names == ["text", "n"]
    assert sorted(row["n"] for row in batches.read_all().to_pylist()) == sorted(row["n"] for row in wanted)
