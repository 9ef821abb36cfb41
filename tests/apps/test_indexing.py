"""Indexes of keyed tables in real apps: made while Spark starts, and beside the ticks before a table is cut over."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.compute.jobs import LOG_FILE
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import MembershipRow, TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections.vectors.state import Interrupted, KeyState
from airflow_provider_mzshare.storage.crashpoints import UNINDEXED_LABELS, VARIABLE
from airflow_provider_mzshare.storage.writing import key_states
from airflow_provider_mzshare.storage.writing.writers import TickCommits
from tests.support.arrivals import check_logs
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_stack import KeyedTable, check_keyed, sent
from tests.support.rewriting_apart import rewrite_apart
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

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


def ticks_without(stack: Stack, source: ItemId, table: str) -> list[int]:
    """The ticks with records that it got by itself."""
    of_table = MembershipRow.table_id == stack.table(table).id
    with stack.catalog.read() as session:
        spans = session.execute(select(MembershipRow.joined_at, MembershipRow.left_at).where(of_table)).all()
        ticks = session.scalars(select(TickRow).where(TickRow.source_id == source, TickRow.committed)).all()
    own = [tick.number for tick in ticks if tick.lower != tick.upper]
    return [n for n in own if not any(first <= n and (left is None or n < left) for first, left in spans)]


class Held:
    """Holds the making of indexes where their files are read, until it is let go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._free: int | None = None
        real = KeyState._unless_interrupted

        def held(state: KeyState, batches: Iterator[Any]) -> Iterator[Any]:
            for batch in real(state, batches):
                if threading.get_ident() != self._free:
                    self._hold(state)
                yield batch

        patch.setattr(KeyState, "_unless_interrupted", held)

    def _hold(self, state: KeyState) -> None:
        self.reached.set()
        while not self.go_on.wait(0.02):
            if state._interrupted:
                raise Interrupted

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """What this thread makes meanwhile."""
        self._free = threading.get_ident()
        yield
        self._free = None


@pytest.mark.parametrize("loses", [False, True], ids=["at the start", "while it runs"])
def test_no_other_table_waits_for_an_index(
    stack: Stack, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, loses: bool
) -> None:
    """It leaves the ticks, is followed beside them, and comes back; no statement and no app of its own is needed."""
    monkeypatch.setattr(key_states, "FEW_ROWS", 0)
    monkeypatch.setattr(TickCommits, "MOST", 0)
    topic, late = create_topic(kafka, 3), KeyedTable("late")
    source, seeds = stack.create("events", topic, [PLAIN, late]), count()
    lasting = [Record(b'{"n": %d, "name": "stays"}' % n, key=b"k%d" % n, partition=n % 3) for n in range(30)]

    def send() -> None:
        produce(kafka, topic, [*sent(drawn(seed := next(seeds), ticks=4)), *lasting[seed::5]])

    with ExitStack() as running:
        app = running.enter_context(stack.running(source))
        for _ in range(2):
            send()
            stack.wait_caught_up(source, ["plain", "late"], timeout=120)
        since = stack.table("late").since
        if not loses:
            app.stop()
        held = Held(monkeypatch)
        if not loses:
            app = running.enter_context(stack.running(source))
        else:
            with stack.catalog.read() as session:
                data = CollectionId(stack.collections(session, "late")["data"])
            with held.let_go():
                rewrite_apart(str(stack.warehouse), data, stack.folder / "apart")
        for _ in range(3):
            send()
            stack.wait_caught_up(source, ["plain"], timeout=120)
        wait_until(lambda: stack.table("late").status == "indexing", 20, "it to leave")
        told = StatusReader(stack.catalog, stack.launchers).named("public.late")[1][0]
        assert (told.status, told.backfill_job) == ("indexing", None)
        assert held.reached.wait(30), "its index is made meanwhile"
        held.go_on.set()
        wait_until(lambda: stack.table("late").status == "live", 90, "it to come back")
        send()
        stack.wait_caught_up(source, ["plain", "late"], timeout=120)
        assert not stack.store(source).load().backfills
    assert app.end is not None
    assert app.end.state == "stopped"
    assert len(ticks_without(stack, source, "late")) >= 3
    assert stack.table("late").since == since, "what could be read before can be read"
    check_keyed(stack, source, late)


ROWS = 120_000
"""More than an index is made of within a tick."""
DEATHS = (*UNINDEXED_LABELS, "backfill_launched", "backfill_reading", "converging", "fenced")
"""The table leaves; it has left; and, in the thread that follows the ticks for it: the lease taken, a group planned, a
group of a table that is to come back, and its end."""


class Large:
    """A source with a large table, whose index is lost by somebody who moves its rows."""

    def __init__(self, stack: Stack, source: ItemId) -> None:
        self.stack, self.source = stack, source
        self.wanted: dict[str, int] = {}
        self._numbers = count()

    def send(self, keys: Iterable[int]) -> None:
        new = {f"k{key}": next(self._numbers) for key in keys}
        self.wanted |= new
        values = ((key, b'{"n": %d, "name": "x"}' % n) for key, n in new.items())
        records = [Record(value, key=key.encode(), partition=int(key[1:]) % 2) for key, value in values]
        produce(self.stack.kafka, self.stack.topic(self.source), records)

    def is_whole(self) -> bool:
        """Both tables have everything, and both are live."""
        with self.stack.upstream(self.stack.topic(self.source)) as upstream:
            end = upstream.end_offsets()
        both = [self.stack.table(name) for name in ("plain", "large")]
        return all((table.status, table.position) == ("live", end) for table in both)

    def lose_index(self) -> None:
        with self.stack.catalog.read() as session:
            data = CollectionId(self.stack.collections(session, "large")["data"])
        rewrite_apart(str(self.stack.warehouse), data, self.stack.folder / "apart")
        self.send(range(1, ROWS, 1_000))

    def check(self) -> None:
        with self.stack.catalog.read() as session:
            point = reads.table_read_point(session, self.stack.table("large").id)
        rows = self.stack._read(point, "data").to_pylist()
        assert len(rows) == len(self.wanted)
        assert {row["key"]: row["n"] for row in rows} == self.wanted
        check_logs(self.stack, self.source, ["plain"])


@pytest.mark.full(seconds=200)
@pytest.mark.timeout(1800)
def test_killed_while_a_table_is_without_its_index(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next app goes on where that one was, and the table comes back with every record once."""
    stack = Stack(tmp_path, kafka, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    source = stack.create("events", create_topic(kafka, 2), [PLAIN, KeyedTable("large")])
    large, started = Large(stack, source), list[Handle]()

    def is_gone() -> bool:
        return stack.launcher.status(started[-1]) == "gone"

    try:
        large.send(range(ROWS))
        for label in DEATHS:
            monkeypatch.setenv(VARIABLE, label)
            started.append(stack.launch(source))
            # What the app before has left may bring this one there, too.
            wait_until(lambda: is_gone() or large.is_whole(), 240, "the tables or a death")
            if not is_gone():
                large.lose_index()
                wait_until(is_gone, 120, f"death at {label}")
            large.send(range(0, ROWS, 1_000))
        monkeypatch.delenv(VARIABLE)
        started.append(stack.launch(source))
        wait_until(large.is_whole, 240, "the tables")
        large.lose_index()
        wait_until(large.is_whole, 120, "the tables again")
    finally:
        for handle in started:
            stack.launcher.kill(handle)
    large.check()
    assert not stack.store(source).load().backfills
    stack.catalog.close()
