"""Read holds on both databases: real files stay for a hold and go without it, whoever dies, races or comes back."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import insert, update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import database_ms, wall_ms
from airflow_provider_mzshare.control.catalog.database.models import ReadHoldRow, TableRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resume_table
from airflow_provider_mzshare.control.catalog.log.holds import HoldStore
from airflow_provider_mzshare.control.catalog.log.retention import advance_since
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.lifecycle.holding import hold_table
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.ticklog.holds import (
    Hold,
    HoldDropped,
    HoldRefused,
    HoldTakenOver,
    UnknownHold,
    Wanted,
)
from airflow_provider_mzshare.core.ticklog.state import Left
from airflow_provider_mzshare.errors import NotReadable
from tests.support.catalog import Log, add_source, add_tables
from tests.support.held_table import DAY_MS, BareTable, HeldTable
from tests.support.relations import Described
from tests.support.waiting import wait_until

DAYS_31 = 31 * DAY_MS


@pytest.fixture
def orders(catalog: Catalog, tmp_path: Path) -> BareTable:
    return BareTable(catalog, tmp_path)


@pytest.fixture
def files(catalog: Catalog, tmp_path: Path) -> HeldTable:
    return HeldTable(catalog, tmp_path)


def wanted(name: str = "loader", at: int | None = None, *, limit: float = 60, named: bool = True) -> Wanted:
    return Wanted(name, at, "etl", uuid4().hex, round(limit * 1000), named=named)


def take(orders: BareTable, name: str = "loader", at: int | None = None, **more: float) -> Hold:
    return HoldStore(orders.catalog).take(orders.id, wanted(name, at, **more))


# ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hold_keeps_since_and_files_and_without_it_they_go(files: HeldTable) -> None:
    third = files.times[2]
    before = files.files()
    hold = take(files, at=third)
    for _ in range(3):
        done = files.maintain()
        assert (done.since, done.held_at, done.data_files, done.dropped_holds) == (third, third, 0, ())
    assert files.files() == before
    files.check_readable_from(third)

    moved = HoldStore(files.catalog).move("loader", hold.claim, files.times[4])
    assert files.maintain().since == moved.at == files.times[4]
    assert files.maintain().data_files == 4, "the small files that were merged"
    files.check_readable_from(moved.at)

    HoldStore(files.catalog).release("loader", hold.claim)
    assert (files.maintain().since, files.hold_row("loader")) == (files.times[5], None)


def test_the_oldest_of_several_holds_counts_and_each_table_has_its_own(orders: BareTable) -> None:
    (other,) = add_tables(orders.catalog, orders.source_id, "amounts")
    take(orders, "new", orders.times[4])
    old = take(orders, "old", orders.times[1])
    assert orders.maintain().since == orders.times[1]
    HoldStore(orders.catalog).release("old", old.claim)
    assert orders.maintain().since == orders.times[4]
    with pytest.raises(HoldRefused, match="stands on table u2, and amounts is table u3"):
        HoldStore(orders.catalog).take(other, wanted("new"))


def test_the_app_moves_since_no_further_either_and_says_whose_hold_it_dropped(
    orders: BareTable, caplog: pytest.LogCaptureFixture
) -> None:
    take(orders, at=orders.times[1])
    store = CatalogTickStore(orders.catalog, orders.source_id, clock=lambda: orders.later)
    holder = store.claim(JobId("ingest-2"), stood_still=store.lease())
    store.advance_since(holder)
    assert orders.since() == orders.times[1]
    orders.silence("loader", 61)
    with caplog.at_level(logging.WARNING):
        store.advance_since(holder)
    assert orders.since() == orders.times[5]
    assert caplog.messages == [
        f"the read hold 'loader' on table {orders.id} at {orders.times[1]} was dropped: etl was not heard of for 60 s"
    ]


def test_a_replaced_generation_stays_as_long_as_a_hold_needs_it(files: HeldTable) -> None:
    third = files.times[2]
    hold = take(files, at=third)
    swap = files.resnapshot()
    for _ in range(3):
        files.maintain()
        assert files.tidy() == []
    files.check_readable_from(third)
    HoldStore(files.catalog).move("loader", hold.claim, swap)
    files.maintain()
    assert files.tidy() == [], "a read may have begun a moment ago"
    files.maintain()
    assert files.tidy() == ["nobody can read its generation 1 any more"]
    files.check_readable_from(swap)


def test_a_table_that_is_dropped_is_not_held_any_more(files: HeldTable) -> None:
    hold = take(files, at=files.times[1])
    files.drop()
    assert files.tidy() == ["it was dropped"]
    with pytest.raises(HoldDropped, match=r"was dropped at \d+: its table was dropped") as told:
        HoldStore(files.catalog).refresh("loader", hold.claim)
    assert not told.value.can_go_on
    (other,) = add_tables(files.catalog, files.source_id, "orders")
    with pytest.raises(HoldDropped):
        HoldStore(files.catalog).take(other, wanted())


# ── what cannot be held ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_time_that_is_gone_or_to_come_is_refused(orders: BareTable) -> None:
    orders.maintain()
    for at, says in ((orders.times[4], "gone or never was"), (orders.times[5] + 1, "not final yet")):
        with pytest.raises(NotReadable, match=says):
            take(orders, at=at)
    assert take(orders).at == orders.times[5], "without a time, the newest"


def test_a_table_is_held_once_it_is_filled(catalog: Catalog) -> None:
    source = add_source(catalog)
    log = Log(catalog, source)
    log.tick()
    (late,) = add_tables(catalog, source, "late")
    with pytest.raises(NotReadable, match="no committed tick yet"):
        HoldStore(catalog).take(late, wanted())
    with catalog.write() as session:
        session.execute(update(TableRow).where(TableRow.id == late).values(upper=2_000, since=1_999))
    with pytest.raises(HoldRefused, match="while a backfill fills it") as refused:
        HoldStore(catalog).take(late, wanted())
    assert refused.value.hint == "mzshare wait late --for live"


def test_a_table_that_is_healed_can_be_held_meanwhile(orders: BareTable) -> None:
    log = Log(orders.catalog, orders.source_id, job="job-1")
    log.tick(outcomes={orders.id: Left("full")})
    with orders.catalog.write() as session:
        resume_table(session, orders.id)
    assert take(orders).at == orders.times[5]


# ── who dies, and who comes back ──────────────────────────────────────────────────────────────────────────────────────

_HOLDER = """
import sys, time
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.lifecycle.holding import hold_table
with open_catalog(sys.argv[1]) as catalog, hold_table(
    catalog, "orders", at=int(sys.argv[2]), name="loader", limit=60, holder="etl"
) as hold:
    hold.move(int(sys.argv[3]))
    print(hold.at, flush=True)
    time.sleep(600)
