"""Keyed tables with deletion vectors, as every reader reads them, Spark too: after what we do, and what others do.

The orders without Spark, all of them, are in tests/integration/delta/test_keyed_readers.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from airflow_provider_mzshare.storage.collections.rows import SPARKS_LIMIT, read_spark
from tests.support.keyed_history import ROW, History
from tests.support.keyed_orders import STEPS, check_rows, go_through
from tests.support.keyed_readers import feeds, readers, rows_of
from tests.support.orders import CHANGES, orders
from tests.support.reading_page import examples, run
from tests.support.reading_page import rows_of as page_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = pytest.mark.timeout(1200)
ORDERS = list(permutations(STEPS))
LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""VACUUM lists a folder in so many tasks: ten thousand, if nobody says."""


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History(tmp_path, 1)
    yield made
    made.close()


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in changed:
            spark.conf.unset(name)


@pytest.fixture
def patient(spark: SparkSession) -> Iterator[SparkSession]:
    """Set as docs/reference/reading.md says."""
    with settings(spark, **{SPARKS_LIMIT: "false"}):
        yield spark


@pytest.mark.parametrize(
    ("order", "rounds"),
    [(ORDERS[3], 1), *(pytest.param(order, 2, marks=(pytest.mark.full(seconds=60), LONG)) for order in ORDERS)],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_spark_reads_what_all_others_read_in_every_order(
    patient: SparkSession, history: History, order: tuple[str, ...], rounds: int
) -> None:
    go_through(history, order, patient, rounds=rounds)


def test_spark_refuses_old_ticks_by_itself_and_our_frames_have_them(spark: SparkSession, history: History) -> None:
    history.commits(4)
    history.grow_old(days=3)
    (now, changes) = (each(history.path, ROW, spark)["Spark"] for each in (readers, feeds))
    assert now(None) == history.rows()
    for refused in (lambda: now(2), lambda: changes(1, 3)):
        with pytest.raises(AnalysisException, match="TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION"):
            refused()
    frame = read_spark(spark, history.scene.root, history.path.name, 2, with_system_columns=True)
    assert spark.conf.get(SPARKS_LIMIT, None) is None
    assert rows_of(frame.toArrow(), ROW) == history.rows(2)
    with settings(spark, **{SPARKS_LIMIT: "true"}):
        read_spark(spark, history.scene.root, history.path.name, 2)
        assert spark.conf.get(SPARKS_LIMIT) == "true"


@pytest.mark.full(seconds=20)
@pytest.mark.parametrize("switched_off", [True, False])
def test_a_checkpoint_of_spark_takes_no_old_entries_because_the_table_says_so(
    patient: SparkSession, history: History, switched_off: bool
) -> None:
    history.commits(18)
    if switched_off:
        history.commit()
    else:
        named = f"delta.`{history.path}`"
        patient.sql(f"ALTER TABLE {named} SET TBLPROPERTIES ('delta.enableExpiredLogCleanup' = 'true')")
        history.followed()
    history.grow_old(days=40)
    before = history.versions_logged()
    patient.sql(f"OPTIMIZE delta.`{history.path}`").collect()
    history.followed()
    assert (history.path / "_delta_log" / f"{20:020d}.checkpoint.parquet").exists()
    assert (set(before) <= set(history.versions_logged())) == switched_off
    history.commit()
    check_rows(history, None, *([5] if switched_off else []), spark=patient)
    assert history.damages() == []


@LONG
@pytest.mark.full(seconds=120)
def test_a_vacuum_of_spark_takes_old_ticks_and_no_row_of_now(patient: SparkSession, history: History) -> None:
    """It is told by the table that what was removed a minute ago may go: since is not known to it."""
    history.commits(12)
    history.write_compaction()
    history.grow_old(days=1)
    assert history.written is not None
    with settings(patient, **{LISTING: "2"}):
        with pytest.raises(Exception, match="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"):
            patient.sql(f"VACUUM delta.`{history.path}` RETAIN 0 HOURS").collect()
        patient.sql(f"VACUUM delta.`{history.path}`").collect()
    history.followed()
    check_rows(history, None, spark=patient)
    assert history.damages() == []
    for name, read in readers(history.path, ROW, patient).items():
        found = None
        with suppress(Exception):  # What was replaced a moment ago may still be there.
            found = read(5)
        assert found in (None, history.rows(5)), name
    # What waited for its commit is gone too, and that is noticed before an entry names it.
    history.scene.states.put_rewritten(history.scene.collection, history.written)
    history.followed()
    assert history.damages() == []
    history.commit()
    history.compact()
    check_rows(history, None, spark=patient)


def test_the_examples_of_the_page_about_changes(spark: SparkSession, tmp_path: Path) -> None:
    path = str(orders(tmp_path))
    batch, stream, _ = examples("What has changed, with other tools")
    with settings(spark, **{SPARKS_LIMIT: "true"}):
        assert page_rows(run(batch, path=path, spark=spark)["frame"]) == CHANGES
        writing = run(stream, path=path, spark=spark)["stream"].writeStream.format("memory").queryName("changes")
        query = writing.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(200)
            assert page_rows(spark.table("changes")) == CHANGES
        finally:
            query.stop()
            # Other tests of this worker share the session.
            spark.catalog.dropTempView("changes")
