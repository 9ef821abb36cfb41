"""Topics of many partitions: what a quiet one costs, in time and in bytes from the broker."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.arrivals import LATE, NUMBERS, SIBLING, check_same_as_sibling
from tests.support.kafka import Record, consume, create_topic, groups, produce, produce_in_transaction
from tests.support.stack import Stack, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE, NARROW = 200, 4
ROUNDS = 3


def one_each(partitions: int) -> list[Record]:
    return [Record(b'{"n":1}', partition=p) for p in range(partitions)]


def read_ms(stack: Stack, source: ItemId) -> float:
    """All ticks with records up to now."""
    ticks = [tick for tick in stack.tick_stats(source) if tick.get("records")]
    return sum(tick["write_ms"] + tick.get("read_ms", 0) for tick in ticks)


def milliseconds(stack: Stack, kafka: EmbeddedKafka, partitions: int) -> float:
    """That a record in every partition costs a running source; the first round opens the readers. Spark reads the few
    partitions, as it would if they had many records."""
    table = Table(f"t{partitions}", (("n", "bigint"),))
    topic = create_topic(kafka, partitions)
    before = kafka.bytes_out(topic)
    # Seldom, so that a round is rarely cut in two; if it is, both ticks count.
    settings = SourceSettings(trigger_interval_ms=1_000, driver_reads=partitions == WIDE)
    source = stack.create(f"s{partitions}", topic, [table], settings)
    sums = [0.0]
    with stack.running(source):
        for _ in range(ROUNDS):
            produce(kafka, topic, one_each(partitions))
            stack.wait_caught_up(source, [table.name])
            sums.append(read_ms(stack, source))
    assert stack.rows(table.name).total() == ROUNDS * partitions
    files = [tick["files"] for tick in stack.tick_stats(source) if tick.get("records")]
    assert max(files) == 1
    ours = kafka.bytes_out(topic) - before
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before - ours
    print(f"{partitions} partitions: {ours / plain:.2f} of one read")
    assert ours <= 1.2 * plain
    return min(after - before for before, after in pairwise(sums[1:]))


def test_a_tick_over_many_quiet_partitions_takes_little_more_than_one_over_few(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    few, many = (milliseconds(stack, kafka, partitions) for partitions in (NARROW, WIDE))
    print(f"a record in each of {NARROW} partitions {few:.0f} ms, of {WIDE} {many:.0f} ms, ratio {many / few:.1f}")
    assert many <= 2 * few


@pytest.mark.parametrize("driver_reads", [True])
def test_thin_ticks_and_thin_groups_are_exact(stack: Stack, kafka: EmbeddedKafka) -> None:
    """Aborted and committed transactions, records that cannot be decoded, a table that comes later: no Spark job."""
    topic = create_topic(kafka, 20)
    source = stack.create("events", topic, [NUMBERS, SIBLING])
    with stack.running(source):
        for first in (0, 100):
            produce(kafka, topic, [spread(n, 20) for n in range(first, first + 50)])
            produce_in_transaction(kafka, topic, [spread(n, 20) for n in range(first + 50, first + 75)])
            produce_in_transaction(kafka, topic, [spread(n, 20) for n in range(first + 75, first + 100)], commit=False)
            stack.wait_caught_up(source, ["numbers", "sibling"])
        stack.add(source, [LATE])
        backfill = stack.start_backfill("late")
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
    check_same_as_sibling(stack, source)
    stack.check(topic, [NUMBERS])
    assert stack.rows("numbers").total() + stack.error_places("numbers").total() == 150
    executed = [tick for tick in stack.tick_stats(source) if tick.get("records")]
    assert executed
    assert {(tick["spark_jobs"], tick.get("apart")) for tick in executed} == {(0, 1)}


def spread(n: int, partitions: int) -> Record:
    """One in seven is no JSON."""
    value = b"bad" if n % 7 == 0 else b'{"n":%d}' % n
    return Record(value, partition=n % partitions)


def test_reads_that_follow_each_other_make_the_broker_send_everything_once(
    stack: Stack, kafka: EmbeddedKafka, spark: SparkSession
) -> None:
    """Of a backfill that follows: what its readers have fetched ahead is there for the next read."""
    topic, partitions, steps = create_topic(kafka, 8), 8, 6
    for _ in range(steps):
        produce(kafka, topic, one_each(partitions))
    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before
    reader, ends = (
        KafkaReader(spark, stack.config, topic),
        [dict.fromkeys(range(partitions), n) for n in range(steps + 1)],
    )
    found = []
    for lower, upper in pairwise(ends):
        frame = reader.bounded(Position(lower), Position(upper))
        assert frame is not None
        found += [(row.partition, row.offset) for row in frame.coalesce(1).collect()]
    assert sorted(found) == [(p, o) for p in range(partitions) for o in range(steps)]
    ratio = (kafka.bytes_out(topic) - before - plain) / plain
    print(f"{steps} reads in a row: {ratio:.2f} of one read")
    assert ratio <= 1.2
    assert not [group for group in groups(kafka) if group.startswith("mzshare")]
