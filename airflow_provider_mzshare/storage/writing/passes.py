"""Runs the pass as a job of Spark: over records that Spark reads, or that each task reads by itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.connectors.base import Parts
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.fanout.results import RESULT_DDL
from airflow_provider_mzshare.storage.fanout.writer import read_and_write, write_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Source = DataFrame | Parts


def run_pass(spark: SparkSession, source: Source, plan: FanoutPlan, tasks: int | None = None) -> list[dict[str, Any]]:
    """What the tasks have written.

    :param tasks: how many there are at the most, of records that Spark reads.
    """
    text = plan.to_json()
    if isinstance(source, Parts):
        write = partial(read_and_write, texts=source.texts, read=source.read, plan_json=text)
        count = len(source.texts)
        job = spark.range(0, count, 1, count).mapInArrow(write, RESULT_DDL)
    else:
        frame = source if tasks is None else source.coalesce(tasks)
        job = frame.mapInArrow(partial(write_partition, plan_json=text), RESULT_DDL)
    return [row.asDict() for row in job.collect()]
