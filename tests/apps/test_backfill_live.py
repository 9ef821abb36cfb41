"""A table with a long history comes to a busy source: it is exact, and the live tables keep their pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.certificates import last_certificate
from airflow_provider_mzshare.control.catalog.engine import Catalog
from airflow_provider_mzshare.control.catalog.models import TickRow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.specs import SourceSettings
from tests.apps.test_shared_read import COLUMNS, record
from tests.support.arrivals import check_logs
from tests.support.kafka import create_topic, produce
from tests.support.model import difference, records, within
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

EIGHT = [Table(f"live_{n}", COLUMNS[: n % 6 + 1]) for n in range(8)]
NAMES = [table.name for table in EIGHT]
LATE = Table("late", COLUMNS, include=("partition", "offset"))


@contextmanager
def fed(kafka: EmbeddedKafka, topic: str, per_second: int, first: int) -> Iterator[None]:
    stop = threading.Event()

    def feed() -> None:
        sent, began = 0, time.monotonic()
        while not stop.wait(max(0.0, began + sent / per_second - time.monotonic())):
            produce(kafka, topic, (record(n) for n in range(first + sent, first + sent + per_second // 10)))
            sent += per_second // 10

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def detached(stack: Stack) -> Iterator[list[Handle]]:
    started: list[Handle] = []
    try:
        yield started
    finally:
        for handle in started:
            stack.launcher.kill(handle)


def longest_gap(stack: Stack, source: ItemId, first: int, last: int) -> float:
    """Seconds between two commits of the live tables."""
    of_ticks = TickRow.source_id == source, TickRow.number >= first, TickRow.number <= last
    with stack.catalog.read() as session:
        times = list(session.scalars(select(TickRow.committed_at).where(*of_ticks).order_by(TickRow.number)))
    return max(later - earlier for earlier, later in pairwise(t for t in times if t)) / 1000


def add_table(stack: Stack, *, history: int, per_second: int, steady_ticks: int) -> float:
    """Returns how much longer the longest gap was while the table came."""
    kafka = stack.kafka
    topic = create_topic(kafka, 4)
    produce(kafka, topic, (record(n) for n in range(history)))
    source = stack.create("events", topic, EIGHT, SourceSettings())
    store = stack.store(source)
    with detached(stack) as started:
        started.append(ingestion := stack.launch(source))
        stack.wait_caught_up(source, NAMES, timeout=400)
        with fed(kafka, topic, per_second, history):
            warm = store.load().last_number + 5
            wait_until(lambda: store.load().last_number >= warm + steady_ticks, 300, "a steady source")
            begin = store.load().last_number
            stack.add(source, [LATE])
            started.append(backfill := stack.launch_backfill("late"))
            stack.wait_cut_over(["late"], timeout=600)
            wait_until(lambda: stack.launcher.status(backfill) == "gone", 60, "the end of the backfill")
            end = store.load().last_number
        stack.wait_caught_up(source, ["late", *NAMES], timeout=120)
        assert stack.job(backfill.job_id).state == "finished", stack.log(backfill)
        assert stack.launcher.status(ingestion) == "alive"
        assert store.load().lease.epoch == 1, "the ingestion app was never restarted"
        stack.launcher.request_stop(ingestion)
        wait_until(lambda: stack.launcher.status(ingestion) == "gone", 60, "the end of the ingestion app")
    before, during = longest_gap(stack, source, warm, begin), longest_gap(stack, source, begin, end)
    print(
        f"{history} records of history, {per_second}/s, 8 live tables: longest gap {before:.2f} s before, "
        f"{during:.2f} s during the backfill, ratio {during / before:.2f}"
    )
    check_exact(stack, source, topic)
    return during / before


def check_exact(stack: Stack, source: ItemId, topic: str) -> None:
    """At the cutover tick and after."""
    with stack.catalog.read() as session:
        certificate = last_certificate(session, stack.table("late").id)
        assert certificate is not None
        at_cutover = select(TickRow.upper).where(TickRow.source_id == source, TickRow.number == certificate.tick)
        upper = session.scalars(at_cutover).one()
    upstream = records(stack.kafka, topic)
    wanted = LATE.model(within(upstream, upper.offsets)).rows
    assert not difference(stack.rows("late", tick=certificate.tick), wanted)
    wanted = LATE.model(within(upstream, stack.table("late").position.offsets)).rows
    assert not difference(stack.rows("late"), wanted)
    check_logs(stack, source, ["late"])


@pytest.fixture
def apart(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Stack]:
    """Apps of their own processes: what they cost each other is what is measured."""
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"), lease_seconds=15)
    yield stack
    stack.catalog.close()


def test_live_tables_go_on_while_a_table_comes(apart: Stack) -> None:
    add_table(apart, history=20_000, per_second=500, steady_ticks=5)


@pytest.mark.full
@pytest.mark.timeout(2400)
def test_live_tables_keep_their_pace_beside_a_million_records(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    ratios = []
    for run in range(3):
        folder = tmp_path / str(run)
        folder.mkdir()
        stack = Stack(folder, kafka, Catalog(f"sqlite:///{folder / 'catalog.db'}"), lease_seconds=15)
        ratios.append(add_table(stack, history=1_000_000, per_second=2_000, steady_ticks=60))
        stack.catalog.close()
        if sum(ratio <= 1.3 for ratio in ratios) == 2:
            return
    pytest.fail(f"the longest gap was more than 1.3 times as long in two of three runs: {ratios}")
