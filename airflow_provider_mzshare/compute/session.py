"""Opens the Spark session of an app, with what a long-running driver on a small or large machine needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.paths import bad_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # By default Delta reads a table's log in 50 tasks: on one machine that is mostly overhead.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Settings of a session that reads tables with Spark. The apps write through delta-rs and do not need them."""


def session_conf(*, master: str, jars: Sequence[str | Path], scratch: Path) -> dict[str, str]:
    conf = {
        "spark.master": master,
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        # Native libraries are unpacked into the job's folder, so that they are removed with it, even after a kill.
        "spark.driver.extraJavaOptions": java_option(f"-Djava.io.tmpdir={scratch}"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore",
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # How often running tasks report their progress.
        "spark.executor.heartbeatInterval": "3s",
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if master.startswith("local"):
        # An app on a single machine must not be reachable from other machines.
        conf |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return conf


def check_path(path: str) -> None:
    """Also of folders that no setting of ours names, as temporary ones: Spark would only say that Java has ended."""
    if bad := bad_for_spark(path):
        raise TerminalError(
            f"Spark cannot use the path {path}: {bad!r} has a special meaning in its paths",
            hint="set TMPDIR, MZSHARE_HOME and MZSHARE_JARS to folders without this character",
        )


def _speak_utf8() -> None:
    """Java encodes file names by the locale: without one it cannot open a file with an ``é`` in its name."""
    chosen = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if "utf" not in chosen.lower():
        os.environ["LC_ALL"] = "C.UTF-8"


def java_option(text: str) -> str:
    """Quote one Java option: Spark splits options at blanks, except inside quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@contextmanager
def open_session(
    name: str,
    *,
    master: str,
    jars: Sequence[str | Path],
    scratch: Path,
    conf: Mapping[str, str] | None = None,
    py_files: Sequence[Path] = (),
) -> Iterator[SparkSession]:
    """A session of its own, stopped at the end. ``py_files`` travel to the executors."""
    from pyspark.sql import SparkSession

    for path in (scratch, *jars):
        check_path(str(path))
    scratch.mkdir(parents=True, exist_ok=True)
    _speak_utf8()
    # A driver that was not started by spark-submit finds the workers' Python only in this variable.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    builder = SparkSession.builder.appName(name)
    for key, value in {**session_conf(master=master, jars=jars, scratch=scratch), **(conf or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        for file in py_files:
            spark.sparkContext.addPyFile(str(file))
        yield spark
    finally:
        spark.stop()
        _end_jvm()


def _end_jvm() -> None:
    """End the JVM too: ``stop`` leaves it running for another session, and there is none."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
