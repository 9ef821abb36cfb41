"""Reads a journal with Spark: as a stream from a position on, or exactly the range of some ticks."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import THIN_BYTES, THIN_RECORDS
from airflow_provider_mzshare.connectors.journal.announced import Announced
from airflow_provider_mzshare.connectors.journal.batches import records
from airflow_provider_mzshare.connectors.journal.parts import Part
from airflow_provider_mzshare.connectors.journal.ranges import Ranges, damaged, told_of_damage
from airflow_provider_mzshare.connectors.offset_log import logged_end
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.journal.reading import DamagedSegment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class JournalReader:
    place = PARTITIONED

    def __init__(self, spark: SparkSession, store: JournalStore, ranges: Ranges) -> None:
        from airflow_provider_mzshare.connectors.journal.datasource import NAME, JournalSource

        self._spark, self._store, self._ranges, self._format = spark, store, ranges, NAME
        self._announced: Announced | None = None
        self._folder: Path | None = None
        spark.dataSource.register(JournalSource)

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        self._end_stream()
        self._folder = Path(tempfile.mkdtemp(prefix="mzshare-journal-", dir=self._spark.conf.get("spark.local.dir")))
        file = self._folder / "announced.json"
        self._announced = Announced(self._store, self._ranges, file, start, max_records)
        begin = json.dumps({str(partition): start[partition] for partition in partitions})
        options = {"announced": str(file), "start": begin, "max_records": str(max_records)}
        return self._spark.readStream.format(self._format).options(**options).load()

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        if lower == upper:
            return None
        parts = json.dumps([part.to_plain() for part in self._ranges.parts(lower, upper)])
        return self._spark.read.format(self._format).options(parts=parts, tasks=str(tasks or 1)).load()

    def parts(self, lower: Position, upper: Position, tasks: int) -> None:
        """Spark's tasks read it by the data source: its records pass through Spark in chunks, which costs little."""

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        if upper.gap(lower) > THIN_RECORDS:
            return None
        parts = self._ranges.parts(lower, upper)
        return _read(parts) if sum(part.records * part.record_bytes for part in parts) <= THIN_BYTES else None

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """If a file is damaged, this read finds it too, and says which."""
        parts = self._ranges.parts(lower, upper)
        return _read(parts) if told_of_damage(parts, error) else None

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        lower = Position(logged_end(checkpoint, batch_id - 1)) if batch_id else start
        if self._announced is not None:
            self._announced.seen(lower)
        return lower, Position(logged_end(checkpoint, batch_id))

    def close(self) -> None:
        self._end_stream()

    def _end_stream(self) -> None:
        if self._announced is not None:
            self._announced.close()
            self._announced = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _read(parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
    try:
        yield from records(parts)
    except DamagedSegment as error:
        raise damaged(error) from error
