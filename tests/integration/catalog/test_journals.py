"""Journals on both databases: what is announced, by whom, once, and what that costs."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import event, text, update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import database_ms
from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.rules import (
    AnnouncedOtherwise,
    BatchDiffers,
    DuplicateBatch,
    JournalBehind,
)
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import Fenced, LeaseTaken
from tests.integration.catalog.test_cost import counted
from tests.support.catalog import add_source
from tests.support.journal_rows import JOURNAL, Writer, lengthen

PROCESSES, BATCHES = 2, 40


@pytest.fixture
def journal(catalog: Catalog) -> CatalogJournal:
    return CatalogJournal(catalog, JOURNAL)


# ── what is stored ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_announced_is_what_is_found(catalog: Catalog, journal: CatalogJournal) -> None:
    assert journal.partitions() == []
    assert journal.partition(0).load() == PartitionState(0)
    writer = Writer(catalog)
    with catalog.read() as session:
        before = database_ms(session)
    writer.announce(3, [writer.batch("b", 3)])
    writer.announce(2)
    state = writer.begin(5)
    assert (state.begin, state.end, state.size) == (0, 10, 100)
    assert state == journal.partition(0).load() == journal.partitions()[0]
    first, second = journal.segments(0, 0, 99)
    assert replace(second, announced_at=0) == Segment(0, 1, 2, 5, 10, 50, 1, 150, low=50, boundary=100)
    assert (first.end, first.length, first.payload, first.boundary) == (5, 50, 150, 50)
    assert before <= first.announced_at <= second.announced_at < before + 60_000
    assert journal.batches(["b", "other"]) == {"b": Batch("b", 0, 0, 3, "d")}
    assert journal.batches([]) == {}


def test_journals_and_partitions_have_nothing_in_common(catalog: Catalog, journal: CatalogJournal) -> None:
    other = Writer(catalog, journal=type(JOURNAL)("journal:other"))
    other.announce(7, [other.batch("b", 7)])
    zero, two = Writer(catalog), Writer(catalog, 2, job="push-2")
    two.announce(4, [two.batch("b", 4)])
    assert [(state.partition, state.end) for state in journal.partitions()] == [(0, 0), (2, 4)]
    assert journal.segments(0, 0, 99) == []
    assert zero.announce(1).end == 1


def test_a_range_has_the_segments_that_have_its_messages(catalog: Catalog, journal: CatalogJournal) -> None:
    writer = Writer(catalog)
    for _ in range(4):
        writer.begin(10)
    empty = replace(writer.wanted(0), number=5, first=40, end=40)
    writer.store.announce(writer.holder, None, replace(empty, low=400), [])
    writer.segment, writer.number = None, 5
    writer.begin(10)

    def firsts(lower: int, upper: int, limit: int | None = None) -> list[int]:
        return [segment.first for segment in journal.segments(0, lower, upper, limit=limit)]

    assert firsts(0, 50) == [0, 10, 20, 30, 40]
    assert firsts(10, 20) == [10]
    assert firsts(9, 21) == [0, 10, 20]
    assert firsts(15, 16) == [10]
    assert firsts(15, 15) == [10], "nothing is asked for, and it costs nothing to say where it is"
    assert firsts(39, 99) == [30, 40]
    assert firsts(50, 99) == []
    assert firsts(5, 50, limit=2) == [0, 10]
    writer.announce(1)
    assert firsts(50, 51) == [40], "as it is announced now"


def test_many_batches_are_announced_at_once(catalog: Catalog, journal: CatalogJournal) -> None:
    writer = Writer(catalog)
    batches = [Batch(f"b{i}", 0, i, i + 1, "d") for i in range(6_000)]
    writer.announce(6_000, batches)
    assert journal.batches([batch.id for batch in batches]) == {batch.id: batch for batch in batches}


# ── by whom ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_zombie_announces_nothing(catalog: Catalog, journal: CatalogJournal) -> None:
    zombie = Writer(catalog)
    zombie.announce(3)
    zombie.store.beat(zombie.holder)
    with pytest.raises(LeaseTaken):
        zombie.store.claim(JobId("push-2"))
    successor = Writer(catalog, job="push-2")
    assert (successor.holder, successor.end) == (Holder(JobId("push-2"), 2), 3)
    for step in (zombie.announce, zombie.begin):
        with pytest.raises(Fenced):
            step()
    with pytest.raises(Fenced):
        zombie.store.beat(zombie.holder)
    successor.announce(2)
    successor.store.release(successor.holder)
    assert journal.partition(0).lease() == Lease(2, None, 3)
    assert [(one.epoch, one.first, one.end) for one in journal.segments(0, 0, 9)] == [(1, 0, 3), (2, 3, 5)]


def test_an_answer_that_was_lost_is_asked_for_again(catalog: Catalog) -> None:
    writer = Writer(catalog)
    before, after, batch = writer.segment, writer.wanted(3), writer.batch("b", 3)
    told = writer.announce(3, [batch])
    with counted(catalog) as statements:
        assert writer.store.announce(writer.holder, before, after, [batch]) == told
    assert not [one for one in statements if not one.startswith(("SELECT", "BEGIN"))]
    with pytest.raises(AnnouncedOtherwise):
        writer.store.announce(writer.holder, before, replace(after, checksum=9), [])


def test_a_catalog_that_forgot_takes_nothing(catalog: Catalog, journal: CatalogJournal) -> None:
    writer = Writer(catalog)
    writer.announce(3)
    known = writer.store.load()
    writer.segment = replace(writer.wanted(4), number=1)
    with pytest.raises(JournalBehind):
        writer.announce(1)
    assert writer.store.load() == known


def test_of_many_first_claims_one_makes_the_partition(catalog: Catalog, opened: Callable[[], Catalog]) -> None:
    start = threading.Barrier(5)

    def claim(catalog: Catalog, job: str) -> bool:
        store = CatalogJournal(catalog, JOURNAL).partition(0)
        start.wait(20)
        try:
            store.claim(JobId(job), stood_still=Lease())
        except LeaseTaken:
            return False
        return True

    with ThreadPoolExecutor(5) as pool:
        claims = [pool.submit(claim, opened(), f"push-{number}") for number in range(5)]
        winners = [number for number, one in enumerate(claims) if one.result(timeout=30)]
    assert len(winners) == 1
    assert CatalogJournal(catalog, JOURNAL).partition(0).lease() == Lease(1, JobId(f"push-{winners[0]}"), 1)


def test_two_that_are_forced_on_one_partition_leave_one_log(catalog: Catalog, opened: Callable[[], Catalog]) -> None:
    """They take it from each other again and again; what each was told is there, once and in order."""
    start, told = threading.Barrier(2), Counter[str]()

    def force(catalog: Catalog, name: str) -> list[tuple[int, int]]:
        announced: list[tuple[int, int]] = []
        start.wait(20)
        for turn in range(6):
            try:
                writer = Writer(catalog, job=f"{name}-{turn}")
                for _ in range(5):
                    first = writer.end
                    writer.announce(2)
                    announced.append((first, writer.end))
            except (Fenced, LeaseTaken) as error:
                told[type(error).__name__] += 1
        return announced

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(force, opened(), name) for name in ("a", "b")]
        ranges = sorted(one for future in both for one in future.result(timeout=60))
    state = CatalogJournal(catalog, JOURNAL).partition(0).load()
    rows = CatalogJournal(catalog, JOURNAL).segments(0, 0, state.end)
    assert [first for first, _end in ranges] == list(range(0, state.end, 2)), told
    assert [one.first for one in rows[1:]] == [one.end for one in rows[:-1]]
    assert (rows[0].first, rows[-1].end) == (0, state.end)
    assert [one.epoch for one in rows] == sorted(one.epoch for one in rows)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_that_is_there_refuses_all_of_the_announcement(catalog: Catalog, journal: CatalogJournal) -> None:
    zero, one = Writer(catalog), Writer(catalog, 1, job="push-2")
    zero.announce(2, [zero.batch("b", 2)])
    with pytest.raises(DuplicateBatch) as told:
        one.announce(3, [one.batch("b", 2), replace(one.batch("c"), first=2, end=3)])
    assert told.value.batches == (Batch("b", 0, 0, 2, "d"),)
    with pytest.raises(BatchDiffers):
        one.announce(2, [one.batch("b", 2, "other")])
    assert (one.store.load().end, journal.batches(["c"])) == (0, {})


def test_a_batch_that_is_announced_meanwhile_is_a_duplicate(catalog: Catalog, opened: Callable[[], Catalog]) -> None:
    """Of writers that announce the same batch at the same moment, in partitions of their own, one wins."""
    writers = [Writer(opened(), number, job=f"push-{number}") for number in range(3)]
    start = threading.Barrier(3)

    def race(writer: Writer, turn: int) -> Collection[str]:
        """Of its two batches, those that are duplicates."""
        names = (f"x{turn}", f"y{turn}") if writer.partition % 2 else (f"y{turn}", f"x{turn}")
        one, other = writer.batch(names[0]), replace(writer.batch(names[1]), first=writer.end + 1, end=writer.end + 2)
        start.wait(20)
        try:
            writer.announce(2, [one, other])
        except DuplicateBatch as told:
            return told.ids
        return ()

    with ThreadPoolExecutor(3) as pool:
        for turn in range(15):
            told = [one.result(timeout=30) for one in [pool.submit(race, writer, turn) for writer in writers]]
            assert sorted(map(len, told)) == [0, 2, 2], turn
    assert sum(state.end for state in CatalogJournal(catalog, JOURNAL).partitions()) == 30


def test_batches_that_processes_send_at_once_are_there_once(catalog_url: str, catalog: Catalog) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        told = [pool.submit(_push_all, catalog_url, number) for number in range(PROCESSES)]
        announced = [one.result(timeout=60) for one in told]
    journal = CatalogJournal(catalog, JOURNAL)
    assert sum(announced) == BATCHES == sum(state.end for state in journal.partitions())
    assert len(journal.batches([f"b{i}" for i in range(BATCHES)])) == BATCHES


def _push_all(url: str, partition: int) -> int:
    """Every process pushes every batch; those that another one has pushed are refused."""
    announced = 0
    with open_catalog(url) as catalog:
        writer = Writer(catalog, partition, job=f"push-{partition}")
        for i in range(BATCHES):
            try:
                writer.announce(1, [writer.batch(f"b{i}")])
                announced += 1
            except DuplicateBatch:
                writer.segment, writer.number = None, writer.number + 1
    return announced


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────────────────────────

COSTS = {"claim": 2, "beat": 2, "first": 4, "more": 4, "batches": 6, "load": 2, "partitions": 1, "segments": 1}
"""Statements of each call; SQLite's BEGIN, which we issue ourselves, comes on top."""