"""


def test_a_holder_that_was_killed_goes_on_where_it_stood(files: HeldTable, catalog_url: str) -> None:
    second, third = files.times[1:3]
    command = [sys.executable, "-c", _HOLDER, catalog_url, str(second), str(third)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=files.folder)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == str(third)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    for _ in range(2):
        assert files.maintain().since == third, "the dead hold on, until their limit"
    with hold_table(files.catalog, "orders", name="loader") as hold:
        assert hold.at == third
        files.maintain()
        files.check_readable_from(hold.at)
    assert files.maintain().since == files.times[5]


def test_a_dead_holder_is_dropped_after_its_limit_and_that_is_told(orders: BareTable) -> None:
    hold = take(orders, at=orders.times[1])
    store = HoldStore(orders.catalog)
    orders.silence("loader", 59)
    assert orders.maintain().dropped_holds == ()
    orders.silence("loader", 61)
    done = orders.maintain()
    assert done.dropped_holds == (f"loader at {orders.times[1]}: etl was not heard of for 60 s",)
    assert (done.since, done.held_at) == (orders.times[5], None)
    assert orders.maintain().dropped_holds == (), "once"
    shown = Described(orders.catalog).one(
        "SELECT name, object_id, mz_timestamp, holder, limit_ms, reason, "
        "CASE WHEN dropped_at >= heartbeat_at AND heartbeat_at < taken_at THEN 1 END AS dropped FROM mz_read_holds"
    )
    assert shown == {
        "name": "loader", "object_id": orders.id, "mz_timestamp": orders.times[1], "holder": "etl",
        "limit_ms": 60_000, "reason": "etl was not heard of for 60 s", "dropped": 1,
    }  # fmt: skip
    for step in (
        lambda: store.refresh("loader", hold.claim),
        lambda: store.move("loader", hold.claim, orders.times[3]),
        lambda: store.release("loader", hold.claim),
        lambda: take(orders),
    ):
        with pytest.raises(HoldDropped, match=f"can now be read from {orders.times[5]} on"):
            step()
    assert take(orders, at=orders.times[5]).at == orders.times[5], "who names a time that is there has lost nothing"


def test_a_late_heartbeat_counts_as_long_as_nobody_has_dropped_the_hold(orders: BareTable) -> None:
    hold = take(orders, at=orders.times[1])
    orders.silence("loader", 600)
    HoldStore(orders.catalog).refresh("loader", hold.claim)
    assert orders.maintain().since == orders.times[1]


def test_two_that_run_at_once_under_one_name_do_not_share_it(orders: BareTable) -> None:
    first = take(orders, at=orders.times[1])
    second = take(orders)
    assert second.at == first.at
    store = HoldStore(orders.catalog)
    for step in (
        lambda: store.refresh("loader", first.claim),
        lambda: store.move("loader", first.claim, orders.times[3]),
        lambda: store.release("loader", first.claim),
    ):
        with pytest.raises(HoldTakenOver):
            step()
    store.release("loader", second.claim)
    with pytest.raises(UnknownHold):
        store.refresh("loader", first.claim)
    take(orders)
    with pytest.raises(HoldTakenOver):
        store.refresh("loader", first.claim)


def test_dropped_by_hand_and_then_forgotten(orders: BareTable) -> None:
    hold = take(orders, at=orders.times[1])
    store = HoldStore(orders.catalog)
    assert store.drop("loader", "somebody dropped it by hand")[1] == "orders"
    assert orders.maintain().since == orders.times[5]
    with pytest.raises(HoldDropped, match="somebody dropped it by hand"):
        store.refresh("loader", hold.claim)
    store.drop("loader", "again")
    with pytest.raises(UnknownHold):
        store.drop("loader", "again")
    assert take(orders).at == orders.times[5]


def test_only_those_that_nobody_comes_back_for_are_forgotten_by_themselves(orders: BareTable) -> None:
    take(orders, "loader", orders.times[1])
    take(orders, "hold-1", orders.times[1], named=False)
    for name in ("loader", "hold-1"):
        orders.silence(name, 61)
    orders.maintain()
    orders.later = wall_ms() + DAYS_31
    orders.maintain()
    assert orders.hold_row("hold-1") is None
    assert orders.hold_row("loader") is not None
    orders.drop()
    add_tables(orders.catalog, orders.source_id, "orders")
    orders.maintain()
    assert orders.hold_row("loader") is None


# ── several at once ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hold_waits_for_maintenance_and_is_told_what_it_has_left(orders: BareTable) -> None:
    with ThreadPoolExecutor(1) as pool:
        with orders.catalog.locked(orders.source_id) as (session, state):
            taking = pool.submit(take, orders, "loader", orders.times[1])
            with pytest.raises(TimeoutError):
                taking.result(timeout=0.3)
            advance_since(session, state, orders.later)
        with pytest.raises(NotReadable, match=f"it can be read from {orders.times[5]}"):
            taking.result(timeout=20)


def test_maintenance_waits_for_a_hold_and_takes_it_into_account(orders: BareTable) -> None:
    with ThreadPoolExecutor(1) as pool:
        with orders.catalog.locked(orders.source_id) as (session, _):
            maintaining = pool.submit(orders.maintain)
            with pytest.raises(TimeoutError):
                maintaining.result(timeout=0.3)
            now = database_ms(session)
            row = Hold("loader", orders.id, orders.times[1], "etl", "c", now, now, 60_000)
            session.execute(insert(ReadHoldRow).values(**vars(row)))
        assert maintaining.result(timeout=20).since == orders.times[1]


def test_of_holders_and_maintenance_at_once_whoever_holds_can_read(
    orders: BareTable, opened: Callable[[], Catalog]
) -> None:
    """Each round, some hold what maintenance is about to pass; by chance, they come before it or after."""
    outcomes: set[str] = set()
    done = threading.Event()

    def holder(number: int) -> None:
        catalog = opened()
        store = HoldStore(catalog)
        while not done.is_set():
            try:
                hold = store.take(orders.id, wanted(f"holder-{number}", orders.times[-1 - number]))
            except NotReadable:
                outcomes.add("refused")
                continue
            with catalog.read() as session:
                assert table_read_point(session, orders.id, as_of_ms=hold.at).mz_timestamp == hold.at
            store.refresh(hold.name, hold.claim)
            store.release(hold.name, hold.claim)
            outcomes.add("held")

    with ThreadPoolExecutor(3) as pool:
        holders = [pool.submit(holder, number) for number in range(3)]
        try:
            for _ in range(12):
                orders.tick()
                orders.maintain()
            wait_until(lambda: "held" in outcomes, 20, "somebody to hold")
        finally:
            done.set()
        for one in holders:
            one.result(timeout=60)
    assert "held" in outcomes


def test_one_name_for_tables_of_two_sources_at_once_is_given_once(
    catalog: Catalog, opened: Callable[[], Catalog]
) -> None:
    """Their locks are not the same: the name's own row decides."""
    tables: list[ItemId] = []
    for name in ("one", "two"):
        source = add_source(catalog, f"source_{name}")
        tables += add_tables(catalog, source, name)
        Log(catalog, source).tick()
    start = threading.Barrier(2)

    def try_to(table: str) -> str:
        store = HoldStore(opened())
        start.wait(20)
        try:
            return store.take(tables[0] if table == "one" else tables[1], wanted("same")).table_id
        except HoldRefused:
            return ""

    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            got = [one for one in pool.map(try_to, ("one", "two")) if one]
            assert len(got) == 1
            for _ in range(2):
                HoldStore(catalog).drop("same", "for the next round")
