"""What goes wrong around a running source: nothing is lost, nothing doubled, and nobody else is stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.repair import repair_catalog
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.embedded.process import free_ports
from airflow_provider_mzshare.storage.collections import commit
from airflow_provider_mzshare.storage.crashpoints import VARIABLE
from tests.support.kafka import Record, create_topic, delete_records, delete_topic, produce
from tests.support.stack import BOTH_WAYS, Stack, Table
from tests.support.waiting import wait_until

NUMBERS = Table("numbers", (("n", "bigint"),))
WORDS = Table("words", (("w", "text"), ("n", "bigint")))
TABLES = [NUMBERS, WORDS]
NAMES = [t.name for t in TABLES]


def good(n: int) -> Record:
    return Record(json.dumps({"n": n, "w": f"w{n}"}).encode(), partition=n % 2)


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Root may write anywhere but into an immutable folder."""
    subprocess.run(["chattr", "+i", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)


def data_folder(stack: Stack, name: str) -> Path:
    with stack.catalog.read() as session:
        return stack.warehouse / stack.collections(session, name)["data"]


@BOTH_WAYS
def test_a_topic_made_anew_stalls_the_source_and_none_of_its_records_is_taken(
    stack: Stack, kafka: EmbeddedKafka
) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    app = stack.start(source)
    stack.wait_caught_up(source, NAMES)
    before = stack.rows("numbers")
    delete_topic(kafka, topic)
    create_topic(kafka, 2, name=topic)
    produce(kafka, topic, [good(n) for n in range(1000, 1030)])
    end = app.join()
    assert end.state == "stalled"
    with stack.catalog.read() as session:
        found = items.get_source_item(session, source)
    assert (found.status, found.reason) in {("stalled", "topic_recreated"), ("stalled", "topic_missing")}
    assert stack.rows("numbers") == before
    # A new app does not take them either.
    assert stack.start(source).join().state in {"stalled", "fenced"}
    assert stack.rows("numbers") == before


@BOTH_WAYS
def test_history_that_retention_took_stalls_the_source(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    produce(kafka, topic, [good(n) for n in range(10, 40)])
    delete_records(kafka, topic, {0: 12})
    end = stack.start(source).join()
    assert end.state == "stalled"
    assert "partition 0" in (end.error or "")
    assert "begins at 12" in (end.error or "")
    with stack.catalog.read() as session:
        assert items.get_source_item(session, source).reason == "history_gone"
    assert stack.rows("numbers").total() == 10


@BOTH_WAYS
def test_a_catalog_restored_while_the_app_runs_is_noticed_and_repaired(
    stack: Stack, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(20)])
    source = stack.create("events", topic, TABLES)
    app = stack.start(source)
    stack.wait_caught_up(source, NAMES)
    copy = tmp_path / "copy.db"
    backup(stack, copy)
    at_copy = stack.store(source).load().last_number
    produce(kafka, topic, [good(n) for n in range(20, 40)])
    stack.wait_caught_up(source, NAMES)
    assert stack.store(source).load().last_number > at_copy
    restore(stack, copy)

    produce(kafka, topic, [good(n) for n in range(40, 60)])
    end = app.join(90)
    assert end.state == "stalled", end
    assert "catalog repair" in (end.error or "")
    with stack.catalog.read() as session:
        assert items.get_source_item(session, source).reason == "catalog_behind"

    report = repair_catalog(stack.catalog, str(stack.warehouse))
    assert [r.source for r in report] == ["events"]
    assert report[0].ticks
    assert report[0].resumed
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    stack.check(topic, TABLES)
    assert not repair_catalog(stack.catalog, str(stack.warehouse)), "a healthy catalog is left alone"


def backup(stack: Stack, copy: Path) -> None:
    stack.sqlite(f"VACUUM INTO '{copy}'")


def restore(stack: Stack, copy: Path) -> None:
    """Under the feet of the running app: through SQLite's own backup, so that no file is torn."""
    stack.sqlite_restore(copy)


@BOTH_WAYS
def test_a_commit_that_landed_but_raised_is_not_written_again(
    stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    append, lost = commit.add_files, Counter[str]()

    def landed_but_raised(collection: Any, *args: Any, **kwargs: Any) -> None:
        append(collection, *args, **kwargs)
        lost[collection.collection_id] += 1
        raise OSError("the answer was lost")

    monkeypatch.setattr(commit, "add_files", landed_but_raised)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
        produce(kafka, topic, [good(n) for n in range(10, 20)])
        stack.wait_caught_up(source, NAMES)
    assert len(lost) == 4, "data and errors of both tables"
    stack.check(topic, TABLES)


@BOTH_WAYS
def test_one_folder_that_cannot_be_written_stalls_its_table_alone(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    with stack.running(source) as app:
        stack.wait_caught_up(source, NAMES)
        before = stack.rows("words")
        with unwritable(data_folder(stack, "words")):
            produce(kafka, topic, [good(n) for n in range(10, 30)])
            stack.wait_caught_up(source, ["numbers"])
            produce(kafka, topic, [good(n) for n in range(30, 40)])
            stack.wait_caught_up(source, ["numbers"])
        assert app.end is None, "the app runs on"
    assert stack.table("words").status == "stalled"
    assert stack.table("words").reason
    assert stack.rows("words") == before
    stack.check(topic, [NUMBERS])


@BOTH_WAYS
def test_a_warehouse_that_takes_nothing_for_a_while_stalls_nobody(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    with stack.running(source) as app:
        stack.wait_caught_up(source, NAMES)
        with unwritable(data_folder(stack, "words")), unwritable(data_folder(stack, "numbers")):
            produce(kafka, topic, [good(n) for n in range(10, 30)])
            store = stack.store(source)
            wait_until(lambda: any(t.attempts > 5 for t in store.load().pending), 60, "attempts in vain")
        stack.wait_caught_up(source, NAMES)
        assert app.end is None
    assert {stack.table(name).status for name in NAMES} == {"live"}
    stack.check(topic, TABLES)


@BOTH_WAYS
def test_a_folder_that_is_gone_is_noticed_before_anything_is_written_on_top(stack: Stack, kafka: EmbeddedKafka) -> None:
    """Also by an app that begins with a tick somebody else has left."""
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    produce(kafka, topic, [good(n) for n in range(10, 20)])
    leave_pending(stack, source, topic)
    lost = data_folder(stack, "words")
    shutil.rmtree(lost)
    with stack.running(source):
        stack.wait_caught_up(source, ["numbers"])
    assert stack.table("words").status == "stalled"
    assert "there is no Delta table" in (stack.table("words").reason or "")
    assert not lost.exists(), "no empty table was put in its place"
    stack.check(topic, [NUMBERS])


def leave_pending(stack: Stack, source: ItemId, topic: str) -> None:
    """As an app does that dies right after minting."""
    store = stack.store(source)
    holder = store.claim(JobId("died-early"))
    with stack.upstream(topic) as upstream:
        end, incarnation = upstream.end_offsets(), upstream.describe().incarnation
    store.mint(holder, lower=store.load().upper, upper=end, incarnation=incarnation)
    store.release(holder)


@BOTH_WAYS
def test_a_tick_that_all_tables_hold_needs_no_upstream_to_be_finished(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(10)])
    source = stack.create("events", topic, TABLES)
    os.environ[VARIABLE] = "all_committed:raise"
    try:
        app = stack.start(source)
        wait_until(lambda: bool(stack.store(source).load().pending), 60, "the tick")
        # Its records go while the tick is held by every table and committed by nobody.
        app.app.stop.set()
        app.join()
    finally:
        del os.environ[VARIABLE]
    delete_records(kafka, topic, {0: 5, 1: 5})
    produce(kafka, topic, [good(n) for n in range(10, 20)])
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    assert stack.rows("numbers").total() == 20


@BOTH_WAYS
def test_a_topic_deleted_under_an_idle_source_stalls_it(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [good(n) for n in range(4)])
    source = stack.create("events", topic, TABLES)
    app = stack.start(source)
    stack.wait_caught_up(source, NAMES)
    delete_topic(kafka, topic)
    assert app.join().state == "stalled"
    with stack.catalog.read() as session:
        assert items.get_source_item(session, source).reason == "topic_missing"


@BOTH_WAYS
def test_a_bad_record_stops_only_the_table_that_asked_for_it(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    strict = Table("strict", (("n", "bigint"),), on_decode_error="stop")
    tables = [NUMBERS, WORDS, strict]
    source = stack.create("events", topic, tables)
    with stack.running(source):
        produce(kafka, topic, [good(n) for n in range(10)])
        stack.wait_caught_up(source, [t.name for t in tables])
        produce(kafka, topic, [good(10), Record(b'{"n": "ten", "w": "ten"}', partition=0), good(11)])
        stack.wait_caught_up(source, NAMES)
        wait_until(lambda: stack.table("strict").status == "stalled", 30, "strict to stall")
    assert "partition 0, offset 6" in (stack.table("strict").reason or "")
    stack.check(topic, TABLES)
    assert stack.rows("strict").total() == 10
    assert stack.error_places("words").total() == 1


def test_a_thousand_malformed_records_among_a_hundred_thousand(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    broken = [b"", None, b"{", b'{"n": 1} x', b'{"n": 1}{"n": 2}', b'{"n": NaN}', b"{'n': 1}", b"\xff\xfe"]
    wrong_type = b'{"n": "1"}'
    kinds = [*broken, wrong_type]

    def records() -> Iterator[Record]:
        for n in range(100_000):
            bad = n % 100 == 50
            yield Record(kinds[(n // 100) % len(kinds)], partition=n % 2) if bad else good(n)

    produce(kafka, topic, records())
    source = stack.create("events", topic, TABLES)
    with stack.running(source):
        stack.wait_caught_up(source, NAMES)
    stack.check(topic, TABLES)
    assert stack.error_places("numbers").total() == 1_000
    assert stack.rows("numbers").total() == 99_000
    assert stack.table("numbers").errors == 1_000


def remove(folder: Path) -> None:
    """Also while Spark writes into it, as it does once more after a tick is committed."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    wait_until(is_gone, 20, f"{folder.name} to be gone")


def test_the_checkpoint_is_scratch(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, TABLES)
    app = stack.start(source)
    produce(kafka, topic, [good(n) for n in range(50)])
    stack.wait_caught_up(source, NAMES)
    for checkpoint in app.app.folder.glob("checkpoint-*"):
        remove(checkpoint)
    produce(kafka, topic, [good(n) for n in range(50, 80)])
    stack.wait_caught_up(source, NAMES)
    assert app.stop().state == "stopped"
    stack.check(topic, TABLES)


@BOTH_WAYS
def test_a_broker_that_is_away_is_waited_for_and_told(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 1)
    source = stack.create("events", topic, [NUMBERS])
    (nobody,) = free_ports(1)
    elsewhere = Connection("away", "kafka", extra={"bootstrap.servers": f"127.0.0.1:{nobody}"})
    told: list[str | None] = []
    app = stack.start(
        source,
        upstream=KafkaUpstream(KafkaConfig.from_connection(elsewhere), topic, timeout=2),
        on_trouble=told.append,
    )
    wait_until(lambda: bool(told), 60, "the app to say what holds it up")
    assert str(nobody) in (told[0] or "")
    assert app.stop().state == "stopped"
    assert stack.table("numbers").status == "created"


@BOTH_WAYS
def test_the_broker_restarts_in_the_middle(jars: Path, stack: Stack, tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path / "own-broker", jars=jars) as broker:
        catalog = Catalog(f"sqlite:///{tmp_path / 'own.db'}")
        own = Stack(tmp_path / "own", broker, catalog, stack.spark, driver_reads=stack.driver_reads)
        topic = create_topic(broker, 2)
        produce(broker, topic, [good(n) for n in range(50)])
        source = own.create("events", topic, TABLES)
        with own.running(source) as app:
            own.wait_caught_up(source, NAMES)
            broker.kill()
            broker.start()
            produce(broker, topic, [good(n) for n in range(50, 100)])
            own.wait_caught_up(source, NAMES, timeout=120)
            assert app.end is None
        own.check(topic, TABLES)
        assert all(own.table(name).status == "live" for name in NAMES)
