"""Reads what was recorded of a database with Spark: as a stream, or exactly the range of some ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.postgres.place import LANE, PLACE
from airflow_provider_mzshare.connectors.postgres.ranges import Boundaries, Ranges
from airflow_provider_mzshare.connectors.segment_reader import SegmentReader
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.journal.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

THIN_GAP = 256 << 20
"""Bytes of the server's log: where there are more, nobody looks whether little of it is ours."""


class PostgresReader(SegmentReader):
    place = PLACE

    def __init__(self, spark: SparkSession, store: JournalStore, ranges: Ranges) -> None:
        from airflow_provider_mzshare.connectors.postgres.datasource import PostgresSource

        super().__init__(spark, PostgresSource)
        self._store, self._ranges = store, ranges

    def lying(self, lower: Position, upper: Position) -> list[Part]:
        return self._ranges.parts(lower, upper)

    def look(self, max_records: int) -> Boundaries:
        return Boundaries(self._store, self._ranges, max_records)

    def begin(self, start: Position, partitions: Sequence[int]) -> Mapping[str, int]:
        return {LANE: start[LANE]}

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """Ticks end at boundaries of what is recorded, which the stream is planned by: none is made without it."""
        return super().read_thin(lower, upper) if lower != upper else None

    def is_thin(self, lower: Position, upper: Position) -> bool:
        return upper.gap(lower) <= THIN_GAP
