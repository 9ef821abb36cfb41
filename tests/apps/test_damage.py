"""A table whose log is damaged stops alone, says so, and is healed by RESNAPSHOT while the others go on."""

from __future__ import annotations

import json
import os

from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.control.lifecycle.check_table import check_table
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import Record, create_topic, produce
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

NUMBERS = Table("numbers", (("n", "bigint"),))
WORDS = Table("words", (("w", "text"),))


def records(first: int, last: int) -> list[Record]:
    return [Record(json.dumps({"n": n, "w": f"w{n}"}).encode(), partition=n % 2) for n in range(first, last)]


def test_a_damaged_log_stops_its_table_alone_and_a_new_generation_heals_it(stack: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, records(0, 10))
    source = stack.create("events", topic, [NUMBERS, WORDS])
    with stack.running(source):
        stack.wait_caught_up(source, ["numbers", "words"])
    with stack.catalog.read() as session:
        log = stack.warehouse / stack.collections(session, "words")["data"] / "_delta_log"
    newest = max(log.glob("*.json"))
    os.truncate(newest, 100)
    produce(kafka, topic, records(10, 20))
    with stack.running(source):
        stack.wait_caught_up(source, ["numbers"])
        wait_until(lambda: stack.table("words").status == "stalled", 60, "words to stall")
        damaged = stack.table("words")
        assert f"{newest.name} is not whole" in (damaged.damage or "")
        assert "{" not in (damaged.reason or "")
        with stack.catalog.write() as session:
            resnapshot_table(session, damaged.id)
        backfill = stack.start_backfill("words")
        stack.wait_cut_over(["words"])
        assert backfill.join().state == "finished"
        produce(kafka, topic, records(20, 30))
        stack.wait_caught_up(source, ["numbers", "words"])
    assert stack.table("words").damage is None
    assert check_table(stack.catalog, str(stack.warehouse), stack.table("words"), deep=True).is_whole
    stack.check(topic, [NUMBERS, WORDS])
