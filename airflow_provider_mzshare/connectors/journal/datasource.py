"""Journals as a Python data source of Spark: a stream, and exact ranges. Runs in Spark's Python processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from airflow_provider_mzshare.connectors.journal.batches import records
from airflow_provider_mzshare.connectors.segment_source import SegmentSource, read_share, shares
from airflow_provider_mzshare.connectors.spans import offsets_of
from airflow_provider_mzshare.journal.parts import Part, missing, next_end, within

NAME = "mzshare_journal"


class JournalSource(SegmentSource):
    """Options of a stream: ``announced``, ``start`` and ``max_records``."""

    batches = staticmethod(records)

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> StreamReader:
        start = offsets_of(json.loads(self.options["start"]))
        return StreamReader(Path(self.options["announced"]), start, int(self.options["max_records"]))


class StreamReader(DataSourceStreamReader):
    """Offsets are those of each partition, ``{"0": 120, "1": 87}``: a position of ours with its zeros."""

    def __init__(self, announced: Path, start: dict[int, int], max_records: int) -> None:
        self._announced, self._start, self._max_records = announced, start, max_records
        self._at = start

    def initialOffset(self) -> dict[str, int]:
        return _named(self._start)

    def latestOffset(self) -> dict[str, int]:
        ends, _ = read_announced(self._announced)
        self._at = next_end(self._at, ends, self._max_records)
        return _named(self._at)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        lower, upper = offsets_of(start), offsets_of(end)
        _, parts = read_announced(self._announced)
        if lost := missing(parts, lower, upper):
            raise LookupError(f"{lost} records from {start} to {end} are not among those that {self._announced} names")
        return shares(within(parts, lower, upper))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_share(partition, records)

    def commit(self, end: dict[str, int]) -> None:
        """What may go is the catalog's to decide."""


def read_announced(file: Path) -> tuple[dict[int, int], list[Part]]:
    """How far each partition reaches, and where its records are."""
    found = json.loads(file.read_text())
    return offsets_of(found["ends"]), [Part.from_plain(each) for each in found["parts"]]


def _named(offsets: dict[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}
