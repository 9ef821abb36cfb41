"""Reads a journal's segments with Spark: as a stream from a position on, or exactly the range of some ticks."""

from __future__ import annotations

import json
import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_mzshare.connectors.announced import Announced, Look
from airflow_provider_mzshare.connectors.base import THIN_BYTES, THIN_RECORDS, Parts
from airflow_provider_mzshare.connectors.offset_log import logged_end
from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.connectors.segments import telling_of_damage, told_of_damage
from airflow_provider_mzshare.core.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_mzshare.connectors.segment_source import SegmentSource
    from airflow_provider_mzshare.journal.parts import Part


class SegmentReader(ABC):
    """:param source: the data source of Spark."""

    place: ClassVar[Place] = PARTITIONED

    def __init__(self, spark: SparkSession, source: type[SegmentSource]) -> None:
        self._spark, self._source = spark, source
        self._announced: Announced | None = None
        self._folder: Path | None = None
        spark.dataSource.register(source)

    @abstractmethod
    def lying(self, lower: Position, upper: Position) -> list[Part]:
        """All of ``[lower, upper)``. Raises if the catalog does not have all of it."""

    @abstractmethod
    def look(self, max_records: int) -> Look:
        """What the file tells that a stream is planned by. :param max_records: of a batch."""

    @abstractmethod
    def begin(self, start: Position, partitions: Sequence[int]) -> Mapping[str, int]:
        """Where a stream begins, in the words of its data source."""

    def is_thin(self, lower: Position, upper: Position) -> bool:
        """Whether there may be so few records that it is worth asking where they are."""
        return upper.gap(lower) <= THIN_RECORDS

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        self._end_stream()
        self._folder = Path(tempfile.mkdtemp(prefix="mzshare-journal-", dir=self._spark.conf.get("spark.local.dir")))
        file = self._folder / "announced.json"
        self._announced = Announced(self.look(max_records), file, start)
        begin = json.dumps(self.begin(start, partitions))
        options = {"announced": str(file), "start": begin, "max_records": str(max_records)}
        return self._spark.readStream.format(self._source.name()).options(**options).load()

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        if lower == upper:
            return None
        parts = json.dumps([part.to_plain() for part in self.lying(lower, upper)])
        return self._spark.read.format(self._source.name()).options(parts=parts, tasks=str(tasks or 1)).load()

    def parts(self, lower: Position, upper: Position, tasks: int) -> Parts | None:
        """Spark's tasks read it by the data source: its records pass through Spark in chunks, which costs little."""
        return None

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        if not self.is_thin(lower, upper):
            return None
        parts = self.lying(lower, upper)
        is_thin = sum(part.records for part in parts) <= THIN_RECORDS
        is_light = sum(part.records * part.record_bytes for part in parts) <= THIN_BYTES
        return self._read(parts) if is_thin and is_light else None

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """If a file is damaged, this read finds it too, and says which."""
        parts = self.lying(lower, upper)
        return self._read(parts) if told_of_damage(parts, error) else None

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        lower = Position(logged_end(checkpoint, batch_id - 1)) if batch_id else start
        if self._announced is not None:
            self._announced.seen(lower)
        return lower, Position(logged_end(checkpoint, batch_id))

    def close(self) -> None:
        self._end_stream()

    def _read(self, parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
        batches: Any = self._source.batches
        return telling_of_damage(batches(parts))

    def _end_stream(self) -> None:
        if self._announced is not None:
            self._announced.close()
            self._announced = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