def test_each_call_costs_few_statements_however_many_segments_there_are(catalog: Catalog) -> None:
    first = _costs(catalog, 0, 2)
    assert first == _costs(catalog, 1, 300)
    begin = 1 if catalog.is_embedded else 0
    assert first == {what: cost + begin for what, cost in COSTS.items()}


def _costs(catalog: Catalog, partition: int, many: int) -> dict[str, int]:
    writer, journal = Writer(catalog, partition, job=f"push-{partition}"), CatalogJournal(catalog, JOURNAL)
    costs: dict[str, int] = {}

    def count(what: str, step: Callable[[], object]) -> None:
        with counted(catalog) as statements:
            step()
        costs[what] = len(statements)

    count("first", writer.begin)
    lengthen(catalog, writer, many)
    batches = [Batch(f"{partition}-{i}", partition, writer.end + 1 + i, writer.end + 2 + i, "d") for i in range(many)]
    count("more", writer.announce)
    count("batches", lambda: writer.announce(many, batches))
    count("beat", lambda: writer.store.beat(writer.holder))
    count("load", writer.store.load)
    count("partitions", journal.partitions)
    count("segments", lambda: journal.segments(partition, 5, 7))
    count("claim", lambda: writer.store.claim(JobId("next"), stood_still=Lease(1, writer.holder.job_id, 2)))
    return costs


