"""Reads a journal that people push into with Spark: as a stream, or exactly the range of some ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.journal.announced import Ends
from airflow_provider_mzshare.connectors.journal.ranges import Ranges
from airflow_provider_mzshare.connectors.segment_reader import SegmentReader
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.journal.parts import Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession


class JournalReader(SegmentReader):
    def __init__(self, spark: SparkSession, store: JournalStore, ranges: Ranges) -> None:
        from airflow_provider_mzshare.connectors.journal.datasource import JournalSource

        super().__init__(spark, JournalSource)
        self._store, self._ranges = store, ranges

    def lying(self, lower: Position, upper: Position) -> list[Part]:
        return self._ranges.parts(lower, upper)

    def look(self, max_records: int) -> Ends:
        return Ends(self._store, self._ranges, max_records)

    def begin(self, start: Position, partitions: Sequence[int]) -> Mapping[str, int]:
        return {str(partition): start[partition] for partition in partitions}
