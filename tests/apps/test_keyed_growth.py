"""A keyed table through many ticks of the real app, with maintenance beside it: nothing grows from tick to tick."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections.collection import Collection
from tests.perf.measuring import live_rss_mb
from tests.perf.peers.ours_keyed import OursKeyed
from tests.perf.peers.task import Task
from tests.support.delta import read_arrow
from tests.support.kafka import create_topic
from tests.support.keyed_load import Changes

KEYS, CHANGES, TICKS = 100_000, 2_000, 1_000
HISTORY_SECONDS = 30
MAINTAINED_EVERY_SECONDS = 10.0
LIMIT_SECONDS = 3_000.0
GROWTH = 1.5
"""At most, from the middle third of the run to the last: in the first one the app starts and warms up."""


def produced(kafka: EmbeddedKafka) -> tuple[str, Changes]:
    topic, drawn = create_topic(kafka, 4), Changes(KEYS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 50, "log_level": 0})
    for tick in range(1, TICKS + 1):
        for key, value in drawn.messages(tick, CHANGES):
            producer.produce(topic, value, f"k{key}", partition=key % 4)
        assert producer.flush(120) == 0
    return topic, drawn


@pytest.mark.full(seconds=900)
@pytest.mark.timeout(3_600)
def test_a_thousand_ticks_leave_what_a_few_leave(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic, drawn = produced(kafka)
    task = Task(kafka.bootstrap, topic, CHANGES * TICKS, 1, CHANGES, str(tmp_path), str(default_folder()))
    ours = OursKeyed(task, kafka, KEYS, vectors=True, history=HISTORY_SECONDS)
    deadline, maintained = time.monotonic() + LIMIT_SECONDS, 0.0
    memory, files, entries = [], [], []
    with ours:
        while not ours.is_done():
            assert time.monotonic() < deadline
            time.sleep(0.2)
            if time.monotonic() < maintained + MAINTAINED_EVERY_SECONDS:
                continue
            maintained = time.monotonic()
            done = maintain(ours.stack.catalog, str(ours.stack.warehouse), grace=timedelta(0))
            assert not [each.trouble for each in done if each.trouble]
            memory.append(live_rss_mb(ours.pid))
            files.append(sum(path.is_file() for path in ours.path.rglob("*")))
            entries.append(len(list((ours.path / "_delta_log").glob("*[0-9].json"))))
        seconds = ours.commit_seconds()
    newest = Collection.open(str(ours.path.parent), ours.name).delta_version
    early, late = statistics.median(seconds[50:250]), statistics.median(seconds[-200:])
    print(
        f"{newest:,} versions of {len(seconds):,} ticks: commits took {early * 1000:.0f} ms, "
        f"then {late * 1000:.0f} ms, at most {max(seconds[50:]):.2f} s; {min(memory):.0f} to {max(memory):.0f} MB; "
        f"files {files[:: max(1, len(files) // 10)]}, entries {entries[:: max(1, len(entries) // 10)]}"
    )
    assert not list(drawn.wrong(read_arrow(str(ours.path.parent), ours.name, newest)))
    assert newest > TICKS * 0.9
    assert late <= 2 * early
    third = len(files) // 3
    for numbers in (memory, files, entries):
        assert max(numbers[-third:]) <= GROWTH * max(numbers[third:-third]), numbers
    assert max(entries) < newest / 2
