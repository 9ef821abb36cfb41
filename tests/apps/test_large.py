"""Large sizes and repeats, for ``make test-full``."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.apps.test_processes import NAMES, TABLES, check_logs, records
from tests.apps.test_shared_read import record, sixteen_tables
from tests.support.kafka import consume, create_topic, produce
from tests.support.stack import Stack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.full(seconds=120)


@pytest.mark.timeout(1200)
def test_a_million_records_into_one_and_into_sixteen_tables(stack: Stack, kafka: EmbeddedKafka) -> None:
    """Both in one run: what sixteen tables cost beside one, in time and in bytes from the broker."""
    topic = create_topic(kafka, 4)
    produce(kafka, topic, (record(n) for n in range(1_000_000)))
    settings = SourceSettings(trigger_interval_ms=200, max_records_per_tick=200_000)
    before = kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before
    seconds, sent = {}, {}
    sixteen = sixteen_tables()
    for name, tables in (("warm", sixteen[:1]), ("one", sixteen[:1]), ("sixteen", sixteen)):
        made = [type(t)(f"{name}_{t.name}", t.columns, t.format, t.include) for t in tables]
        source = stack.create(name, topic, made, settings)
        before, began = kafka.bytes_out(topic), time.monotonic()
        with stack.running(source):
            stack.wait_caught_up(source, [t.name for t in made], timeout=400)
            seconds[name], sent[name] = time.monotonic() - began, kafka.bytes_out(topic) - before
    for table in sixteen:
        held = stack.rows(f"sixteen_{table.name}")
        places = Counter(row[-2:] for row in held)
        assert places == Counter((p, o) for p in range(4) for o in range(250_000)), table.name
    stack.check(topic, [type(sixteen[0])("sixteen_everything", sixteen[0].columns, "json", sixteen[0].include)])
    print(
        f"1,000,000 records: one table {seconds['one']:.1f} s, sixteen {seconds['sixteen']:.1f} s, "
        f"ratio {seconds['sixteen'] / seconds['one']:.2f}; bytes per plain read: one {sent['one'] / plain:.3f}, "
        f"sixteen {sent['sixteen'] / plain:.3f}"
    )
    assert sent["sixteen"] <= 1.05 * plain


@pytest.mark.timeout(1200)
def test_killed_at_random_moments_again_and_again(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    chosen = random.Random(seed)
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, TABLES)
    produced = 0
    for _ in range(8):
        handle = stack.launch(source)
        ticks = stack.store(source).load().last_number
        wait_until(lambda ticks=ticks: stack.store(source).load().last_number > ticks, 120, "a tick")  # type: ignore[misc]
        deadline = time.monotonic() + chosen.uniform(0, 4)
        while time.monotonic() < deadline:
            produce(kafka, topic, records(produced, 100))
            produced += 100
        stack.launcher.kill(handle)
    handle = stack.launch(source)
    stack.wait_caught_up(source, NAMES, timeout=120)
    stack.launcher.request_stop(handle)
    wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the last app's end")
    stack.check(topic, TABLES)
    check_logs(stack, source, NAMES)
    assert stack.rows("raw").total() == produced
    stack.catalog.close()
