"""A source under steady load, a table added to it meanwhile, and what the others noticed of that."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import reads
from airflow_provider_mzshare.control.catalog.certificates import Certificate, last_certificate
from airflow_provider_mzshare.control.catalog.clock import wall_ms
from airflow_provider_mzshare.control.catalog.lookup import find_table
from airflow_provider_mzshare.control.catalog.models import TickRow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.reading import read_arrow
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.specs import SourceSettings
from tests.apps.test_shared_read import COLUMNS, record
from tests.support.kafka import create_topic, produce
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

LATE = Table("late", COLUMNS, include=("partition", "offset"))
SIBLING = Table("sibling", COLUMNS, include=("partition", "offset"))
_PLACE = [("_mz_partition", "ascending"), ("_mz_offset", "ascending")]


class Feed:
    """Writes records with growing ids: history at once, then so many a second until told to stop."""

    def __init__(self, kafka: EmbeddedKafka, topic: str, per_second: int) -> None:
        self._kafka, self._topic, self._per_second = kafka, topic, per_second
        self._stop = threading.Event()
        self.sent = 0

    def send(self, count: int) -> None:
        produce(self._kafka, self._topic, (record(n) for n in range(self.sent, self.sent + count)))
        self.sent += count

    def _run(self) -> None:
        began, first = time.monotonic(), self.sent
        while not self._stop.wait(max(0.0, began + (self.sent - first) / self._per_second - time.monotonic())):
            self.send(self._per_second // 10)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


@dataclass(frozen=True)
class Measured:
    """Longest gaps between commits of the old tables, in seconds, and the proof of the new one."""

    before: float
    during: float
    seconds: float
    ingestion_starts: int
    bytes_per_history: float
    certificate: Certificate
    sent: int

    @property
    def ratio(self) -> float:
        return self.during / self.before

    def __str__(self) -> str:
        return (
            f"longest gap {self.before:.2f} s before, {self.during:.2f} s during, ratio {self.ratio:.2f}; cut over at "
            f"tick {self.certificate.tick} after {self.seconds:.0f} s, {self.certificate.rows:,} rows by the backfill, "
            f"{self.bytes_per_history:.2f} bytes per byte of its range"
        )


def add_table_live(
    stack: Stack, kafka: EmbeddedKafka, *, history: int, tables: int, per_second: int, steady_seconds: float
) -> Measured:
    """Detached apps, one-second ticks; everything is stopped again."""
    topic = create_topic(kafka, 4)
    feed = Feed(kafka, topic, per_second)
    feed.send(history)
    old = [SIBLING, *(Table(f"t{n}", COLUMNS) for n in range(1, tables))]
    source = stack.create("live", topic, old, SourceSettings())
    ingestion = stack.launch(source)
    with feed.running():
        stack.wait_caught_up(source, [table.name for table in old], timeout=300)
        warm = stack.store(source).load().last_number + 15
        wait_until(lambda: stack.store(source).load().last_number >= warm, 120, "a warm app")
        began = wall_ms()
        wait_until(lambda: wall_ms() - began >= steady_seconds * 1000, steady_seconds * 2, "a while of steady load")
        added, sent_before = wall_ms(), kafka.bytes_out(topic)
        stack.add(source, [LATE])
        backfill = stack.launch_backfill("late")
        stack.wait_cut_over(["late"], timeout=300)
        wait_until(lambda: stack.launcher.status(backfill) == "gone", 60, "the backfill's end")
        done, sent_bytes = wall_ms(), kafka.bytes_out(topic) - sent_before
        after = stack.store(source).load().last_number + 3
        wait_until(lambda: stack.store(source).load().last_number >= after, 60, "ticks after the cutover")
        seen = feed.sent
    stack.wait_caught_up(source, ["late", *(table.name for table in old)], timeout=120)
    assert stack.launcher.status(ingestion) == "alive", stack.log(ingestion)
    stack.launcher.request_stop(ingestion)
    wait_until(lambda: stack.launcher.status(ingestion) == "gone", 60, "the app's end")
    with stack.catalog.read() as session:
        certificate = last_certificate(session, stack.table("late").id)
    assert certificate is not None
    # Beside the backfill the shared app has read what arrived meanwhile.
    own = sent_bytes - (kafka.bytes_in(topic) / feed.sent) * per_second * (done - added) / 1000
    share = certificate.cutover.gap(certificate.start) / max(1, seen)
    return Measured(
        before=longest_gap(stack, source, began, added),
        during=longest_gap(stack, source, added, done),
        seconds=(done - added) / 1000,
        ingestion_starts=len({job for job in _jobs(stack, source) if job is not None}),
        bytes_per_history=own / (kafka.bytes_in(topic) * share),
        certificate=certificate,
        sent=feed.sent,
    )


def longest_gap(stack: Stack, source: ItemId, begin_ms: int, end_ms: int) -> float:
    query = select(TickRow.committed_at).where(TickRow.source_id == source).order_by(TickRow.number)
    with stack.catalog.read() as session:
        times = [at for at in session.scalars(query) if at is not None and begin_ms - 1_500 <= at <= end_ms]
    return max(later - sooner for sooner, later in pairwise(times)) / 1000


def _jobs(stack: Stack, source: ItemId) -> list[str | None]:
    with stack.catalog.read() as session:
        return [str(job) for job in session.scalars(select(TickRow.job_id).where(TickRow.source_id == source))]


def rows_at(stack: Stack, name: str, tick: int | None = None) -> pa.Table:
    """All rows with their place and tick, in the order of their places."""
    with stack.catalog.read() as session:
        point = reads.table_read_point(session, find_table(session, ("public", name)).id, tick=tick)
    table = read_arrow(str(stack.warehouse), point.data_path, point.data_version, with_system_columns=True)
    return table.sort_by(_PLACE)


def check_exact(stack: Stack, measured: Measured) -> None:
    """The new table is what a table that was live all the time is, at the cutover's tick and after, and the topic."""
    for tick in (measured.certificate.tick, None):
        assert rows_at(stack, "late", tick).equals(rows_at(stack, "sibling", tick))
    ids = sorted(rows_at(stack, "late").column("id").to_pylist())
    assert ids == list(range(measured.sent))
    assert measured.ingestion_starts == 1
