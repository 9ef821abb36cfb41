"""Detached apps, killed and stopped at every labelled point: the tables still equal the model, no tick twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.engine import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage import audit, deltalog
from airflow_provider_mzshare.storage.collections import Collection
from airflow_provider_mzshare.storage.crashpoints import LABELS, VARIABLE
from airflow_provider_mzshare.types.ids import CollectionId, ItemId
from tests.support.kafka import Record, create_topic, produce
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

TABLES = [
    Table("numbers", (("n", "bigint"),)),
    Table("words", (("w", "text"),), include=("partition", "offset")),
    Table("raw", format="bytes"),
]
NAMES = [t.name for t in TABLES]


def records(first: int, count: int) -> list[Record]:
    """One in ten cannot be decoded by ``numbers`` only."""
    return [
        Record(json.dumps({"n": n if n % 10 else str(n), "w": f"w{n}"}).encode(), partition=n % 2)
        for n in range(first, first + count)
    ]


@pytest.fixture
def detached(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Stack]:
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    started: list[Handle] = []
    launch = stack.launch
    stack.launch = lambda *args, **kwargs: started.append(launch(*args, **kwargs)) or started[-1]  # type: ignore[method-assign, func-returns-value]
    yield stack
    for handle in started:
        stack.launcher.kill(handle)
    stack.catalog.close()


def gone(stack: Stack, handle: Handle) -> bool:
    return stack.launcher.status(handle) == "gone"


def check_logs(stack: Stack, source: ItemId) -> None:
    """No tick twice in any collection, every commit's tick is one of the log, and no file came in otherwise."""
    store = stack.store(source)
    with stack.catalog.read() as session:
        paths = [path for name in NAMES for path in stack.collections(session, name).values()]
    for path in paths:
        collection = Collection.open(str(stack.warehouse), CollectionId(path))
        times = [commit.mz_timestamp for commit in audit.transactions(collection)]
        assert times == sorted(set(times)), f"{path}: a tick twice, or out of order"
        assert all(store.knows(time) for time in times)
        brought = set()
        for version in range(collection.delta_version + 1):
            entry = deltalog.read_entry(collection.filesystem, version)
            assert entry is not None
            if entry.tick(collection.collection_id):
                brought |= set(entry.added())
        assert set(audit.active_files(collection, collection.delta_version)) == brought
        assert brought <= {info.path for info in audit.data_files(collection)}


def test_killed_at_every_labelled_point(detached: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = create_topic(kafka, 2)
    source = detached.create("events", topic, TABLES)
    produced = 0
    # Where the app before left a tick, this one passes its labels once to finish it: it dies in the tick after.
    times = {"offsets_known": 1, "tick_minted": 1, "files_written": 2, "between_commits": 8}
    for label in LABELS:
        produce(kafka, topic, records(produced, 200))
        produced += 200
        monkeypatch.setenv(VARIABLE, f"{label}@{times.get(label, 2)}")
        handle = detached.launch(source)
        wait_until(lambda handle=handle: gone(detached, handle), 120, f"death at {label}")  # type: ignore[misc]
        assert "holds" in detached.log(handle), detached.log(handle)
        pending = detached.store(source).load().pending
        assert bool(pending) == (label not in {"offsets_known", "tick_committed"}), label
    monkeypatch.delenv(VARIABLE)
    for checkpoint in (detached.folder / "jobs").glob("*/checkpoint-*"):
        shutil.rmtree(checkpoint)
    produce(kafka, topic, records(produced, 200))
    handle = detached.launch(source)
    detached.wait_caught_up(source, NAMES, timeout=120)
    wait_until(lambda: detached.job(handle.job_id).state == "running", 30, "the job to say that it runs")
    detached.check(topic, TABLES)
    check_logs(detached, source)

    detached.launcher.request_stop(handle)
    wait_until(lambda: gone(detached, handle), 60, "a clean end after TERM")
    assert detached.job(handle.job_id).state == "stopped"
    assert detached.store(source).load().lease.job_id is None
    assert not list((detached.folder / "jobs" / handle.job_id).glob("checkpoint-*"))
    assert detached.rows("raw").total() == produced + 200


def test_a_stopped_app_that_wakes_up_after_its_lease_is_fenced(
    detached: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(kafka, 2)
    source = detached.create("events", topic, TABLES)
    produce(kafka, topic, records(0, 100))
    # It stops itself with files written and nothing committed: the worst moment to wake up from.
    monkeypatch.setenv(VARIABLE, "files_written@2:stop")
    old = detached.launch(source)
    monkeypatch.delenv(VARIABLE)
    detached.wait_caught_up(source, NAMES, timeout=120)
    produce(kafka, topic, records(100, 100))
    wait_until(lambda: bool(detached.store(source).load().pending), 60, "the old app's last tick")

    new = detached.launch(source)
    produce(kafka, topic, records(200, 100))
    detached.wait_caught_up(source, NAMES, timeout=120)
    assert old.pid is not None
    os.kill(old.pid, signal.SIGCONT)
    wait_until(lambda: gone(detached, old), 60, "the old app to end")
    assert detached.job(old.job_id).state == "fenced"
    assert detached.launcher.status(new) == "alive"
    produce(kafka, topic, records(300, 50))
    detached.wait_caught_up(source, NAMES)
    detached.check(topic, TABLES)
    check_logs(detached, source)


def test_two_launches_at_once_leave_one_owner(detached: Stack, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    source = detached.create("events", topic, TABLES)
    produce(kafka, topic, records(0, 100))
    handles = [detached.launch(source), detached.launch(source)]
    detached.wait_caught_up(source, NAMES, timeout=120)
    wait_until(lambda: any(gone(detached, h) for h in handles), 60, "one of them to give way")
    states = Counter(detached.job(h.job_id).state for h in handles)
    assert states == Counter(running=1, fenced=1)
    detached.check(topic, TABLES)
    check_logs(detached, source)
