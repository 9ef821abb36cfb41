"""Files that are put together of columns, as every reader reads them: what it reads of Arrow's own files.

What is written of statistics: least, greatest and number of NULLs of the system columns, for each row group in the
footer and for each page in its header; no column index and no offset index. The files are compared byte for byte, so
statistics are equal if files are; that they are right is looked up here, page by page, in the rows.

The readers are Spark with Delta, delta-rs, Polars, DuckDB and DataFusion (tests/support/five_readers.py says how).
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.core.schema import HASH_VERSION, system_names
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from tests.support.five_readers import OFFSET, PLACE, difference, folders_of, readers
from tests.support.parquet_pages import Page, pages
from tests.support.random_passes import Pair, random_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_forty_random_files(spark: SparkSession, tmp_path: Path) -> None:
    compare(spark, tmp_path, random.SystemRandom().randrange(10**9), files=40)


@pytest.mark.full(seconds=500)
@pytest.mark.timeout(3600)
def test_a_thousand_random_files(spark: SparkSession, tmp_path: Path) -> None:
    seen = compare(spark, tmp_path, 1, files=1_000)
    assert seen["row groups"] > 1_200
    assert seen["chunks of several pages"] > 50
    assert min(seen["data"], seen["errors"]) > 300


def compare(spark: SparkSession, where: Path, seed: int, *, files: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    while seen["files"] < files:
        print(f"seed {seed}")
        pairs = [seen_in(pair, seen) for pair in random_pairs(where / f"{seed}-files", seed)]
        for folder in folders_of(where / f"{seed}-tables", pairs):
            expected = folder.expected()
            bounds = some_bounds(expected, seed)
            offsets = expected.column(OFFSET)
            between = expected.filter(pc.and_(pc.greater_equal(offsets, bounds[0]), pc.less(offsets, bounds[1])))
            for name, reader in readers(spark).items():
                assert not (found := difference(reader.all(folder), expected)), (seed, name, found)
                part = reader.between(folder, bounds)
                assert not (found := difference(part, between.select(PLACE))), (seed, name, bounds, found)
        seed += 1
    print(dict(seen))
    return seen


def some_bounds(rows: pa.Table, seed: int) -> tuple[int, int]:
    """Often none of a file's rows, or some of its row groups: readers go by statistics."""
    most = pc.max(rows.column(OFFSET)).as_py()
    low, high = sorted(random.Random(seed).choices(range(most + 2), k=2))
    return low, high


def seen_in(pair: Pair, seen: Counter[str]) -> Pair:
    """One file, before any reader has it."""
    data = pair.spliced.read_bytes()
    assert data == pair.written.read_bytes(), pair.name
    assert pair.told == pair.told_of_written
    assert pq.read_metadata(pair.spliced).to_dict() == pq.read_metadata(pair.written).to_dict()
    rows = pq.read_table(pair.written, partitioning=None)
    assert rows.schema.equals(pair.schema)
    assert f"{hash_table(rows, HASH_VERSION):032x}" == pair.told["hash"]
    found = pages(data)
    assert found == pages(pair.written.read_bytes())
    check_statistics(pq.ParquetFile(pair.spliced), found)
    seen["files"] += 1
    seen[pair.told["role"]] += 1
    seen["row groups"] += len(found)
    seen["chunks of several pages"] += sum(
        sum(page.is_data for page in column) > 1 for group in found for column in group.values()
    )
    return pair


def check_statistics(file: pq.ParquetFile, found: list[dict[str, list[Page]]]) -> None:
    """Those of each page of a system column are the bounds of its rows, and no other column has any."""
    for number, group in enumerate(found):
        rows = file.read_row_group(number)
        system = system_names(rows.column_names)
        for name, column in group.items():
            begin = 0
            for page in (page for page in column if page.is_data):
                part = rows.column(name).slice(begin, page.values)
                begin += page.values
                assert (page.statistics is not None) == (name in system)
                if page.statistics:
                    bounds = pc.min_max(part).as_py()
                    least, greatest, nulls = page.statistics
                    told = (number_of(least), number_of(greatest), nulls)
                    assert told == (bounds["min"], bounds["max"], 0)
            assert begin == len(rows), "the pages hold all rows"


def number_of(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)
