"""Reads a load generator with Spark: as a stream from a position on, or exactly the range of some ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan
from airflow_provider_mzshare.connectors.offset_log import logged_end
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class LoadGeneratorReader:
    place = PARTITIONED

    def __init__(self, spark: SparkSession, plan: GeneratorPlan) -> None:
        from airflow_provider_mzshare.connectors.load_generator.datasource import NAME, LoadGeneratorSource

        self._spark, self._plan, self._format = spark, plan, NAME
        spark.dataSource.register(LoadGeneratorSource)

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        options = {"plan": self._plan.to_json(), "start": start.to_json(), "max_records": str(max_records)}
        return self._spark.readStream.format(self._format).options(**options).load()

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        if lower == upper:
            return None
        options = {
            "plan": self._plan.to_json(),
            "lower": lower.to_json(),
            "upper": upper.to_json(),
            "tasks": str(tasks or 1),
        }
        return self._spark.read.format(self._format).options(**options).load()

    def parts(self, lower: Position, upper: Position, tasks: int) -> None:
        """Spark's tasks read it by the data source: its records pass through Spark in chunks, which costs little."""

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """A partition of a generator costs Spark nothing: there is no client to open."""
        return None

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """What a generator makes, Spark can hold."""
        return None

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        lower = Position(logged_end(checkpoint, batch_id - 1)) if batch_id else start
        return lower, Position(logged_end(checkpoint, batch_id))

    def close(self) -> None:
        """There is nothing open."""