def test_ten_thousand_segments_cost_what_ten_cost(catalog: Catalog) -> None:
    source = add_source(catalog)
    with catalog.write() as session:
        session.execute(update(SourceRow).where(SourceRow.id == source).values(incarnation=JOURNAL))
    writer = Writer(catalog)
    writer.begin()
    lengthen(catalog, writer, 10)
    look = _steps if catalog.is_embedded else _blocks
    few = look(catalog, writer)
    lengthen(catalog, writer, 9_990)
    many = look(catalog, writer)
    deeper = 0 if catalog.is_embedded else 4
    more = {what: (few[what], many[what]) for what in few if many[what] > 1.5 * few[what] + deeper}
    assert not more, "an index that is a level deeper costs a block for each look-up"


def test_twenty_thousand_ids_of_batches_cost_what_ten_cost(catalog: Catalog) -> None:
    writer = Writer(catalog)
    writer.begin()
    look = _steps if catalog.is_embedded else _blocks

    def costs() -> dict[str, int]:
        """Of a push, of one that is repeated, and of maintenance that finds some ids to forget and then none."""
        journal, old = CatalogJournal(catalog, JOURNAL), writer.end
        writer.announce(1, [writer.batch("old")] if old < 3 else [])
        calls: dict[str, Callable[[], object]] = {
            "announce": lambda: writer.announce(1, [writer.batch(f"b{writer.end}")]),
            "look up": lambda: journal.batches(["old", "nobody's"]),
            "forget": writer.store.forget_batches,
        }
        return look(catalog, writer, calls)

    few = costs()
    writer.announce(20_000, [Batch(f"x{i}", 0, writer.end + i, writer.end + i + 1, "d" * 64) for i in range(20_000)])
    many = costs()
    deeper = 0 if catalog.is_embedded else 6
    more = {what: (few[what], many[what]) for what in few if many[what] > 1.5 * few[what] + deeper}
    assert not more
    trimmed = writer.end
    writer.begin()
    writer.store.trim(trimmed)
    forgotten = 0
    while gone := writer.store.forget_batches():
        assert gone <= 1_000
        forgotten += gone
    assert forgotten == 20_003


