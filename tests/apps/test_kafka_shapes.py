"""What topics can look like: transactions, markers, holes, empty and new partitions. Positions and rows are exact."""

from __future__ import annotations

import json

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import (
    Record,
    add_partitions,
    consume,
    create_topic,
    open_transaction,
    positions,
    produce,
    produce_in_transaction,
)
from tests.support.stack import BOTH_WAYS, Stack, Table
from tests.support.waiting import wait_until

pytestmark = BOTH_WAYS
TABLES = [Table("numbers", (("n", "bigint"),)), Table("lines", format="text", include=("offset",))]
NAMES = [t.name for t in TABLES]


def number(n: int, partition: int | None = 0, key: str | None = None) -> Record:
    return Record(json.dumps({"n": n}).encode(), key=key.encode() if key else None, partition=partition)


def at_the_end(stack: Stack, kafka: EmbeddedKafka, topic: str) -> bool:
    wanted = {str(p): offset for p, offset in positions(kafka, topic).items() if offset}
    return all(stack.table(name).position.offsets == wanted for name in NAMES)


def test_transactions_markers_an_empty_and_a_new_partition(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 3)  # partition 2 stays empty
    produce_in_transaction(kafka, topic, [number(n, n % 2) for n in range(20)])
    produce_in_transaction(kafka, topic, [number(-n, n % 2) for n in range(20)], commit=False)
    source = stack.create("tx", topic, TABLES)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
        assert at_the_end(stack, kafka, topic)

        with open_transaction(kafka, topic, [number(100, 0), number(101, 1)]) as (transaction, _):
            produce(kafka, topic, [number(n, 0) for n in range(200, 210)])  # behind the open transaction
            open_end = positions(kafka, topic)
            assert open_end[0] < positions(kafka, topic, committed=False)[0], "the transaction holds the end back"
            stack.wait_caught_up(source, NAMES)
            assert at_the_end(stack, kafka, topic)
            transaction.abort_transaction(30)
        wait_until(lambda: at_the_end(stack, kafka, topic), 30, "positions past the markers of the abort")

        add_partitions(kafka, topic, 5)
        produce(kafka, topic, [number(n, 3 + n % 2) for n in range(300, 320)])
        wait_until(lambda: at_the_end(stack, kafka, topic), 60, "the new partitions")
    stack.check(topic, TABLES)
    assert stack.rows("numbers").total() == 20 + 10 + 20


def test_a_partition_added_between_minting_and_a_crash(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 1)
    produce(kafka, topic, [number(n) for n in range(50)])
    source = stack.create("grown", topic, TABLES)
    store = stack.store(source)
    holder = store.claim("gone-before")  # type: ignore[arg-type]
    with stack.upstream(topic) as upstream:
        store.mint(
            holder, lower=store.load().upper, upper=upstream.end_offsets(), incarnation=upstream.describe().incarnation
        )
    add_partitions(kafka, topic, 3)
    produce(kafka, topic, [number(n, n % 3) for n in range(50, 80)])
    with stack.running(source):
        wait_until(lambda: at_the_end(stack, kafka, topic), 60, "all partitions")
    stack.check(topic, TABLES)
    assert store.load().last_number >= 2


def test_a_compacted_gap(stack: Stack, kafka: EmbeddedKafka) -> None:
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": "0",
    }
    topic = create_topic(kafka, 1, config=settings)
    for _ in range(3):
        produce(kafka, topic, [number(n, key=f"k{n % 7}") for n in range(60)])

    def gap() -> bool:
        produce(kafka, topic, [number(999, key="k-last")])  # a new segment: only closed ones are compacted
        found = [m.offset() for m in consume(kafka, topic)]
        return len(found) < found[-1] - found[0] + 1

    wait_until(gap, 60, "a hole in the offsets")
    source = stack.create("compacted", topic, TABLES)
    with stack.running(source):
        wait_until(lambda: at_the_end(stack, kafka, topic), 60, "the end of the topic")
    # The log may be compacted further meanwhile: what the tables hold beyond that was there when it was read.
    seen = {(m.partition(), m.offset()) for m in consume(kafka, topic)}
    held = {row[-2:] for row in stack.rows("numbers")}
    assert seen <= held
    assert stack.rows("numbers").total() == len(held), "no offset twice"
    assert len(held) < positions(kafka, topic)[0]
