"""Indexes of keyed tables in real apps: made while Spark starts, and beside the ticks before a table is cut over."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.jobs import LOG_FILE
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import create_topic, produce
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_stack import KeyedTable, check_keyed, sent
from tests.support.stack import Stack, Table

PLAIN = Table("plain", (("name", "text"),))
MADE = "the index of version"


def keyed(name: str) -> KeyedTable:
    return KeyedTable(name, shape=SHAPES["composite inline"])


def log_of(handle: Handle) -> list[str]:
    return Path(handle.folder, LOG_FILE).read_text(encoding="utf-8").splitlines()


def status(stack: Stack) -> SourceStatus:
    with stack.catalog.read() as session:
        (source,) = items.list_sources(session)
    return StatusReader(stack.catalog, stack.launchers).source(source)[0]


def test_an_app_has_the_indexes_of_its_tables_before_it_has_spark(stack: Stack, kafka: EmbeddedKafka) -> None:
    """The second one may not keep any of them in memory."""
    topic = create_topic(kafka, 3)
    tables = [PLAIN, keyed("one"), keyed("two")]
    source = stack.create("events", topic, tables)
    for seed, limit in enumerate((None, 0)):
        produce(kafka, topic, sent(drawn(seed, tables[1].shape, ticks=3)))  # type: ignore[attr-defined]
        handle = stack.launch(source, key_index_mb=limit)
        try:
            stack.wait_caught_up(source, [table.name for table in tables], timeout=240)
            told = status(stack).reason
        finally:
            stack.launcher.kill(handle)
    lines = log_of(handle)
    made = [number for number, line in enumerate(lines) if MADE in line]
    held = next(number for number, line in enumerate(lines) if re.search(r"holds \S+, epoch", line))
    assert len(made) == 2
    assert all("on disk" in lines[number] for number in made)
    assert told.startswith("the indexes of 2 keyed tables are on disk, which is slower")
    assert max(made) < held, "both were there before anything could be committed"
    for table in tables[1:]:
        check_keyed(stack, source, table)  # type: ignore[arg-type]


def test_a_table_is_cut_over_with_an_index_that_was_made_beside_the_ticks(
    stack: Stack, kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    topic = create_topic(kafka, 3)
    source, late = stack.create("events", topic, [PLAIN]), keyed("late")
    caplog.set_level(logging.INFO)
    with stack.running(source) as app:
        for seed in range(4):
            produce(kafka, topic, sent(drawn(seed, late.shape, ticks=3)))
            stack.wait_caught_up(source, ["plain"])
        stack.add(source, [late])
        backfill = stack.start_backfill("late")
        stack.wait_cut_over(["late"])
        assert backfill.join().state == "finished"
        mark = len(caplog.records)
        produce(kafka, topic, sent(drawn(8, late.shape, ticks=3)))
        stack.wait_caught_up(source, ["plain", "late"])
    made = [record for record in caplog.records if MADE in record.getMessage()]
    joined = next(n for n, r in enumerate(caplog.records) if r.getMessage().endswith("joined"))
    beside = [record for record in made if (record.threadName or "").startswith("mzshare-index")]
    assert len(beside) == 1
    assert caplog.records.index(beside[0]) < joined, "it was there before a tick made the table a member"
    assert not [record for record in made if caplog.records.index(record) >= mark], "its first tick followed entries"
    check_keyed(stack, source, late)
    assert app.end is not None
    assert app.end.state == "stopped"