def _relation(catalog: Catalog) -> None:
    with catalog.read() as session:
        schema = "" if catalog.is_embedded else "mz_internal."
        assert len(session.execute(text(f"SELECT * FROM {schema}mz_journals")).all()) == 1


def _steps(catalog: Catalog, writer: Writer, calls: dict[str, Callable[[], object]] | None = None) -> dict[str, int]:
    """In SQLite's own instructions."""
    counts = Counter[str]()
    with catalog.read() as session:
        connection = session.connection().connection.dbapi_connection
    assert connection is not None
    calls = calls or _calls(catalog, writer)
    for what, call in calls.items():
        connection.set_progress_handler(lambda what=what: counts.update([what]), 1)
        try:
            call()
        finally:
            connection.set_progress_handler(None, 0)
    assert min(counts[what] for what in calls) > 20, "the handler counts"
    return dict(counts)


def _blocks(catalog: Catalog, writer: Writer, calls: dict[str, Callable[[], object]] | None = None) -> dict[str, int]:
    """That Postgres looks at for the statements of each call, which are asked once more. It has no statistics yet."""
    counts = Counter[str]()
    for what, call in (calls or _calls(catalog, writer)).items():
        made: list[tuple[str, Any]] = []
        listen = partial(_note, made)
        event.listen(catalog._engine, "before_cursor_execute", listen)
        try:
            call()
        finally:
            event.remove(catalog._engine, "before_cursor_execute", listen)
        with catalog._engine.connect() as connection, connection.connection.cursor() as cursor:
            for statement, values in made:
                if ("journal_" in statement and "INSERT" not in statement) or "mz_journals" in statement:
                    cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values)
                    plan = cursor.fetchone()[0][0]["Plan"]
                    counts[what] += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return dict(counts)


def _note(
    made: list[tuple[str, Any]], _connection: object, _cursor: object, statement: str, values: Any, *_: Any
) -> None:
    made.append((statement, values))


def _calls(catalog: Catalog, writer: Writer) -> dict[str, Callable[[], object]]:
    journal, middle = CatalogJournal(catalog, JOURNAL), writer.end // 20 * 10
    return {
        "announce": lambda: writer.announce(1, [writer.batch(f"b{writer.end}")]),
        "begin": writer.begin,
        "partitions": journal.partitions,
        "segments": lambda: journal.segments(0, middle + 3, middle + 25),
        "limited": lambda: journal.segments(0, 3, writer.end, limit=3),
        "beat": lambda: writer.store.beat(writer.holder),
        "trim": lambda: writer.store.trim(writer.store.load().begin + 15),
        "unread": lambda: writer.store.unread(grace_ms=99_999),
        "mz_journals": lambda: _relation(catalog),
    }
