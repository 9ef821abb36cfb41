"""A source as it lives: idle, re-configured, losing and getting tables, read as of any tick, compacted."""

from __future__ import annotations

import json
import time

import pytest

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.audit import active_files
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.rows import read_spark
from tests.support.kafka import Record, create_topic, groups, produce
from tests.support.stack import FAST, Stack, Table
from tests.support.waiting import wait_until

NUMBERS = Table("numbers", (("n", "bigint"),))
WORDS = Table("words", (("w", "text"),))
TABLES = [NUMBERS, WORDS]
NAMES = [t.name for t in TABLES]


def good(n: int) -> Record:
    return Record(json.dumps({"n": n, "w": f"w{n}"}).encode(), partition=n % 2)


def files_of(stack: Stack, name: str) -> list[str]:
    with stack.catalog.read() as session:
        path = stack.collections(session, name)["data"]
    collection = Collection.open(str(stack.warehouse), CollectionId(path))
    return active_files(collection, collection.delta_version)


def test_idle_then_reconfigured_then_without_tables(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, [NUMBERS])
    app = stack.start(source)
    wait_until(lambda: stack.store(source).load().last_number >= 2, 60, "empty ticks on an idle topic")
    assert stack.table("numbers").status == "live"
    assert stack.table("numbers").upper > 0

    # Nothing was read yet: a table made now joins without a restart.
    with stack.catalog.write() as session:
        items.create_table(session, name=("public", "words"), source_id=source, spec=WORDS.spec(topic))
    produce(kafka, topic, [good(n) for n in range(100)])
    stack.wait_caught_up(source, NAMES)

    # A smaller limit per tick is taken up by the running app.
    slow = FAST.model_copy(update={"max_records_per_tick": 10, "trigger_interval_ms": 100})
    with stack.catalog.write() as session:
        items.set_settings(session, source, slow)
    wait_until(lambda: len(list(app.app.folder.glob("checkpoint-2"))) == 1, 30, "a new query")
    produce(kafka, topic, [good(n) for n in range(100, 160)])
    stack.wait_caught_up(source, NAMES)
    sizes = [t["records"] for t in stack.tick_stats(source) if t.get("records")]
    assert max(sizes[-6:]) <= 10
    stack.check(topic, TABLES)

    words = stack.rows("words")
    with stack.catalog.write() as session:
        items.drop_table(session, stack.table("numbers").id)
    produce(kafka, topic, [good(n) for n in range(160, 170)])
    stack.wait_caught_up(source, ["words"])
    assert stack.rows("words").total() == words.total() + 10
    assert app.end is None

    with stack.catalog.write() as session:
        items.drop_table(session, stack.table("words").id)
    assert app.join().state == "finished"
    assert not [g for g in groups(kafka) if g.startswith("spark-kafka")], "no consumer group is left on the broker"


def test_reads_as_of_a_tick_never_change(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, TABLES)
    seen = {}
    with stack.running(source):
        for turn in range(6):
            produce(kafka, topic, [good(n) for n in range(turn * 20, turn * 20 + 20)])
            stack.wait_caught_up(source, NAMES)
            tick = stack.store(source).load().last_number
            seen[tick] = {name: stack.rows(name, tick=tick) for name in NAMES}
            for earlier, tables in seen.items():
                assert {name: stack.rows(name, tick=earlier) for name in NAMES} == tables
        # Maintenance asks the app, which owns the tables, to merge their files.
        before = {name: len(files_of(stack, name)) for name in NAMES}
        assert [done.trouble for done in maintain(stack.catalog, str(stack.warehouse))] == ["", ""]
        wait_until(lambda: all(len(files_of(stack, name)) == 1 for name in NAMES), 60, f"one file each of {before}")
    assert min(before.values()) >= 6
    sizes = [tables["numbers"].total() for tables in seen.values()]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 120
    for tick, tables in seen.items():
        assert {name: stack.rows(name, tick=tick) for name in NAMES} == tables, f"tick {tick} after compaction"
    stack.check(topic, TABLES)

    first, last = min(seen), max(seen)
    with stack.catalog.read() as session:
        ids = [stack.table(name).id for name in NAMES]
        cut = reads.consistent_cut(session, ids, tick=first)
        assert {point.tick for point in cut} == {first}
        with pytest.raises(NotReadable, match="not final yet"):
            reads.table_read_point(session, ids[0], as_of_ms=int(time.time() * 1000) + 3_600_000)
        with pytest.raises(NotReadable):
            reads.table_read_point(session, ids[0], as_of_ms=1)
        point = reads.table_read_point(session, ids[0], tick=last)

    # Spark reads what delta-rs wrote, at the same version.
    assert stack.spark is not None
    frame = read_spark(stack.spark, str(stack.warehouse), point.data_path, point.data_version)
    assert frame.columns == ["n"]
    assert sorted(row["n"] for row in frame.collect()) == list(range(120))
