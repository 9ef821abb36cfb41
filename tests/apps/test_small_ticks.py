"""Small ticks, which the app's driver reads by itself, and how they and Spark's query take turns."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from airflow_provider_mzshare.connectors import base
from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.apps.ingestion import SMALL_IN_A_ROW
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.stack import FAST, Stack, Table
from tests.support.waiting import wait_until

TABLES = [Table("numbers", (("n", "bigint"),)), Table("lines", format="text", include=("offset",))]
NAMES = [table.name for table in TABLES]
SMALL = FAST.model_copy(update={"driver_reads": True})


def numbers(first: int, count: int, padding: int = 0) -> list[Record]:
    return [
        Record(json.dumps({"n": n, "note": "x" * padding}).encode(), partition=n % 4)
        for n in range(first, first + count)
    ]


def executed(stack: Stack, source: ItemId) -> list[dict[str, Any]]:
    return [tick for tick in stack.tick_stats(source) if tick.get("records")]


def by_driver(stack: Stack, source: ItemId) -> list[bool]:
    return ["read_ms" in tick for tick in executed(stack, source)]


def checkpoints(app: Any) -> list[str]:
    return [path.name for path in app.app.folder.glob("checkpoint-*")]


def send_and_wait(stack: Stack, source: ItemId, records: list[Record]) -> None:
    produce(stack.kafka, stack.topic(source), records)
    stack.wait_caught_up(source, NAMES)


def test_a_burst_gets_a_query_which_ends_when_ticks_are_small_again(
    stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tasks have no client, as on a cluster. A burst of so many records is there within one interval."""
    monkeypatch.setattr(base, "THIN_RECORDS", 1_000)
    monkeypatch.setattr(KafkaReader, "parts", lambda *_: None)
    topic = create_topic(kafka, 4)
    source = stack.create("events", topic, TABLES, SMALL)
    with stack.running(source) as app:
        send_and_wait(stack, source, numbers(0, 1_000))
        assert not checkpoints(app), "there is no query"
        send_and_wait(stack, source, numbers(1_000, 20_000))
        assert checkpoints(app)
        assert by_driver(stack, source)[-1] is False
        sent, burst = 21_000, len(executed(stack, source))
        while checkpoints(app):
            send_and_wait(stack, source, numbers(sent, 100))
            sent += 100
            assert len(executed(stack, source)) < burst + 30, "the query ends after a few small ticks"
        send_and_wait(stack, source, numbers(sent, 100))
        assert not checkpoints(app)
        assert by_driver(stack, source)[-1] is True
        assert by_driver(stack, source).count(False) >= SMALL_IN_A_ROW, "while there is a query, it reads"
    stack.check(topic, TABLES)
    assert stack.rows("numbers").total() == sent + 100


def test_a_burst_is_read_by_tasks_without_a_query(
    stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "THIN_RECORDS", 1_000)
    topic = create_topic(kafka, 4)
    source = stack.create("events", topic, TABLES, SMALL)
    with stack.running(source) as app:
        send_and_wait(stack, source, numbers(0, 1_000))
        send_and_wait(stack, source, numbers(1_000, 20_000))
        assert by_driver(stack, source)[-1] is False
        assert executed(stack, source)[-1]["spark_jobs"] == 1
        assert "apart" not in executed(stack, source)[-1]
        send_and_wait(stack, source, numbers(21_000, 100))
        assert by_driver(stack, source)[-1] is True
        assert not checkpoints(app), "there never was a query"
    stack.check(topic, TABLES)
    assert stack.rows("numbers").total() == 21_100


def test_a_backlog_is_read_in_ticks_of_the_size_that_is_set_and_sent_once(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 4)
    produce(kafka, topic, numbers(0, 12_000, padding=300))
    before = kafka.bytes_out(topic)
    source = stack.create("events", topic, TABLES, SMALL.model_copy(update={"max_records_per_tick": 1_000}))
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    ours = kafka.bytes_out(topic) - before
    ticks = executed(stack, source)
    assert [tick["records"] for tick in ticks] == [1_000] * 12
    assert all(by_driver(stack, source))
    stack.check(topic, TABLES)
    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    ratio = ours / (kafka.bytes_out(topic) - before)
    print(f"twelve ticks of a backlog: {ratio:.3f} of one read")
    assert ratio <= 1.05


def test_who_reads_can_be_changed_while_the_app_runs(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 4)
    source = stack.create("events", topic, TABLES, SMALL)
    with stack.running(source) as app:
        for first, settings, driver in ((0, FAST, True), (100, SMALL, False), (200, SMALL, True)):
            send_and_wait(stack, source, numbers(first, 100))
            ticks = by_driver(stack, source)
            assert ticks[-1] is driver
            change(stack, source, settings)
            wait_until(lambda wanted=settings: bool(checkpoints(app)) is not wanted.driver_reads, 30, "the change")  # type: ignore[misc]
    stack.check(topic, TABLES)
    assert stack.rows("numbers").total() == 300


def change(stack: Stack, source: ItemId, settings: SourceSettings) -> None:
    with stack.catalog.write() as session:
        items.set_settings(session, source, settings)


def test_large_records_are_left_to_spark(stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tick is looked at and left to Spark; later ones are known to be large by the last one's records."""
    monkeypatch.setattr("airflow_provider_mzshare.connectors.kafka.reader.THIN_BYTES", 100_000)
    monkeypatch.setattr("airflow_provider_mzshare.storage.writing.executor.THIN_BYTES", 100_000)
    topic = create_topic(kafka, 4)
    source = stack.create("events", topic, TABLES, SMALL)
    with stack.running(source):
        for first in range(0, 600, 200):
            send_and_wait(stack, source, numbers(first, 200, padding=1_000))
        assert not any(by_driver(stack, source))
        deadline, sent = time.monotonic() + 60, 600
        while not by_driver(stack, source)[-1]:
            assert time.monotonic() < deadline, "small ones are read by the driver again"
            send_and_wait(stack, source, numbers(sent, 10))
            sent += 10
    stack.check(topic, TABLES)
