"""A change stream holds a bounded part of what it gives: of whole tables, and of the difference of two generations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from tests.support.keyed_load import fill, member_plan
from tests.support.ticked_load import TickedLoad

ROOT = Path(__file__).parents[3]
SNAPSHOT_MIB, DIFFERENCE_MIB = 550, 700
"""More than after the imports. The rows of the snapshot take 680 MiB, and those that are compared 510 MiB, which has to
be held twice and with an index where all of it is compared in memory."""

MEASURED = """
import re, sys, time
from pathlib import Path
from airflow_provider_mzshare import connect
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.changes import Place, Wanted, difference
from airflow_provider_mzshare.storage.collections.rows import open_snapshot

def most():
    # What getrusage tells begins with what the process had that started this one.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

before = most()

def told(batches):
    began, rows, size = time.perf_counter(), 0, 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
    took = time.perf_counter() - began
    print(f"{rows:,} rows, {size >> 20:,} MiB, in {took:.0f} s; memory {before} MiB, then {most()} MiB")
    print(rows, most() - before)
"""

STREAMED = """
with connect(home=sys.argv[1]) as mz, mz.changes("t") as batches:
    told(batches)
"""

COMPARED = """
root = sys.argv[1]
shape = open_snapshot(root, "old", 2).schema
wanted = Wanted(shape, [name for name in shape.names if not name.startswith("_mz_")])
old, new = ((Place(root, CollectionId(name), name), 2) for name in ("old", "new"))
told(difference(old, new, wanted))
"""


def ran(script: str, folder: Path) -> tuple[int, int]:
    """In a process of its own, whose memory is measured: rows, and by how many MiB it has grown at most."""
    command = [sys.executable, "-c", MEASURED + script, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    print(done.stdout)
    rows, grown = map(int, done.stdout.splitlines()[-1].split())
    return rows, grown


@pytest.mark.full(seconds=60)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_snapshot_of_five_million_rows_is_streamed(tmp_path: Path, keyed: bool) -> None:
    load = TickedLoad(tmp_path / "home", 5_000_000, keyed=keyed)
    load.run(2, 2_000)
    load.close()
    rows, grown = ran(STREAMED, load.home)
    assert rows == 5_000_000 + (0 if keyed else 4_000)
    assert grown < SNAPSHOT_MIB


@pytest.mark.full(seconds=60)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("others", [1_000_000, 2_000])
def test_the_difference_of_generations_of_two_million_rows(tmp_path: Path, others: int) -> None:
    """As at the tick that puts one in the place of the other. Some rows are others, and all must be compared."""
    rows = 2_000_000
    for name, second in (("old", 1), ("new", 2)):
        create_collection(str(tmp_path), CollectionId(name), member_plan().schema)
        collection = Collection.open(str(tmp_path), CollectionId(name))
        fill(collection, rows - others)
        fill(collection, rows, first=rows - others, tick=second)
    found, grown = ran(COMPARED, tmp_path)
    assert found == 2 * others
    assert grown < DIFFERENCE_MIB
