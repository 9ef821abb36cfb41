"""Answers one query with Spark on this machine, from relations that the caller brings. Knows no catalog."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.session import DELTA_CONF, open_session
from airflow_provider_mzshare.errors import NotReadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Load = Callable[["SparkSession"], "DataFrame"]
T = TypeVar("T")

QUERY_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # A query may only read the relations that are registered for it.
    "spark.sql.runSQLOnFiles": "false",
    # A batch of long texts must not be larger than Arrow can hold.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
_OWN_CONF = {
    **DELTA_CONF,
    **QUERY_CONF,
    "spark.driver.maxResultSize": "0",
    "spark.log.level": "ERROR",
}


def ask(query: str, relations: Mapping[str, Load], take: Callable[[DataFrame], T], *, jar_folder: Path | None) -> T:
    """Run the query in a session of its own, which ends with this call, and return what ``take`` makes of the answer.

    :param query: in Spark's SQL; it names only ``relations``.
    :param relations: each is made when the session is there, in order: a later one may read an earlier one.
    """
    with a_session(jar_folder) as spark:
        return take(answer(spark, query, relations))


def answer(spark: SparkSession, query: str, relations: Mapping[str, Load]) -> DataFrame:
    """The same in an existing session. The session is not changed; only this query sees its temporary views."""
    apart = spark.newSession()
    for key, value in QUERY_CONF.items():
        apart.conf.set(key, value)
    for name, load in relations.items():
        load(apart).createOrReplaceTempView(name)
    return apart.sql(query)


def batches(frame: DataFrame) -> pa.RecordBatchReader:
    """The rows of a frame in its order, one partition after the other, so that not all are in memory at once."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)

    def fetched() -> Iterator[pa.RecordBatch]:
        with _told():
            partitions: Any = frame._jdf.toArrowBatchRdd().toJavaRDD().toLocalIterator()
            while partitions.hasNext():
                yield pa.ipc.read_record_batch(pa.py_buffer(partitions.next()), schema)

    return pa.RecordBatchReader.from_batches(schema, fetched())


@contextmanager
def a_session(jar_folder: Path | None) -> Iterator[SparkSession]:
    """A session for several queries. Spark's errors inside the block are raised as our own."""
    # Inside the session, since Spark's errors are in its own process: once that has ended they say nothing any more.
    with _told(), _session(jar_folder) as spark, _told():
        yield spark


@contextmanager
def _session(jar_folder: Path | None) -> Iterator[SparkSession]:
    """A new session, or the one that this process has already: a process cannot have two."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        yield SparkSession.builder.getOrCreate()
        return
    found = jars.spark_jars(jar_folder or jars.default_folder())
    with (
        tempfile.TemporaryDirectory(prefix="mzshare-query-", ignore_cleanup_errors=True) as scratch,
        open_session("mzshare query", master="local[*]", jars=found, scratch=Path(scratch), conf=_OWN_CONF) as spark,
    ):
        yield spark


@contextmanager
def _told() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise NotReadable(f"Spark cannot answer the query: {_reason(error)}", hint="correct the query") from error


def _reason(error: Exception) -> str:
    """The first line of an error. After Spark has ended its errors cannot be printed: their ``_desc`` is used then."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - it fails in ways of its own
        text = str(getattr(error, "_desc", ""))
    lines = text.strip().splitlines() or [type(error).__name__]
    return lines[0]
