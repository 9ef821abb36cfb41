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
from sqlalchemy import text

from airflow_provider_mzshare.compute.jobs import Exit
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.crashpoints import LABELS, VARIABLE
from tests.support.arrivals import check_logs
from tests.support.kafka import Record, create_topic, produce
from tests.support.processes import stop_holding_no_lock
from tests.support.stack import BOTH_WAYS, Stack, Table
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
def detached(kafka: EmbeddedKafka, tmp_path: Path, driver_reads: bool) -> Iterator[Stack]:
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"), driver_reads=driver_reads)
    started: list[Handle] = []
    launch = stack.launch
    stack.launch = lambda *args, **kwargs: started.append(launch(*args, **kwargs)) or started[-1]  # type: ignore[method-assign, func-returns-value]
    yield stack
    for handle in started:
        stack.launcher.kill(handle)
    stack.catalog.close()


def gone(stack: Stack, handle: Handle) -> bool:
    return stack.launcher.status(handle) == "gone"


def check_counters(stack: Stack, source: ItemId, sent: list[Record]) -> None:
    """Whoever executed a tick, and however often: what it read and wrote is counted once."""
    query = text("SELECT * FROM mz_source_statistics WHERE id = :id")
    with stack.catalog.read() as session:
        read = session.execute(query, {"id": source}).one()
        tables = {name: session.execute(query, {"id": stack.table(name).id}).one() for name in NAMES}
    assert (read.messages_received, read.bytes_received) == (len(sent), sum(len(one.value or b"") for one in sent))
    assert read.offset_committed == len(sent)
    for name, found in tables.items():
        rows = stack.rows(name).total() + stack.error_places(name).total()
        assert (found.messages_received, found.updates_staged, found.updates_committed) == (rows, rows, rows), name


@BOTH_WAYS
@pytest.mark.parametrize(
    "labels",
    [("files_written", "between_commits"), pytest.param(LABELS, marks=(pytest.mark.full, pytest.mark.timeout(900)))],
    ids=["two", "all"],
)
def test_killed_at_every_labelled_point(
    labels: tuple[str, ...], detached: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(kafka, 2)
    source = detached.create("events", topic, TABLES)
    produced, pending = 0, False
    for label in labels:
        produce(kafka, topic, records(produced, 200))
        produced += 200
        # Where the app before left a tick, this one passes its labels once to finish it: it dies in the tick after.
        per_tick, nth = (2 * len(TABLES), 2) if label == "between_commits" else (1, 1)
        monkeypatch.setenv(VARIABLE, f"{label}@{nth + pending * per_tick}")
        handle = detached.launch(source)
        wait_until(lambda handle=handle: gone(detached, handle), 120, f"death at {label}")  # type: ignore[misc]
        assert "holds" in detached.log(handle), detached.log(handle)
        pending = bool(detached.store(source).load().pending)
        assert pending == (label not in {"offsets_known", "tick_committed"}), label
    monkeypatch.delenv(VARIABLE)
    for checkpoint in (detached.folder / "jobs").glob("*/checkpoint-*"):
        shutil.rmtree(checkpoint)
    produce(kafka, topic, records(produced, 200))
    handle = detached.launch(source)
    detached.wait_caught_up(source, NAMES, timeout=120)
    wait_until(lambda: detached.job(handle.job_id).state == "running", 30, "the job to say that it runs")
    detached.check(topic, TABLES)
    check_logs(detached, source, NAMES)
    check_counters(detached, source, records(0, produced + 200))

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
    # It is stopped with files written and nothing committed: the worst moment to wake up from.
    held = detached.folder / "held"
    monkeypatch.setenv(VARIABLE, f"files_written@2:hold={held}")
    old = detached.launch(source)
    monkeypatch.delenv(VARIABLE)
    detached.wait_caught_up(source, NAMES, timeout=120)
    produce(kafka, topic, records(100, 100))
    wait_until(held.exists, 60, "the old app's last tick")
    assert old.pid is not None
    stop_holding_no_lock(old.pid, detached.folder / "catalog.db")
    held.unlink()
    assert detached.store(source).load().pending

    new = detached.launch(source)
    produce(kafka, topic, records(200, 100))
    detached.wait_caught_up(source, NAMES, timeout=120)
    os.kill(old.pid, signal.SIGCONT)
    wait_until(lambda: gone(detached, old), 60, "the old app to end")
    assert detached.job(old.job_id).state == "fenced"
    assert detached.launcher.status(new) == "alive"
    produce(kafka, topic, records(300, 50))
    detached.wait_caught_up(source, NAMES)
    detached.check(topic, TABLES)
    check_logs(detached, source, NAMES)
    check_counters(detached, source, records(0, 350))


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
    check_logs(detached, source, NAMES)


def test_an_app_that_gets_no_spark_says_that_it_had_not_begun(detached: Stack, kafka: EmbeddedKafka) -> None:
    """Such an end is no table's doing, and is not counted as a death of its backfill."""
    source = detached.create("events", create_topic(kafka, 1), TABLES)
    handle = detached.launch(source, master="nowhere")
    wait_until(lambda: gone(detached, handle), 120, "the app ends")
    job = detached.job(handle.job_id)
    assert (job.state, job.exit_code) == ("failed", Exit.UNAVAILABLE)
    assert job.error
