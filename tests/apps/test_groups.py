"""Groups of ticks, read from a real broker and passed over by Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Tick
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.writing import executor as execution
from airflow_provider_mzshare.storage.writing.executor import TickExecutor
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.kafka import Record, consume, create_topic, positions, produce
from tests.support.waiting import wait_until
from tests.support.writers import MEMBER, SOURCE, Log, newest, spans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cut(upper: Position, ticks: int, first: int = 1) -> tuple[Tick, ...]:
    """A history of so many ticks, of about the same size each."""
    ends = [Position({p: upper[p] * n // ticks for p in upper}) for n in range(ticks + 1)]
    return tuple(Tick(first + n, ends[n], ends[n + 1], mz_timestamp=1_700_000_000_000 + 1000 * n) for n in range(ticks))


def reader(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> KafkaReader:
    host, port = kafka.bootstrap.split(":")
    return KafkaReader(spark, KafkaConfig.from_connection(Connection("bus", "kafka", host, int(port))), topic)


@contextmanager
def executor(spark: SparkSession, log: Log, root: Path, source: KafkaReader) -> Iterator[TickExecutor]:
    made = TickExecutor(
        spark,
        log,
        Holder(JobId("job-1"), 1),
        source_id=SOURCE,
        root=str(root),
        check_identity=lambda: None,
        reader=source,
        states=KeyStates(root.with_name("keys")),
        lanes=lambda: 1,
        driver_reads=lambda: False,
        backfill=True,
    )
    yield made
    made.close()


def test_a_group_is_one_job_and_every_row_gets_its_own_tick(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Two partitions read by five tasks, one of the partitions in pieces; then the rest of the ticks."""
    topic = create_topic(kafka, 2)
    values = (b"bad" if n % 7 == 0 else json.dumps({"a": n}).encode() for n in range(9_000))
    produce(kafka, topic, (Record(value, partition=int(n % 9 == 0)) for n, value in enumerate(values)))
    log = Log(cut(Position(positions(kafka, topic)), 60))
    source = reader(spark, kafka, topic)
    with executor(spark, log, tmp_path, source) as groups:
        for first, last in ((1, 50), (51, 60)):
            group = log.group(first, last)
            frame = source.bounded(group.lower, group.upper, tasks=5)
            assert frame is not None
            assert frame.rdd.getNumPartitions() >= 5
            executed = groups.execute(group, [MEMBER], lambda frame=frame: frame)
            assert executed.stats["spark_jobs"] == 1
            done = log.follow(executed.outcomes[MEMBER.table_id])
            assert spans(done.written, log) == {"data": [(first, last)], "errors": [(first, last)]}
    ticks = {
        (m.partition(), m.offset()): (tick_of(log, m.partition(), m.offset()), m.value()) for m in consume(kafka, topic)
    }
    found = {}
    for collection, value in ((MEMBER.data, "a"), (MEMBER.errors, "value")):
        for row in newest(tmp_path, collection).to_pylist():
            raw = row[value] if value == "value" else json.dumps({"a": row["a"]}).encode()
            found[row["_mz_partition"], row["_mz_offset"]] = (row["_mz_tick"], raw)
    assert found == ticks
    assert sum(written.rows for written in log.written) == len(ticks) == 9_000


def tick_of(log: Log, partition: int, offset: int) -> int:
    return next(t.number for t in log.ticks if t.lower[partition] <= offset < t.upper[partition])


def test_a_group_that_is_there_reads_nothing(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    topic = create_topic(kafka, 1)
    produce(kafka, topic, [b'{"a":1}'] * 50)
    log = Log(cut(Position(positions(kafka, topic)), 5))
    group = TickGroup(log.ticks)
    source = reader(spark, kafka, topic)
    with executor(spark, log, tmp_path, source) as groups:
        groups.execute(group, [MEMBER], lambda: source.bounded(group.lower, group.upper))
    with executor(spark, log, tmp_path, source) as groups:
        again = groups.execute(group, [MEMBER], lambda: pytest.fail("it was read again")).outcomes[MEMBER.table_id]
    assert isinstance(again, Done)
    assert again.rows == 50


def test_how_far_a_group_has_been_read_is_known_while_it_is_read(
    kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer stops after its first batch until somebody has seen how far the read is."""
    topic, seen = create_topic(kafka, 1), str(tmp_path / "seen")
    produce(kafka, topic, [b'{"a":1}'] * 60_000)
    log = Log(cut(Position(positions(kafka, topic)), 3))
    group, source = TickGroup(log.ticks), reader(spark, kafka, topic)

    def slow(batches: Iterator[pa.RecordBatch], plan_json: str) -> Iterator[pa.RecordBatch]:
        def one_by_one() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                deadline = time.monotonic() + 60
                while not os.path.exists(seen) and time.monotonic() < deadline:
                    time.sleep(0.05)

        from airflow_provider_mzshare.storage.fanout.writer import write_partition

        yield from write_partition(one_by_one(), plan_json)

    monkeypatch.setattr(execution, "write_partition", slow)
    with executor(spark, log, tmp_path, source) as groups, ThreadPoolExecutor(1) as beside:
        assert groups.records_read() == 0
        done = beside.submit(groups.execute, group, [MEMBER], lambda: source.bounded(group.lower, group.upper))
        read = wait_until(groups.records_read, 45, "the records that were read so far")
        assert not done.done()
        assert 0 < read <= group.records == 60_000
        Path(seen).touch()
        outcome = done.result(60).outcomes[MEMBER.table_id]
        assert groups.records_read() == 0
    assert isinstance(outcome, Done)
    assert outcome.rows == 60_000


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("partitions", "batch"), [(4, 16_384), (4, 1_000_000), (32, 16_384)])
def test_a_history_read_in_groups_costs_little_more_than_one_read(
    kafka: EmbeddedKafka, spark: SparkSession, partitions: int, batch: int
) -> None:
    """A reader asks ahead of its end; what comes back then is sent for nothing."""
    topic, records = create_topic(kafka, partitions), 1_000_000
    padding = "x" * 80
    values = (json.dumps({"a": n, "name": f"user-{n % 977}", "note": padding}).encode() for n in range(records))
    produce(kafka, topic, (Record(v, partition=n % partitions) for n, v in enumerate(values)), **{"batch.size": batch})
    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before
    source, upper = reader(spark, kafka, topic), Position(positions(kafka, topic))
    for size in (500_000, 100_000):
        before = kafka.bytes_out(topic)
        for tick in cut(upper, records // size):
            frame = source.bounded(tick.lower, tick.upper, tasks=max(1, size // 100_000))
            assert frame is not None
            frame.write.format("noop").mode("overwrite").save()
        ratio = (kafka.bytes_out(topic) - before) / plain
        print(f"{partitions} partitions, batches of {batch}, groups of {size}: {ratio:.3f} of one read")
        assert ratio <= 1.2
