"""The lines of a folder. Travels to Spark's executors: the standard library, Arrow and what travels with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA

SECOND = 1_000_000


def files(folder: str) -> Mapping[int, Path]:
    return {int(path.stem): path for path in sorted(Path(folder).glob("*.lines"))}


def ranges(folder: str) -> Mapping[int, tuple[int, int]]:
    """By partition the first offset that is there, and the one after the last."""
    found = {}
    for partition, path in files(folder).items():
        numbers = [number for number, _ in _lines(path)]
        found[partition] = (numbers[0], numbers[-1] + 1) if numbers else (0, 0)
    return found


def records(folder: str, partition: int, lower: int, upper: int, size: int = 500) -> Iterator[pa.RecordBatch]:
    wanted = ((number, value) for number, value in _lines(files(folder)[partition]) if lower <= number < upper)
    while taken := list(islice(wanted, size)):
        columns = [
            pa.nulls(len(taken), pa.binary()),
            pa.array([value for _, value in taken], pa.binary()),
            pa.array([partition] * len(taken), pa.int32()),
            pa.array([number for number, _ in taken], pa.int64()),
            pa.array([number * SECOND for number, _ in taken], pa.int64()).cast(INPUT_SCHEMA.field("timestamp").type),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole ones: somebody may be writing the last."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                number, _, value = line.rstrip(b"\n").partition(b" ")
                yield int(number), value
