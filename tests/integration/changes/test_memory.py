"""A change stream needs bounded memory, however many rows change at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

ROWS, PART = 2_000_000, 250_000
MEGABYTES = 350

DIFFERENCE = """
import json, resource, sys
import pyarrow as pa
from airflow_provider_mzshare.storage.collections.changes import Place, Wanted, difference
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
shape = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
old, new = ((Place(sys.argv[1], name, name), int(version)) for name, version in zip(("old", "new"), sys.argv[2:]))
before = peak()
counts = {1: 0, -1: 0}
for batch in difference(old, new, Wanted(shape, shape.names)):
    for diff in batch.column("mz_diff").to_pylist():
        counts[diff] += 1
print(json.dumps([counts[1], counts[-1], before, peak()]))
"""


@pytest.mark.full(seconds=60)
@pytest.mark.timeout(600)
def test_the_difference_of_two_large_generations(tmp_path: Path) -> None:
    """Every thousandth row differs; the files of one are in another order than those of the other."""
    parts = range(0, ROWS, PART)
    for name, order in (("old", parts), ("new", reversed(parts))):
        for first in order:
            ids = np.arange(first, first + PART)
            values = np.where((ids % 1_000 == 0) & (name == "new"), -1.0, ids / 2)
            texts = pa.array([f"a name that is not so short {number}" for number in ids])
            rows = pa.table({"id": ids, "name": texts, "value": values})
            write_deltalake(tmp_path / name, rows, mode="append")
    last = str(len(parts) - 1)
    ran = subprocess.run(
        [sys.executable, "-c", DIFFERENCE, str(tmp_path), last, last], capture_output=True, text=True, check=True
    )
    came, went, before, peak = json.loads(ran.stdout)
    assert (came, went) == (ROWS // 1_000, ROWS // 1_000)
    assert peak - before < MEGABYTES, f"{peak - before} MB"
