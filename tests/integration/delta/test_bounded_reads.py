"""A read holds a bounded part of a table, gives every row once and in order, and minds no size of rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.ordered_rows import Ordered
from airflow_provider_mzshare.storage.collections.rows import open_snapshot, read_batches
from tests.support.delta import NAME, SCHEMA, new_collection, rows_of, write_file, write_tick

ROOT = Path(__file__).parents[3]


def ordered(collection: Collection, rows: int, size: int, limit: int | None = None) -> list[pa.RecordBatch]:
    snapshot = open_snapshot(collection.root, NAME, collection.delta_version)
    return list(Ordered(snapshot, ["n", "text", *system_names(SCHEMA.names)], rows=rows, size=size).batches(limit))


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4, 7, 100])
def test_parts_of_any_size_give_every_row_once_and_in_order(tmp_path: Path, rows: int, compacted: bool) -> None:
    collection = new_collection(tmp_path)
    for tick in range(1, 9):
        write_tick(collection, tick)
    if compacted:
        compact(collection, min_files=2)
    batches = ordered(collection, rows, 1 << 20)
    assert [row for batch in batches for row in batch.to_pylist()] == rows_of(range(1, 9))
    assert max(batch.num_rows for batch in batches) <= rows
    for limit in (0, 1, 5, 23, 24, 25):
        found = [row for batch in ordered(collection, rows, 1 << 20, limit) for row in batch.to_pylist()]
        assert found == rows_of(range(1, 9))[:limit]


def test_parts_are_cut_by_what_their_rows_weigh_also_inside_a_tick(tmp_path: Path) -> None:
    """Here one tick has nearly all rows, one row is larger than a part may be, and the file's order is no order."""
    collection, heavy = new_collection(tmp_path), {7: "x" * 100_000}
    rows = [
        {"n": n, "text": heavy.get(n, "y" * 1000), "_mz_tick": 1, "_mz_partition": n % 3, "_mz_offset": n}
        for n in range(400)
    ]
    shuffled = sorted(rows, key=lambda row: (row["n"] * 7919) % 400)
    write_tick(collection, 1, files=[write_file(collection, pa.Table.from_pylist(shuffled, SCHEMA))])
    write_tick(collection, 2)
    batches = ordered(collection, 1_000_000, 20_000)
    found = [row for batch in batches for row in batch.to_pylist()]
    wanted = sorted([*rows, *rows_of([2])], key=lambda row: tuple(row[name] for name in system_names(SCHEMA.names)))
    assert found == wanted
    assert max(batch.nbytes for batch in batches if batch.num_rows > 1) <= 20_000
    assert len(batches) > 20


def test_a_reader_that_stops_early_has_read_little(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in range(1, 9):
        write_tick(collection, tick)
    first = next(iter(read_batches(str(tmp_path), NAME, 8, ordered=True, limit=4)))
    assert first.num_rows <= 4


MORE_THAN_ARROW_HOLDS = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.lifecycle.read_table import Query, open_table, read_table
from tests.support.filled import Filled

folder, rows, size = Path(sys.argv[1]), 2_200, 1 << 20
with open_catalog(f"sqlite:///{folder / 'catalog.db'}") as catalog:
    catalog.ensure()
    filled = Filled(catalog, folder)
    source = filled.source()
    filled.table(source, "t", "n bigint, text text")
    for first in range(0, rows, 100):
        filled.feed(source, [{"n": n, "text": str(n % 10) * size} for n in range(first, first + 100)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = 0
    with open_table(catalog, filled.root, "t", Query(ordered=True)) as found:
        for batch in found:
            assert batch.column("n").to_pylist() == list(range(seen, seen + batch.num_rows))
            assert set(map(len, batch.column("text").to_pylist())) == {size}
            seen += batch.num_rows
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert seen == rows, seen
    assert read_table(catalog, filled.root, "t", Query(columns=["n"])).num_rows == rows
    print(before // 1024, after // 1024)
    assert after - before < 1_000_000, f"{(after - before) // 1024} MiB more"
"""


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_column_of_more_than_two_gibibytes_of_text_is_read(tmp_path: Path) -> None:
    """In a process of its own, whose memory is measured."""
    ran = subprocess.run(
        [sys.executable, "-c", MORE_THAN_ARROW_HOLDS, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
