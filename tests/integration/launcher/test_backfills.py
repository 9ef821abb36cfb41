"""Backfills run beside the ingestion app as they should, and leave nothing: real catalog, real detached processes."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from sqlalchemy import select, update

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, TableRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.actions import Arm, Wait
from airflow_provider_mzshare.control.supervision.decisions import DEATHS
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.control.supervision.reconciler import Outcome
from airflow_provider_mzshare.control.supervision.runs import find_log, job_log_path
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.errors import UnknownItem
from tests.integration.launcher.conftest import Home, done
from tests.support.waiting import wait_until

HOUR_MS = 3_600_000


@pytest.mark.usefixtures("catalog_url")
def test_a_backfill_runs_beside_the_ingestion_app_until_its_tables_are_cut_over(home: Home) -> None:
    source_id = home.source("s")
    home.tick(source_id, 3)
    backfill_id = home.late_tables(source_id, "a", "b")
    subject, reconciler = f"backfill {backfill_id} for public.a, public.b", home.reconciler()
    assert done(reconciler.run()) == [("start", "public.s"), ("start", subject)]
    ingestion, backfill = home.running(source_id), home.running(source_id, "backfill")
    assert (ingestion.backfill_id, backfill.backfill_id) == (None, backfill_id)
    usual = psutil.Process(ingestion.pid).nice()
    assert usual < psutil.Process(backfill.pid).nice() == min(19, usual + 19)
    assert done(reconciler.run()) == []
    assert home.health(source_id) == "running"
    assert find_log(home.catalog, home.launchers, "a").job_id == backfill.id, "who feeds the table now"
    assert find_log(home.catalog, home.launchers, "s").job_id == ingestion.id

    home.follow(source_id, backfill_id, to=1)
    assert done(reconciler.run()) == [], "its history is not complete"
    home.follow(source_id, backfill_id)
    (arm,) = reconciler.plan()
    assert isinstance(arm, Arm)
    assert arm.why == "public.a, public.b can be cut over"
    assert home.table("a").status == "backfilling", "a plan changes nothing"
    assert done(reconciler.run()) == [("arm", "public.s")]
    assert (home.table("a").status, home.table("b").status) == ("converging", "converging")
    assert done(reconciler.run()) == []

    home.tick(source_id)
    assert (home.table("a").status, home.table("b").status) == ("live", "live")
    wait_until(lambda: home.jobs(source_id, "backfill")[0].state == "finished", 120, "the backfill to end by itself")
    wait_until(lambda: not home.is_alive(backfill), 120, "its process to be gone")
    assert done(reconciler.run(), "tidy", "start", "stop") == [("tidy", "public.s")]
    assert [path.name for path in Path(backfill.folder).iterdir()] == ["log"]
    assert home.is_alive(ingestion)
    assert find_log(home.catalog, home.launchers, "a").job_id == ingestion.id
    assert job_log_path(home.catalog, backfill.id).read_text().endswith("stopped\n")


@pytest.mark.usefixtures("catalog_url")
def test_two_that_start_a_backfill_at_once_leave_one_job_and_a_stalled_source_does_not_hold_it_up(home: Home) -> None:
    source_id, _ = _arriving(home)
    together = threading.Barrier(4)
    outcomes: list[Outcome] = []

    def start() -> None:
        together.wait()
        outcomes.extend(home.reconciler().run())

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(outcome.ok for outcome in outcomes)
    assert len(home.jobs(source_id, "backfill")) == 1
    assert home.jobs(source_id) == []
    home.running(source_id, "backfill")


def test_a_lost_backfill_has_its_own_back_off_and_the_ingestion_app_goes_on(home: Home) -> None:
    source_id = home.source("s")
    home.tick(source_id)
    subject = f"backfill {home.late_tables(source_id, 'a')} for public.a"
    reconciler = home.reconciler()
    reconciler.run()
    ingestion, backfill = home.running(source_id), home.running(source_id, "backfill")
    os.kill(backfill.pid or 0, signal.SIGKILL)
    wait_until(lambda: not home.is_alive(backfill), 120, "it to be dead")
    assert done(reconciler.run()) == [("lost", subject), ("wait", subject)]
    (lost,) = home.jobs(source_id, "backfill")
    assert (lost.state, lost.error) == ("lost", "its process is gone; its last message: a stand-in moves no data")
    (wait,) = [action for action in reconciler.plan() if isinstance(action, Wait)]
    assert 0 < wait.seconds <= 5
    assert home.health(source_id) == "running", "the source itself is not lost"

    os.kill(ingestion.pid or 0, signal.SIGKILL)
    wait_until(lambda: home.health(source_id) == "lost", 120, "the loss to be seen")
    outcomes = done(reconciler.run(only=source_id, at_once=True))
    assert outcomes == [("lost", "public.s"), ("start", "public.s"), ("start", subject)]
    assert home.running(source_id, "backfill").id != backfill.id


@pytest.mark.usefixtures("catalog_url")
def test_a_backfill_whose_heart_stands_still_is_replaced(home: Home) -> None:
    source_id, _ = _arriving(home)
    reconciler = home.reconciler()
    reconciler.run()
    job = home.running(source_id, "backfill")
    os.kill(job.pid or 0, signal.SIGSTOP)

    def replaced() -> bool:
        reconciler.run(at_once=True)
        return home.jobs(source_id, "backfill")[0].id != job.id

    wait_until(replaced, 120, "the frozen app to be replaced", every=0.2)
    assert not home.is_alive(job), "it was killed before another one was started"
    assert "heartbeat has stopped" in (home.jobs(source_id, "backfill")[1].error or "")
    home.running(source_id, "backfill")


def test_a_backfill_gets_the_master_that_is_said_for_it(home: Home) -> None:
    source_id = home.source("s")
    home.tick(source_id)
    home.late_tables(source_id, "a")
    home.settings = replace(home.settings, master="local[2]", backfill_master="local[3]")
    home.reconciler().run()
    assert (home.jobs(source_id)[0].master, home.jobs(source_id, "backfill")[0].master) == ("local[2]", "local[3]")


def test_a_stop_of_the_source_stops_both_and_a_start_starts_both(home: Home) -> None:
    source_id = home.source("s")
    home.tick(source_id)
    subject = f"backfill {home.late_tables(source_id, 'a')} for public.a"
    home.reconciler().run()
    home.running(source_id)
    home.running(source_id, "backfill")
    home.set_desired(source_id, "stopped")
    assert sorted(done(home.reconciler().run())) == [("stop", subject), ("stop", "public.s")]
    assert [home.jobs(source_id, kind)[0].state for kind in ("ingest", "backfill")] == ["stopped", "stopped"]
    assert done(home.reconciler().run()) == []
    home.set_desired(source_id, "running")
    assert done(home.reconciler().run()) == [("start", "public.s"), ("start", subject)]


def test_a_backfill_that_is_over_and_does_not_notice_is_made_to_end(home: Home) -> None:
    source_id, backfill_id = _arriving(home, "stubborn")
    home.reconciler().run()
    job = home.running(source_id, "backfill")
    with home.catalog.write() as session:
        items.drop_table(session, home.table("late").id)
    (outcome,) = home.reconciler(stop_seconds=0.3, term_seconds=0.3).run()
    assert (outcome.action, outcome.subject) == ("stop", f"backfill {backfill_id}")
    assert not home.is_alive(job)
    assert done(home.reconciler().run(), "tidy", "start") == [("tidy", "public.stubborn")]


def test_an_app_that_dies_time_after_time_is_given_up_table_by_table(home: Home) -> None:
    source_id, shared = _arriving(home, "dying", "a", "b")
    reconciler = home.reconciler()

    def until(action: str) -> list[Outcome]:
        """Reconcile, each time that all have died, until it comes to this."""
        while not done(outcomes := reconciler.run(at_once=True), action):
            assert len(home.jobs(source_id, "backfill")) <= 3 * DEATHS
            wait_until(lambda: not any(map(home.is_alive, home.jobs(source_id, "backfill"))), 120, "their deaths")
        return outcomes

    parted = done(until("isolate"))
    assert parted[:2] == [(verb, f"backfill {shared} for public.a, public.b") for verb in ("lost", "isolate")]
    assert [verb for verb, _ in parted[2:]] == ["start", "start"], "each of them gets a chance of its own at once"
    assert len(home.jobs(source_id, "backfill")) == DEATHS + 2
    assert len({home.table(name).backfill_id for name in "ab"} - {shared}) == 2

    until("abandon")
    if any(home.table(name).status != "stalled" for name in "ab"):  # One may be a death behind the other.
        until("abandon")
    assert len(home.jobs(source_id, "backfill")) == 3 * DEATHS
    for name in "ab":
        table = home.table(name)
        assert table.status == "stalled"
        assert table.reason == (
            f"the app of its backfill died {DEATHS} times in a row: "
            "its process is gone; its last message: no memory is left"
        )
        job = find_log(home.catalog, home.launchers, name).job_id
        assert [j.backfill_id != shared for j in home.jobs(source_id, "backfill") if j.id == job] == [True]
    assert done(reconciler.run(at_once=True)) == [], "nothing is started again by itself"
    with home.catalog.write() as session:
        resumed = arrivals.resume_table(session, home.table("a").id)
    assert done(reconciler.run()) == [("start", f"backfill {resumed} for public.a")]


# ── retiring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("catalog_url")
def test_a_retired_backfill_is_stopped_and_nothing_of_it_is_left_but_its_log(home: Home) -> None:
    source_id, backfill_id = _arriving(home)
    home.reconciler().run()
    job = home.running(source_id, "backfill")
    subject, reconciler = f"backfill {backfill_id}", home.reconciler()
    outcomes = reconciler.retire(backfill_id)
    assert done(outcomes, "retire", "stop", "tidy") == [("retire", subject), ("stop", subject), ("tidy", subject)]
    assert outcomes[0].detail == "not live yet: late"
    assert not home.is_alive(job)
    assert [path.name for path in Path(job.folder).iterdir()] == ["log"]
    table = home.table("late")
    assert (table.status, table.reason) == ("stalled", "its backfill was retired before the cutover")

    assert [(o.action, o.detail) for o in reconciler.retire(backfill_id)] == [("retire", "it has ended")]
    assert done(reconciler.run(at_once=True)) == [], "nobody starts it again"
    with pytest.raises(UnknownItem):
        reconciler.retire(BackfillId("b-nope"))


def test_a_retired_backfill_that_never_ran_or_listens_to_nothing_ends_all_the_same(home: Home) -> None:
    source_id, backfill_id = _arriving(home, "stubborn")
    home.reconciler().run()
    job = home.running(source_id, "backfill")
    outcomes = home.reconciler(stop_seconds=0.3, term_seconds=0.3).retire(backfill_id)
    assert "was killed" in outcomes[1].detail
    assert not home.is_alive(job)
    assert [path.name for path in Path(job.folder).iterdir()] == ["log"]
    with home.catalog.write() as session:
        resumed = arrivals.resume_table(session, home.table("late").id)
    assert done(home.reconciler().retire(resumed), "retire", "stop", "tidy") == [("retire", f"backfill {resumed}")]
    assert home.table("late").status == "stalled"


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("catalog_url")
def test_folders_of_a_table_dropped_while_it_arrives_go_when_its_backfill_has_ended(home: Home) -> None:
    source_id, _ = _arriving(home, "stubborn")
    home.reconciler().run()
    job = home.running(source_id, "backfill")
    folders = _make_folders(home, "late")
    with home.catalog.write() as session:
        items.drop_table(session, home.table("late").id)
    impatient = home.reconciler(stop_seconds=0.3, term_seconds=0.3)
    assert done(impatient.run(), "remove", "stop")[0][0] == "stop", "it might still write there"
    assert _folders(home) == folders
    wait_until(lambda: not home.is_alive(job), 60, "the end that it has recorded")
    assert done(home.reconciler().run(), "remove") == [("remove", "public.late")]
    assert _folders(home) == set()


@pytest.mark.usefixtures("catalog_url")
def test_a_replaced_generation_goes_an_hour_after_nobody_can_read_it_and_one_given_up_at_once(home: Home) -> None:
    source_id = home.source("s")
    home.set_desired(source_id, "stopped")
    home.tick(source_id, 2)
    old, table_id = _make_folders(home, "s_0"), home.table("s_0").id
    with home.catalog.write() as session:
        given_up = arrivals.resnapshot_table(session, table_id)
    both = _make_folders(home, "s_0")
    assert done(home.reconciler().run()) == [], "it is being filled"
    home.reconciler().retire(given_up)
    assert home.table("s_0").status == "live"
    (outcome,) = home.reconciler().run()
    assert (outcome.action, outcome.subject) == ("remove", "public.s_0")
    assert _folders(home) == old < both

    with home.catalog.write() as session:
        backfill_id = arrivals.resnapshot_table(session, table_id)
    both = _make_folders(home, "s_0", old)
    home.follow(source_id, backfill_id)
    with home.catalog.write() as session:
        assert arrivals.arm_table(session, table_id)
    swap = home.tick(source_id)
    assert home.table("s_0").generation == 3
    assert done(home.reconciler().run()) == [], "reads before the swap are answered by the old one"
    with home.catalog.write() as session:
        session.execute(update(TableRow).where(TableRow.id == table_id).values(since=swap.mz_timestamp))
    assert done(home.reconciler().run()) == [], "a reader may have opened it a moment ago"
    now, warehouse = wall_ms(), home.settings.warehouse
    maintain(home.catalog, warehouse, now_ms=now)
    maintain(home.catalog, warehouse, now_ms=now + HOUR_MS // 2)
    maintain(home.catalog, warehouse, now_ms=now + HOUR_MS, dry_run=True)
    assert done(home.reconciler().run()) == []
    maintain(home.catalog, warehouse, now_ms=now + HOUR_MS)
    assert done(home.reconciler().run()) == [("remove", "public.s_0")]
    assert _folders(home) == both - old
    assert home.reconciler().run() == []


def _arriving(home: Home, name: str = "s", *tables: str) -> tuple[ItemId, BackfillId]:
    """Tables (``late``) that need a backfill, of a source that is stalled: no ingestion app is started."""
    source_id = home.source(name)
    home.tick(source_id, 3)
    home.stall(source_id)
    return source_id, home.late_tables(source_id, *(tables or ("late",)))


def _make_folders(home: Home, name: str, known: set[str] | None = None) -> set[str]:
    """Collections of all generations of a table, as an app would have made them; but for ones that were removed."""
    with home.catalog.read() as session:
        query = select(CollectionRow.path, CollectionRow.generation).where(
            CollectionRow.table_id == home.table(name).id
        )
        found = {row.path: row.generation for row in session.execute(query)}
    newest = max(found.values())
    paths = {path for path, generation in found.items() if known is None or generation == newest} | (known or set())
    for path in paths:
        (Path(home.settings.warehouse) / path / "_delta_log").mkdir(parents=True, exist_ok=True)
    return paths


def _folders(home: Home) -> set[str]:
    return {path.name for path in Path(home.settings.warehouse).iterdir()}
