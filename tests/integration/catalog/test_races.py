"""Several at once: the source's lock, the namespace's lock, and many writers in threads and processes."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.errors import LeaseTaken, NameTaken
from tests.support.catalog import TABLE, TOPIC_ID, Log, add_source, add_tables
from tests.support.waiting import wait_until

PROCESSES = 3


def _waits(future: Future[object]) -> bool:
    """It would be done within a few milliseconds if nothing held it."""
    try:
        future.result(timeout=0.3)
    except TimeoutError:
        return True
    return False


def test_a_mint_waits_for_a_table_being_created_and_takes_it(catalog: Catalog) -> None:
    source = add_source(catalog)
    log = Log(catalog, source)
    with ThreadPoolExecutor(1) as pool:
        with catalog.write() as session:
            table = items.create_table(session, name=("public", "t"), source_id=source, spec=TABLE)
            minting = pool.submit(
                log.store.mint, log.holder, lower=Position(), upper=Position({"0": 5}), incarnation=TOPIC_ID
            )
            assert _waits(minting)
        tick = minting.result(timeout=20)
    assert log.store.load().members == {table}
    assert log.store.load().pending == (tick,)


def test_a_create_waits_for_a_tick_being_minted_and_then_needs_a_backfill(catalog: Catalog) -> None:
    source = add_source(catalog)
    minting, go_on = threading.Event(), threading.Event()

    def slow_clock() -> int:
        minting.set()
        assert go_on.wait(20)
        return 1_000

    holder = CatalogTickStore(catalog, source).claim(JobId("job-1"))
    store = CatalogTickStore(catalog, source, clock=slow_clock)
    with ThreadPoolExecutor(2) as pool:
        minted: Future[Tick] = pool.submit(
            store.mint, holder, lower=Position(), upper=Position({"0": 5}), incarnation=TOPIC_ID
        )
        assert minting.wait(20)
        creating = pool.submit(add_tables, catalog, source, "t")
        assert _waits(creating)
        go_on.set()
        assert minted.result(timeout=20).number == 1
        (late,) = creating.result(timeout=20)
    assert store.load().members == frozenset()
    assert store.load().tables[late].status == "backfilling"


def test_a_heartbeat_waits_for_a_takeover(catalog: Catalog) -> None:
    log = Log(catalog, add_source(catalog))
    with ThreadPoolExecutor(1) as pool:
        with catalog.locked(log.source_id):
            beating = pool.submit(log.store.beat, log.holder)
            assert _waits(beating)
        beating.result(timeout=20)


def test_readers_do_not_wait_for_a_writer_and_see_one_snapshot(catalog: Catalog, opened: Callable[[], Catalog]) -> None:
    source = add_source(catalog)
    other = opened()
    with catalog.read() as session:
        before = items.list_tables(session, source)
        add_tables(other, source, "t")
        assert items.list_tables(session, source) == before == []
    with catalog.locked(source):
        assert len(CatalogTickStore(other, source).load().tables) == 1


def test_of_many_claimers_one_gets_the_lease(catalog: Catalog, opened: Callable[[], Catalog]) -> None:
    source = add_source(catalog)
    held = CatalogTickStore(catalog, source)
    held.claim(JobId("dead"))
    seen = held.load().lease
    start = threading.Barrier(6)

    def claim(catalog: Catalog, job: str) -> bool:
        start.wait(20)
        try:
            CatalogTickStore(catalog, source).claim(JobId(job), stood_still=seen)
        except LeaseTaken:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        claims = [pool.submit(claim, opened(), f"job-{number}") for number in range(6)]
        winners = [number for number, claim in enumerate(claims) if claim.result(timeout=30)]
    lease = held.load().lease
    assert len(winners) == 1
    assert (lease.job_id, lease.epoch) == (f"job-{winners[0]}", seen.epoch + 1)


def test_of_many_creators_of_a_name_one_wins_and_ids_stay_distinct(
    catalog: Catalog, opened: Callable[[], Catalog]
) -> None:
    start = threading.Barrier(6)

    def create(catalog: Catalog, number: int) -> ItemId | None:
        start.wait(20)
        own = add_source(catalog, f"own{number}")
        try:
            add_source(catalog, "shared")
        except NameTaken:
            return None
        return own

    with ThreadPoolExecutor(6) as pool:
        created = [pool.submit(create, opened(), number) for number in range(6)]
        winners = [one for one in created if one.result(timeout=30)]
    with catalog.read() as session:
        sources = items.list_sources(session)
    assert len(winners) == 1
    assert [source.id for source in sources] == [f"u{number}" for number in range(1, 8)]


def test_definitions_in_opposite_orders_do_not_wait_in_a_circle(
    catalog: Catalog, opened: Callable[[], Catalog]
) -> None:
    first, second = add_source(catalog, "first"), add_source(catalog, "second")
    start = threading.Barrier(2)

    def create(catalog: Catalog, sources: list[ItemId], prefix: str) -> None:
        for turn in range(10):
            start.wait(20)
            with catalog.write() as session:
                for source in sources:
                    name = ("public", f"{prefix}_{source}_{turn}")
                    items.create_table(session, name=name, source_id=source, spec=TABLE)

    with ThreadPoolExecutor(2) as pool:
        there = pool.submit(create, opened(), [first, second], "a")
        back = pool.submit(create, opened(), [second, first], "b")
        there.result(timeout=60)
        back.result(timeout=60)
    with catalog.read() as session:
        assert len(items.list_tables(session)) == 40


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def _create_in_own_process(url: str, source: str, name: str) -> str:
    with open_catalog(url) as catalog:
        (table_id,) = add_tables(catalog, ItemId(source), name)
        arrives = CatalogTickStore(catalog, ItemId(source)).load().tables[table_id].backfill_id is not None
        return "needs a backfill" if arrives else table_id


def _mint_in_own_process(url: str, source: str) -> list[str]:
    with open_catalog(url) as catalog:
        log = Log(catalog, ItemId(source))
        log.mint()
        return sorted(log.store.load().members)


def test_no_table_misses_the_first_tick_it_believes_to_be_in(
    catalog: Catalog, catalog_url: str, processes: ProcessPoolExecutor
) -> None:
    sources = [add_source(catalog, f"s{number}") for number in range(10)]
    rounds = [
        (
            processes.submit(_create_in_own_process, catalog_url, source, f"t_{source}"),
            processes.submit(_mint_in_own_process, catalog_url, source),
        )
        for source in sources
    ]
    for creating, minting in rounds:
        created, members = creating.result(timeout=60), minting.result(timeout=60)
        assert members == ([] if created == "needs a backfill" else [created])


def _work_in_own_process(url: str, number: int, ticks: int) -> int:
    """What an app does, beside others: define, claim, mint, beat, commit."""
    with open_catalog(url) as catalog:
        source = add_source(catalog, f"s{number}")
        add_tables(catalog, source, f"a{number}", f"b{number}")
        log = Log(catalog, source)
        beating = threading.Event()

        def beat() -> None:
            while not beating.wait(0.01):
                log.store.beat(log.holder)

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            for _ in range(ticks):
                log.tick()
        finally:
            beating.set()
            thread.join()
        return log.store.load().last_number


def test_processes_and_threads_write_at_once_and_none_finds_it_locked(
    catalog: Catalog, catalog_url: str, processes: ProcessPoolExecutor
) -> None:
    work = [processes.submit(_work_in_own_process, catalog_url, number, 20) for number in range(PROCESSES)]
    assert [one.result(timeout=120) for one in work] == [20] * PROCESSES
    with catalog.read() as session:
        assert {table.status for table in items.list_tables(session)} == {"live"}
        assert len({source.id for source in items.list_sources(session)}) == PROCESSES


def _driver_connection(catalog: Catalog) -> object:
    with catalog.read() as session:
        return session.connection().connection.dbapi_connection


def test_a_forked_child_uses_connections_of_its_own(catalog: Catalog) -> None:
    log = Log(catalog, add_source(catalog))
    inherited = _driver_connection(catalog)
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()

    def child() -> None:
        log.tick()
        answer.put((_driver_connection(catalog) is inherited, log.store.load().last_number))

    process = context.Process(target=child)
    process.start()
    wait_until(lambda: process.exitcode is not None, 30, "the child to end")
    assert process.exitcode == 0
    assert answer.get() == (False, 1)
    assert _driver_connection(catalog) is inherited
    assert log.tick().number == 2
