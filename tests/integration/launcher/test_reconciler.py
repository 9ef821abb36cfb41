"""What runs comes to agree with what should run: real catalog, real detached processes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import psutil
import pytest
from sqlalchemy import select, update

from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, JobRow
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.actions import Wait
from airflow_provider_mzshare.control.supervision.reconciler import Outcome
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import Done
from tests.integration.launcher.conftest import Home, done
from tests.support.waiting import wait_until


def test_a_source_is_started_once_and_left_alone_while_it_runs(home: Home) -> None:
    source_id = home.source("s")
    reconciler = home.reconciler()
    assert home.health(source_id) == "waiting"
    assert done(reconciler.run()) == [("start", "public.s")]
    assert home.health(source_id) == "starting"
    job = home.running(source_id)
    assert home.health(source_id) == "running"
    assert done(reconciler.run()) == []
    assert [j.id for j in home.jobs(source_id)] == [job.id]
    assert job.pid is not None
    assert psutil.Process(job.pid).create_time() == pytest.approx(job.pid_started)
    assert Path(job.folder) == home.settings.jobs / source_id / job.id


def test_a_machine_that_died_is_noticed_by_a_reconciler_that_looks_once(home: Home) -> None:
    """Of a process on another machine only the heart tells, and a task of Airflow keeps no reconciler."""
    source_id, dead = home.source("s"), JobId("ingest-dead")
    with home.catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source_id, launcher="process", folder="", job_id=dead)
        jobs.note_start(session, dead, pid=1, pid_started=1.0, host="elsewhere")
    CatalogTickStore(home.catalog, source_id).claim(dead)
    assert home.reconciler().run() == [], "it may well be alive"
    assert done(home.reconciler().run_patiently()) == [("lost", "public.s"), ("wait", "public.s")]
    assert home.jobs(source_id)[0].state == "lost"
    assert CatalogTickStore(home.catalog, source_id).lease().job_id == dead, "from here its death is not known for sure"
    home.reconciler().run(at_once=True)
    job = home.running(source_id)
    assert done(home.reconciler().run_patiently()) == [], "its heart beats"
    assert home.jobs(source_id)[0].id == job.id


@pytest.mark.usefixtures("catalog_url")
def test_those_who_tidy_up_at_once_are_not_in_each_other_s_way(home: Home) -> None:
    source_id = home.source("s")
    home.reconciler().run()
    job = home.running(source_id)
    home.set_desired(source_id, "stopped")
    home.reconciler().run()
    wait_until(lambda: not home.is_alive(job), 120, "its process to be gone")
    for number in range(20):
        (Path(job.folder) / f"scratch-{number}" / "deep").mkdir(parents=True)
    together, outcomes = threading.Barrier(4), list[Outcome]()

    def tidy() -> None:
        together.wait()
        outcomes.extend(home.reconciler().run())

    threads = [threading.Thread(target=tidy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome for outcome in outcomes if not outcome.ok] == []
    assert not [path for path in Path(job.folder).iterdir() if path.name.startswith("scratch")]


@pytest.mark.usefixtures("catalog_url")
def test_two_that_start_at_once_leave_one_job(home: Home) -> None:
    source_id = home.source("s")
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
    assert len(home.jobs(source_id)) == 1
    home.running(source_id)


@pytest.mark.usefixtures("catalog_url")
def test_a_stop_goes_through_the_catalog_and_ends_cleanly(home: Home) -> None:
    source_id = home.source("s")
    home.reconciler().run()
    job = home.running(source_id)
    home.set_desired(source_id, "stopped")
    outcomes = home.reconciler().run()
    assert done(outcomes) == [("stop", "public.s")]
    assert "ended after its tick" in outcomes[-1].detail
    ended = home.jobs(source_id)[0]
    assert (ended.id, ended.state, ended.error) == (job.id, "stopped", None)
    assert home.health(source_id) == "stopped"
    home.set_desired(source_id, "running")
    assert done(home.reconciler().run()) == [("start", "public.s")], "a clean end needs no back-off"


def test_an_app_that_does_not_look_is_told_by_a_signal(home: Home) -> None:
    source_id = home.source("deaf")
    home.reconciler().run()
    home.running(source_id)
    home.set_desired(source_id, "stopped")
    (outcome,) = home.reconciler(stop_seconds=0.3).run()
    assert "ended after a second request" in outcome.detail
    assert home.jobs(source_id)[0].state == "stopped"


def test_an_app_that_listens_to_nothing_is_killed_with_all_its_children(home: Home) -> None:
    source_id = home.source("stubborn")
    home.reconciler().run()
    job = home.running(source_id)
    children = psutil.Process(job.pid).children(recursive=True)
    assert children
    home.set_desired(source_id, "stopped")
    (outcome,) = home.reconciler(stop_seconds=0.3, term_seconds=0.3).run()
    assert "did not stop on request and was killed" in outcome.detail
    assert not home.is_alive(job)
    wait_until(lambda: not any(_lives(child) for child in children), 120, "the children to be gone")
    assert home.jobs(source_id)[0].state == "stopped"


def test_what_was_lost_is_noted_waits_for_its_back_off_and_is_started_again(home: Home) -> None:
    source_id = home.source("s")
    reconciler = home.reconciler()
    reconciler.run()
    job = home.running(source_id)
    children = psutil.Process(job.pid).children(recursive=True)
    os.kill(job.pid or 0, signal.SIGKILL)
    wait_until(lambda: home.health(source_id) == "lost", 120, "the loss to be seen")
    assert done(reconciler.run()) == [("lost", "public.s"), ("wait", "public.s")]
    lost = home.jobs(source_id)[0]
    assert lost.state == "lost"
    assert lost.error == "its process is gone; its last message: a stand-in moves no data"
    assert not any(_lives(child) for child in children), "what the driver left behind is gone too"
    assert CatalogTickStore(home.catalog, source_id).lease().job_id is None, "nobody waits for the dead"

    (wait,) = [action for action in reconciler.plan() if isinstance(action, Wait)]
    assert 0 < wait.seconds <= 5
    assert done(reconciler.run(only=source_id, at_once=True)) == [("start", "public.s")]
    home.running(source_id)


def test_an_app_that_dies_before_it_can_say_anything_is_known_to_have_died(home: Home) -> None:
    source_id = home.source("crashing")
    reconciler = home.reconciler()
    reconciler.run()
    wait_until(lambda: home.health(source_id) == "lost", 120, "the crash to be seen")
    assert done(reconciler.run()) == [("lost", "public.crashing"), ("wait", "public.crashing")]
    assert "the app cannot be imported" in (home.jobs(source_id)[0].error or "")


def test_a_job_that_was_recorded_and_never_launched_is_given_up_after_a_while(home: Home) -> None:
    source_id = home.source("s")
    with home.catalog.write() as session:
        job_id = jobs.create_job(
            session, kind="ingest", source_id=source_id, launcher="process", folder=str(home.settings.home / "none")
        )
    assert done(home.reconciler().run()) == []
    with home.catalog.write() as session:
        session.execute(update(JobRow).where(JobRow.id == job_id).values(created_at=JobRow.created_at - 31_000))
    assert done(home.reconciler().run())[0] == ("lost", "public.s")
    with home.catalog.write() as session:
        assert not jobs.note_start(session, job_id, pid=1, pid_started=1.0, host="h"), "should it come after all"


@pytest.mark.usefixtures("catalog_url")
def test_an_app_whose_heart_stands_still_is_replaced(home: Home) -> None:
    source_id = home.source("s")
    reconciler = home.reconciler()
    reconciler.run()
    job = home.running(source_id)
    os.kill(job.pid or 0, signal.SIGSTOP)

    def replaced() -> bool:
        reconciler.run(at_once=True)
        return home.jobs(source_id)[0].id != job.id

    wait_until(replaced, 120, "the frozen app to be replaced", every=0.2)
    assert not home.is_alive(job), "it was killed before another one was started"
    assert home.jobs(source_id)[1].state == "lost"
    assert "heartbeat has stopped" in (home.jobs(source_id)[1].error or "")
    home.running(source_id)


def test_one_look_alone_never_takes_a_heart_for_still(home: Home) -> None:
    source_id = home.source("s")
    home.reconciler().run()
    job = home.running(source_id)
    os.kill(job.pid or 0, signal.SIGSTOP)
    try:
        assert done(home.reconciler().run()) == []
    finally:
        os.kill(job.pid or 0, signal.SIGCONT)


def test_a_source_without_tables_is_stopped_and_started_when_it_has_one(home: Home) -> None:
    source_id = home.source("s", tables=0)
    assert done(home.reconciler().run()) == []
    with home.catalog.write() as session:
        spec = TableSpec(reference="t", format="text")
        table_id = items.create_table(session, name=("public", "t"), source_id=source_id, spec=spec)
    assert done(home.reconciler().run()) == [("start", "public.s")]
    home.running(source_id)
    with home.catalog.write() as session:
        items.drop_table(session, table_id)
    assert done(home.reconciler().run()) == [("stop", "public.s")]


def test_a_dropped_source_is_stopped_and_what_it_left_is_removed(home: Home) -> None:
    source_id = home.source("s")
    home.reconciler().run()
    job = home.running(source_id)
    with home.catalog.write() as session:
        items.drop_source(session, source_id, cascade=True)
    assert done(home.reconciler().run()) == [("stop", "public.s")]
    wait_until(lambda: not home.is_alive(job), 120, "the app to be gone")
    assert done(home.reconciler().run(), "tidy") == [("tidy", "public.s")]
    assert list(home.settings.jobs.iterdir()) == [], "not even the source's own folder stays"
    assert home.reconciler().run() == []


def test_scratch_of_an_ended_job_goes_and_its_log_stays(home: Home) -> None:
    source_id = home.source("s")
    home.reconciler().run()
    job = home.running(source_id)
    home.set_desired(source_id, "stopped")
    home.reconciler().run()
    wait_until(lambda: not home.is_alive(job), 120, "the app to be gone")
    assert (Path(job.folder) / "checkpoint-1").is_dir()
    assert done(home.reconciler().run(), "tidy") == [("tidy", "public.s")]
    assert [path.name for path in Path(job.folder).iterdir()] == ["log"]
    assert home.reconciler().run() == []


@pytest.mark.usefixtures("catalog_url")
def test_folders_of_dropped_tables_go_once_no_pending_tick_has_them_as_members(home: Home) -> None:
    source_id = home.source("s", tables=2)
    home.set_desired(source_id, "stopped")
    folders = _make_folders(home, source_id)
    stranger = Path(home.settings.warehouse) / "somebody-elses"
    stranger.mkdir()
    store = CatalogTickStore(home.catalog, source_id)
    holder = store.claim(JobId("test"))
    tick = store.mint(holder, lower=Position(), upper=Position({"0": 5}), incarnation="topic-id")
    with home.catalog.write() as session:
        items.drop_table(session, items.find_table(session, ("public", "s_0")).id)
    assert home.reconciler().run() == [], "its files may be being written"

    store.commit(holder, tick.number, {member.table_id: Done() for member in store.members()}, {})
    assert done(home.reconciler().run()) == [("remove", "public.s_0")]
    left = {path.name for path in Path(home.settings.warehouse).iterdir()}
    assert left == {"somebody-elses", *folders["s_1"]}
    assert home.reconciler().run() == []


def test_a_source_that_cannot_be_started_does_not_hold_up_the_others(home: Home) -> None:
    bad = home.source("bad", connection="missing")
    good = home.source("good")
    outcomes = home.reconciler().run()
    assert [(o.subject, o.ok) for o in outcomes] == [("public.bad", False), ("public.good", True)]
    assert "connection 'missing' is not defined" in outcomes[0].detail
    assert "AIRFLOW_CONN_MISSING" in outcomes[0].hint
    assert home.jobs(bad) == [], "no job is recorded for a start that cannot happen"
    home.running(good)


def test_without_java_nothing_is_started_and_it_is_told_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source_id = home.source("s")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nope"))
    (outcome,) = home.reconciler().run()
    assert (outcome.action, outcome.ok) == ("start", False)
    assert str(tmp_path / "nope") in outcome.detail
    assert "JAVA_HOME" in outcome.hint
    assert home.jobs(source_id) == []


def test_a_stalled_source_is_not_started(home: Home) -> None:
    source_id = home.source("s")
    store = CatalogTickStore(home.catalog, source_id)
    holder = store.claim(JobId("test"))
    store.stall(holder, "catalog_behind", "the catalog has lost its tail")
    assert done(home.reconciler().run(at_once=True)) == []
    assert home.health(source_id) == "stalled"


def _make_folders(home: Home, source_id: ItemId) -> dict[str, set[str]]:
    """Collections as the app would have made them, with a file in each."""
    found: dict[str, set[str]] = {}
    with home.catalog.read() as session:
        for table in items.list_tables(session, source_id):
            paths = session.scalars(select(CollectionRow.path).where(CollectionRow.table_id == table.id)).all()
            found[table.display] = set(paths)
    for paths in found.values():
        for path in paths:
            log = Path(home.settings.warehouse) / path / "_delta_log"
            log.mkdir(parents=True)
            (log / "00000000000000000000.json").write_text("{}")
    return found


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
