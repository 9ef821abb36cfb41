"""Spark's part of both streaming peers: the session, the stream of parsed records, and where progress is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from airflow_provider_mzshare.compute.jars import spark_jars
from airflow_provider_mzshare.compute.session import DELTA_CONF, open_session
from tests.perf.peers.task import COLUMNS, Task

TYPES = {"bigint": "BIGINT", "text": "STRING", "double": "DOUBLE", "timestamptz": "TIMESTAMP"}
SCHEMA = ", ".join(f"{name} {TYPES[kind]}" for name, kind in COLUMNS)


@contextmanager
def session(task: Task) -> Iterator[SparkSession]:
    """With the settings of ours: local, two threads, no pages, few shuffle partitions."""
    jars = spark_jars(Path(task.jars))
    scratch = Path(task.folder, "scratch")
    with open_session("peer", master="local[2]", jars=jars, scratch=scratch, conf=DELTA_CONF) as spark:
        yield spark


def parsed(spark: SparkSession, task: Task) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": task.bootstrap,
        "subscribe": task.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(task.batch),
    }
    stream = spark.readStream.format("kafka").options(**options).load()
    return stream.select(from_json(col("value").cast("string"), SCHEMA).alias("record")).select("record.*")


def checkpoint(task: Task, name: str) -> str:
    return str(Path(task.folder, "checkpoints", name))
