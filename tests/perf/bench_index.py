"""The index of a keyed table: bytes per key, time to build it, to find keys and to bring it on by a tick.

``hashes`` is the index out of keys that are in memory; ``files`` is what an app does at its start: rows are read from
Parquet, hashed, and written into the mirror. CPU is beside wall time, because it says more on a machine that is busy.
Run by hand: ``python -m tests.perf.bench_index [keys …]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from airflow_provider_mzshare.storage.collections.vectors.building import FileRows, build_index
from airflow_provider_mzshare.storage.collections.vectors.files import read_rows, write_rows
from airflow_provider_mzshare.storage.collections.vectors.index import IndexBuilder, KeyIndex, locations_of
from airflow_provider_mzshare.storage.collections.vectors.key_hashes import key_hashes
from airflow_provider_mzshare.storage.collections.vectors.mirror import Mirror

SIZES = (1_000_000, 5_000_000)
ASKED = (2_000, 20_000)
FILE_ROWS = 500_000
ROUNDS = 15
NOTHING = np.array([], np.uint32)


def rows(begin: int, number: int) -> pa.Table:
    """About 100 bytes a row; the key is a text that begins like all others."""
    numbers = pa.array(np.arange(begin, begin + number))
    keys = pc.binary_join_element_wise("customer-", numbers.cast(pa.string()), "")
    filler = pc.binary_join_element_wise(keys, "some more text that a row has", "and more", "-")
    columns = {"key": keys, "n": numbers, "m": pc.multiply(numbers, 7), "text": filler}
    system = {"_mz_tick": numbers, "_mz_partition": pa.nulls(number, pa.int32()).fill_null(0), "_mz_offset": numbers}
    return pa.table({**columns, **system})


@contextmanager
def timed(what: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    print(f"  {what:<44} {time.perf_counter() - wall:7.2f} s  CPU {time.process_time() - cpu:6.2f} s", flush=True)


def each(what: str, done: Callable[[], object]) -> None:
    walls, cpus = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        done()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(f"  {what:<44} {median(walls) * 1e3:7.2f} ms CPU {median(cpus) * 1e3:6.2f} ms", flush=True)


def from_hashes(size: int, folder: Path | None) -> KeyIndex:
    """:param folder: of mapped files."""
    parts = [rows(begin, min(FILE_ROWS, size - begin)).select(["key"]) for begin in range(0, size, FILE_ROWS)]
    builder = IndexBuilder(folder)
    with timed(f"hashes, {'mapped' if folder else 'in memory'}"):
        for number, part in enumerate(parts):
            builder.add(key_hashes(part), locations_of(number, np.arange(part.num_rows)))
        index = builder.finish()
    used = index.disk_bytes if folder else index.memory_bytes
    print(f"  {'bytes per key':<44} {used / len(index):7.1f}")
    return index


def from_files(size: int, folder: Path, *, mapped: bool) -> tuple[KeyIndex, Mirror]:
    filesystem = pafs.SubTreeFileSystem(str(folder), pafs.LocalFileSystem())
    schema = rows(0, 1).schema
    sizes = [(begin, min(FILE_ROWS, size - begin)) for begin in range(0, size, FILE_ROWS)]
    files = [write_rows(str(folder), filesystem, rows(begin, number)) for begin, number in sizes]
    mirror = Mirror(folder / "mirror")
    found = (FileRows(n, read_rows(str(folder), filesystem, file.path), NOTHING) for n, file in enumerate(files))
    with timed(f"files, {'mapped' if mapped else 'in memory'}"):
        index = build_index(found, ["key"], schema, mirror, IndexBuilder(folder if mapped else None))
    parquet = sum(file.size for file in files)
    print(f"  {'mirror, bytes per key (and of Parquet)':<44} {mirror.disk_bytes / size:7.1f} ({parquet / size:.1f})")
    return index, mirror


def ask(index: KeyIndex, mirror: Mirror, size: int) -> None:
    random = np.random.default_rng(1)
    everything = rows(0, size).select(["key"])
    schema = rows(0, 1).schema
    some = [each for each in ASKED if each <= size]
    asked = [everything.take(pa.array(random.choice(size, each, replace=False))).combine_chunks() for each in some]
    for keys in asked:
        hashes = key_hashes(keys)
        locations = index.find(hashes)[1]
        each(f"hash {keys.num_rows:,} keys", lambda keys=keys: key_hashes(keys))
        each(f"find {keys.num_rows:,} keys", lambda hashes=hashes: index.find(hashes))
        each(f"old rows of {keys.num_rows:,} keys", lambda where=locations: mirror.take(where, schema))
    # These have no rows in the mirror: they come last.
    numbers = count(1_000_000)
    for keys in asked:
        hashes = key_hashes(keys)
        each(f"a tick that changes {keys.num_rows:,} keys", lambda hashes=hashes: tick(index, hashes, next(numbers)))
    print(f"  {'bytes per key after these ticks':<44} {(index.memory_bytes + index.disk_bytes) / len(index):7.1f}")


def tick(index: KeyIndex, hashes: np.ndarray, file_number: int) -> None:
    places, locations = index.find(hashes)
    index.drop(hashes[places], locations)
    index.add(hashes, locations_of(file_number, np.arange(hashes.size)))


def main(sizes: list[int]) -> None:
    for size in sizes:
        for mapped in (False, True):
            print(f"{size:,} keys, {'mapped' if mapped else 'in memory'}")
            with tempfile.TemporaryDirectory() as folder:
                from_hashes(size, Path(folder) if mapped else None).close()
                index, mirror = from_files(size, Path(folder), mapped=mapped)
                ask(index, mirror, size)
                mirror.close()
                index.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(SIZES))
