"""Reads a Kafka source with Spark: as a stream from a position on, or exactly the range of some ticks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_mzshare.connectors.base import THIN_BYTES, Parts, is_thin
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.parts import parts_of
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.spark_options import batch_options, parse_offset_log, stream_options
from airflow_provider_mzshare.connectors.kafka.tail import Tail
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_CONVERTER = "org.apache.spark.sql.kafka010.KafkaRecordToRowConverter"
COLUMNS = INPUT_SCHEMA.names


class KafkaReader:
    place = PARTITIONED

    def __init__(self, spark: SparkSession, config: KafkaConfig, topic: str) -> None:
        self._spark, self._config, self._topic = spark, config, topic
        self._readers = f"mzshare-{uuid4().hex[:12]}"
        self._has_client = str(spark.sparkContext.master).startswith("local")
        self._records: RecordReader | None = None
        self._tail: Tail | None = None
        # It warns of every group id, in a long text at every read; ours is used by this reader alone.
        log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
        log4j.core.config.Configurator.setLevel(_PROVIDER, log4j.Level.ERROR)

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        self._leave_to_spark()
        options = stream_options(self._config, self._topic, start, partitions, max_records)
        return self._spark.readStream.format("kafka").options(**options).load().select(*COLUMNS)

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        """Exactly ``[lower, upper)``; None when there is nothing in it.

        :param tasks: how many readers share a long range, should the topic have fewer partitions.
        """
        if lower == upper:
            return None
        options = batch_options(self._config, self._topic, lower, upper, tasks, readers=self._readers)
        return self._spark.read.format("kafka").options(**options).load().select(*COLUMNS)

    def parts(self, lower: Position, upper: Position, tasks: int) -> Parts | None:
        """Where tasks have the client: executors of a cluster need not have it."""
        if not self._has_client or not lower < upper:
            return None
        return parts_of(self._config, self._topic, lower, upper, tasks)

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """By one client for all partitions, which is kept where it is: ranges that follow each other cost one fetch."""
        partitions = sum(lower[partition] < upper[partition] for partition in upper)
        if not is_thin(partitions, upper.gap(lower)):
            self._leave_to_spark()
            return None
        if self._tail is None:
            self._tail = Tail(self._config, self._topic)
        return self._tail.read_small(lower, upper, THIN_BYTES)

    def _leave_to_spark(self) -> None:
        """Nothing is fetched ahead that Spark will read."""
        if self._tail is not None:
            self._tail.let_go()

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """Read with the client that checks use. Spark turns every record's time into a timestamp, and fails on one that
        does not fit. Other records and other tables must not fail for it.
        """
        if not stopped_by_a_record(error):
            return None
        if self._records is None:
            self._records = RecordReader(self._config, self._topic)
        return self._records.read_range(lower, upper)

    def close(self) -> None:
        for client in (self._records, self._tail):
            if client is not None:
                client.close()

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        """What a batch reads, from the log Spark wrote before it ran: rows would lie about holes and markers.

        :param start: of the query; its first batch has no predecessor to begin at.
        """
        lower = self._logged_end(checkpoint, batch_id - 1) if batch_id else start
        return lower, self._logged_end(checkpoint, batch_id)

    def _logged_end(self, checkpoint: Path, batch_id: int) -> Position:
        return parse_offset_log((checkpoint / "offsets" / str(batch_id)).read_text(), self._topic)


def stopped_by_a_record(error: Exception) -> bool:
    """Whether Spark could not make a row from a record: decided by where the cause comes from."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None:
        if any(str(frame.getClassName()).startswith(_CONVERTER) for frame in cause.getStackTrace()):
            return True
        cause = cause.getCause()
    return False
