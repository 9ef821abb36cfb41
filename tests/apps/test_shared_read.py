"""One read of a topic feeds many tables, each equal to the model row for row."""

from __future__ import annotations

import json
import random

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.stack import Stack, Table

COLUMNS = (
    ("id", "bigint"),
    ("name", "text"),
    ("amount", "double"),
    ("active", "boolean"),
    ("price", "numeric(12,2)"),
    ("small", "integer"),
)


def record(number: int) -> Record:
    value = {
        "id": number,
        "name": f"user-{number % 977}",
        "amount": number / 3,
        "active": number % 2 == 0,
        "price": (number % 100_000) / 100,
        "note": "x" * 40,
    }
    if number % 5:
        value["small"] = number % 1000
    return Record(json.dumps(value).encode(), key=str(number).encode() if number % 3 else None, partition=number % 4)


def sixteen_tables() -> list[Table]:
    """Different columns each: typed subsets, untyped, text, bytes, with and without metadata."""
    chosen = random.Random(7)
    tables = [
        Table("everything", COLUMNS, include=("partition", "offset", "timestamp", "key")),
        Table("document"),
        Table("line", format="text", include=("key",)),
        Table("raw", format="bytes", include=("key", "timestamp")),
    ]
    for number in range(12):
        tables.append(Table(f"part_{number}", tuple(chosen.sample(COLUMNS, chosen.randint(1, 5)))))
    return tables


def test_sixteen_tables_equal_the_model_and_cost_one_read(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 4)
    produce(kafka, topic, (record(n) for n in range(40_000)))
    tables = sixteen_tables()

    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before

    source = stack.create("events", topic, tables)
    with stack.running(source):
        stack.wait_caught_up(source, [t.name for t in tables])
        shared = kafka.bytes_out(topic) - before - plain
        produce(kafka, topic, (record(n) for n in range(40_000, 41_000)))
        stack.wait_caught_up(source, [t.name for t in tables])
    stack.check(topic, tables)

    print(f"bytes from the broker: plain consumer {plain}, 16 tables {shared}, ratio {shared / plain:.3f}")
    assert shared <= 1.05 * plain
    jobs = [tick["spark_jobs"] for tick in stack.tick_stats(source) if "spark_jobs" in tick]
    assert jobs
    assert set(jobs) == {1}, "one Spark job per tick"
