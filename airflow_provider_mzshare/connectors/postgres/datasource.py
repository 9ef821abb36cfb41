"""A recorded database as a Python data source of Spark: a stream, and exact ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from airflow_provider_mzshare.connectors.postgres.batches import changes
from airflow_provider_mzshare.connectors.postgres.place import LANE
from airflow_provider_mzshare.connectors.segment_source import SegmentSource, read_share, shares
from airflow_provider_mzshare.journal.parts import Part, within

NAME = "mzshare_postgres"


class PostgresSource(SegmentSource):
    """Options of a stream: ``announced``, ``start`` and ``max_records``."""

    batches = staticmethod(changes)

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> StreamReader:
        start = json.loads(self.options["start"])[LANE]
        return StreamReader(Path(self.options["announced"]), start, int(self.options["max_records"]))


class StreamReader(DataSourceStreamReader):
    """Offsets are positions of ours, ``{"lsn": 23803720}``: boundaries that the file tells."""

    def __init__(self, announced: Path, start: int, max_records: int) -> None:
        self._announced, self._start, self._max_records = announced, start, max_records
        self._at = start

    def initialOffset(self) -> dict[str, int]:
        return {LANE: self._start}

    def latestOffset(self) -> dict[str, int]:
        marks, _ = read_announced(self._announced)
        self._at = next_boundary(self._at, marks, self._max_records)
        return {LANE: self._at}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start == end:
            return []  # Spark begins with such a batch.
        marks, parts = read_announced(self._announced)
        lower, upper = marks.get(start[LANE]), marks.get(end[LANE])
        if lower is None or upper is None:
            raise LookupError(f"{start} or {end} is not among the boundaries that {self._announced} names")
        return shares(within(parts, {0: lower}, {0: upper}))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_share(partition, changes)

    def commit(self, end: dict[str, int]) -> None:
        """What may go is the catalog's to decide."""


def next_boundary(at: int, marks: Mapping[int, int], most: int) -> int:
    """The last boundary with at most so many messages before it, or else the next one: a transaction stays whole."""
    begin = marks.get(at)
    beyond = sorted(position for position in marks if position > at)
    if begin is None or not beyond:
        return at
    fitting = [position for position in beyond if marks[position] - begin <= most]
    return fitting[-1] if fitting else beyond[0]


def read_announced(file: Path) -> tuple[dict[int, int], list[Part]]:
    """The offset of each boundary, and where messages are."""
    found = json.loads(file.read_text())
    return dict(map(tuple, found["marks"])), [Part.from_plain(each) for each in found["parts"]]
