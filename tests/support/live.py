"""A source under steady load, a table added to it meanwhile, and what the others noticed of that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from sqlalchemy import select

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import find_table
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate, last_certificate
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.apps.test_shared_read import COLUMNS, record
from tests.support.delta import read_arrow
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_oracle import Shape
from tests.support.keyed_stack import KeyedTable
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

LATE = Table("late", COLUMNS, include=("partition", "offset"))
SIBLING = Table("sibling", COLUMNS, include=("partition", "offset"))
KEYED_LATE = KeyedTable("late", shape=Shape(columns=COLUMNS))
KEYS = 100_000
_PLACE = [("_mz_partition", "ascending"), ("_mz_offset", "ascending")]


def keyed_record(number: int) -> Record:
    """Its key is one of ``KEYS``, and always in the same partition."""
    return record(number)._replace(key=f"k{number % KEYS}".encode())


class Feed:
    """Writes records with growing ids: history at once, then so many a second until told to stop."""

    def __init__(
        self, kafka: EmbeddedKafka, topic: str, per_second: int, make: Callable[[int], Record] = record
    ) -> None:
        self._kafka, self._topic, self._per_second, self._make = kafka, topic, per_second, make
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent = 0

    def send(self, count: int) -> None:
        produce(self._kafka, self._topic, (self._make(n) for n in range(self.sent, self.sent + count)))
        self.sent += count

    def _run(self) -> None:
        began, first = time.monotonic(), self.sent
        while not self._stop.wait(max(0.0, began + (self.sent - first) / self._per_second - time.monotonic())):
            self.send(self._per_second // 10)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self.stop()


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
    stack: Stack,
    kafka: EmbeddedKafka,
    *,
    history: int,
    tables: int,
    per_second: int,
    steady_seconds: float,
    late: Table = LATE,
) -> Measured:
    """Detached apps, one-second ticks; everything is stopped again."""
    topic = create_topic(kafka, 4)
    feed = Feed(kafka, topic, per_second, keyed_record if late is KEYED_LATE else record)
    feed.send(history)
    old = [SIBLING, *(Table(f"t{n}", COLUMNS) for n in range(1, tables))]
    names = [table.name for table in old]
    source = stack.create("live", topic, old, SourceSettings())
    with _stopped_at_the_end(stack) as launched, feed.running():
        launched.append(stack.launch(source))
        stack.wait_caught_up(source, names, timeout=300)
        _wait_for_ticks(stack, source, 15, "a warm app")
        began = wall_ms()
        wait_until(lambda: wall_ms() - began >= steady_seconds * 1000, steady_seconds * 2, "a while of steady load")
        added, sent_before = wall_ms(), kafka.bytes_out(topic)
        stack.add(source, [late])
        launched.append(stack.launch_backfill("late"))
        stack.wait_cut_over(["late"], timeout=400)
        wait_until(lambda: stack.launcher.status(launched[1]) == "gone", 60, "the backfill's end")
        # The cutover's own tick, the first with one table more, belongs to what the others may notice.
        _wait_for_ticks(stack, source, 3, "ticks after the cutover")
        done, sent_bytes = wall_ms(), kafka.bytes_out(topic) - sent_before
        feed.stop()
        stack.wait_caught_up(source, ["late", *names], timeout=120)
        assert stack.launcher.status(launched[0]) == "alive", stack.log(launched[0])
    with stack.catalog.read() as session:
        certificate = last_certificate(session, stack.table("late").id)
    assert certificate is not None
    # Beside the backfill the shared app has read what arrived meanwhile.
    per_record = kafka.bytes_in(topic) / feed.sent
    own = sent_bytes - per_record * per_second * (done - added) / 1000
    return Measured(
        before=longest_gap(stack, source, began, added),
        during=longest_gap(stack, source, added, done),
        seconds=(done - added) / 1000,
        ingestion_starts=len(_jobs(stack, source)),
        bytes_per_history=own / (per_record * certificate.cutover.gap(certificate.start)),
        certificate=certificate,
        sent=feed.sent,
    )


@contextmanager
def _stopped_at_the_end(stack: Stack) -> Iterator[list[Handle]]:
    """Apps that are put into the list end with the block, whatever happens in it."""
    launched: list[Handle] = []
    try:
        yield launched
        for handle in launched:
            stack.launcher.request_stop(handle)
            wait_until(lambda h=handle: stack.launcher.status(h) == "gone", 60, "the end of an app")  # type: ignore[misc]
    finally:
        for handle in launched:
            stack.launcher.kill(handle)


def _wait_for_ticks(stack: Stack, source: ItemId, count: int, what: str) -> None:
    wanted = stack.store(source).load().last_number + count
    wait_until(lambda: stack.store(source).load().last_number >= wanted, 120, what)


def longest_gap(stack: Stack, source: ItemId, begin_ms: int, end_ms: int) -> float:
    query = select(TickRow.committed_at).where(TickRow.source_id == source).order_by(TickRow.number)
    with stack.catalog.read() as session:
        times = [at for at in session.scalars(query) if at is not None and begin_ms - 1_500 <= at <= end_ms]
    return max(later - sooner for sooner, later in pairwise(times)) / 1000


def _jobs(stack: Stack, source: ItemId) -> set[JobId]:
    """All that have minted ticks."""
    with stack.catalog.read() as session:
        return {job for job in session.scalars(select(TickRow.job_id).where(TickRow.source_id == source)) if job}


def rows_at(stack: Stack, name: str, tick: int | None = None) -> pa.Table:
    """All rows with their place and tick, in the order of their places."""
    with stack.catalog.read() as session:
        point = reads.table_read_point(session, find_table(session, ("public", name)).id, tick=tick)
    table = read_arrow(str(stack.warehouse), point.data_path, point.data_version, with_system_columns=True)
    return table.sort_by(_PLACE)


def check_exact_by_key(stack: Stack, measured: Measured) -> None:
    """The new table has of each key the last row that a table without keys has, at the cutover's tick and after."""
    for tick in (measured.certificate.tick, None):
        rows = rows_at(stack, "sibling", tick).sort_by([("_mz_tick", "ascending"), *_PLACE])
        rows = rows.append_column("group", pa.array(np.asarray(rows.column("id")) % KEYS))
        last = rows.append_column("nth", pa.array(range(rows.num_rows))).group_by("group").aggregate([("nth", "max")])
        wanted = rows.take(last.column("nth_max")).sort_by(_PLACE)
        found = rows_at(stack, "late", tick)
        assert found.num_rows == KEYS
        for name in (*(name for name, _ in COLUMNS), "_mz_tick", "_mz_partition", "_mz_offset"):
            assert found.column(name).equals(wanted.column(name)), f"{name} as of {tick}"
        assert found.column("key").to_pylist() == [f"k{each}" for each in wanted.column("group").to_pylist()]
    assert measured.ingestion_starts == 1


def check_exact(stack: Stack, measured: Measured) -> None:
    """The new table is what a table that was live all the time is, at the cutover's tick and after, and the topic."""
    for tick in (measured.certificate.tick, None):
        assert rows_at(stack, "late", tick).equals(rows_at(stack, "sibling", tick))
    ids = sorted(rows_at(stack, "late").column("id").to_pylist())
    assert ids == list(range(measured.sent))
    assert measured.ingestion_starts == 1
