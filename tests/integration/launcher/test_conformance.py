"""What every launcher does, over all that are registered: real processes, and a small app in the place of Spark's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.compute.launchers.base import Handle, Launcher
from airflow_provider_mzshare.compute.launchers.registry import LAUNCHERS, Launchers, UnknownLauncher
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.runs import find_log, run_of
from airflow_provider_mzshare.control.supervision.starter import Starter
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.settings import Settings
from tests.integration.launcher.conftest import STANDIN, Home, done
from tests.support.launched import SECRET, id_in, job_in, started, write_app
from tests.support.plugins import LAUNCHER, installed
from tests.support.waiting import wait_until

with installed(LAUNCHER, LAUNCHERS):
    NAMES = tuple(LAUNCHERS)

START = """
import sys; from pathlib import Path
from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.compute.launchers.registry import LAUNCHERS
from airflow_provider_mzshare.settings import Settings
launcher = LAUNCHERS.get(sys.argv[1]).from_settings(Settings.from_environment({}), Path(sys.argv[2]))
launcher.start(AppJob.model_validate_json(sys.stdin.read()))
"""


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    with installed(LAUNCHER, LAUNCHERS):
        yield


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def launcher(name: str, tmp_path: Path) -> Launcher:
    return made(name, write_app(tmp_path))


@pytest.fixture
def handles(launcher: Launcher) -> Iterator[list[Handle]]:
    runs: list[Handle] = []
    yield runs
    for handle in runs:
        launcher.kill(handle)


@pytest.fixture
def homes(home: Home, name: str) -> Home:
    """A home whose settings choose the launcher."""
    settings = replace(home.settings, launcher=name)
    home.settings, home.launchers = settings, Launchers(settings, STANDIN)
    return home


def made(name: str, app: Path | None = None) -> Launcher:
    return LAUNCHERS.get(name).from_settings(Settings.from_environment({}), app)


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_one_of_the_tests_is_registered_like_any_other() -> None:
    assert set(NAMES) == {*LAUNCHERS.own, "supervised"}


# ── start ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_told_its_job_and_nothing_secret_is_left_where_others_look(
    launcher: Launcher, handles: list[Handle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", SECRET)
    handle, facts = started(launcher, handles, tmp_path / "a")
    assert (handle.job_id, handle.folder, handle.host) == (id_in(tmp_path / "a"), tmp_path / "a", socket.gethostname())
    assert SECRET in facts["url"]
    assert facts["cwd"] == str(tmp_path / "a")
    assert SECRET not in str([facts["env"], facts["argv"]])
    assert "AIRFLOW__CORE__FERNET_KEY" not in facts["env"]
    held = [path for path in (tmp_path / "a").iterdir() if path.name != "facts.json"]
    assert held
    assert not [path for path in held if SECRET.encode() in path.read_bytes()]
    assert stat_of(tmp_path / "a") == 0o700


def stat_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_run_outlives_who_started_it_and_anybody_finds_it_again(
    name: str, launcher: Launcher, handles: list[Handle], tmp_path: Path
) -> None:
    folder, app = tmp_path / "a", write_app(tmp_path)
    assert launcher.find(id_in(folder), folder) is None, "nothing was started yet"
    subprocess.run(
        [sys.executable, "-c", START, name, str(app)],
        input=job_in(folder).model_dump_json(), text=True, check=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    handle = launcher.find(id_in(folder), folder)
    assert handle is not None
    handles.append(handle)
    wait_until((folder / "facts.json").exists, 120, "the app to be ready")
    assert made(name).status(handle) == "alive"
    assert launcher.find(id_in(tmp_path / "b"), tmp_path / "b") is None


def test_an_app_that_dies_at_once_is_gone_and_its_log_says_why(
    launcher: Launcher, handles: list[Handle], tmp_path: Path
) -> None:
    handle = launcher.start(job_in(tmp_path / "a", name="broken"))
    handles.append(handle)
    wait_until(lambda: launcher.status(handle) == "gone", 120, "the app to end")
    assert list(launcher.logs(handle))[-1] == "RuntimeError: the app is broken"
    found = launcher.find(id_in(tmp_path / "a"), tmp_path / "a")
    assert found is not None
    assert launcher.status(found) == "gone"


# ── status, stop, kill ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stop_reaches_the_driver_alone_and_lets_it_finish(
    launcher: Launcher, handles: list[Handle], tmp_path: Path
) -> None:
    handle, _ = started(launcher, handles, tmp_path / "a")
    assert launcher.status(handle) == "alive"
    launcher.request_stop(handle)
    wait_until(lambda: launcher.status(handle) == "gone", 120, "the app to end")
    assert list(launcher.logs(handle))[-1] == "finished the tick"
    launcher.request_stop(handle)
    assert launcher.kill(handle) == 0, "nothing is left, and nothing happens"


def test_a_kill_takes_all_that_belongs_to_the_run(launcher: Launcher, handles: list[Handle], tmp_path: Path) -> None:
    handle, facts = started(launcher, handles, tmp_path / "a", name="stubborn")
    launcher.request_stop(handle)
    assert launcher.status(handle) == "alive", "this app does not listen"
    assert launcher.kill(handle) >= 2
    assert launcher.status(handle) == "gone"
    assert ended(facts["helper"])
    assert launcher.kill(handle) == 0, "a second kill finds nothing"


def test_a_kill_finds_what_a_dead_driver_left_behind(launcher: Launcher, handles: list[Handle], tmp_path: Path) -> None:
    handle, facts = started(launcher, handles, tmp_path / "a")
    os.kill(facts["pid"], signal.SIGKILL)
    wait_until(lambda: launcher.status(handle) == "gone", 120, "the driver to be gone")
    assert not ended(facts["helper"])
    assert launcher.kill(handle) >= 1
    wait_until(lambda: ended(facts["helper"]), 120, "the helper to be gone")


# ── logs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_logs_follow_until_told_to_stop(launcher: Launcher, handles: list[Handle], tmp_path: Path) -> None:
    handle, _ = started(launcher, handles, tmp_path / "a")
    lines = []
    for line in launcher.logs(handle, follow=lambda: launcher.status(handle) == "alive"):
        lines.append(line)
        if line == "ready":
            launcher.request_stop(handle)
    assert [x for x in lines if x != "helper"] == ["ready", "finished the tick"]
    assert list(launcher.logs(handle, tail=1)) == ["finished the tick"]
    assert list(launcher.logs(handle, tail=0)) == []


def test_a_log_that_is_not_there_has_no_lines(launcher: Launcher, tmp_path: Path) -> None:
    assert list(launcher.logs(Handle(id_in(tmp_path / "a"), tmp_path / "a", socket.gethostname()))) == []


# ── double launch ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_runs_are_told_apart(launcher: Launcher, handles: list[Handle], tmp_path: Path) -> None:
    first, _ = started(launcher, handles, tmp_path / "a")
    second, facts = started(launcher, handles, tmp_path / "b")
    launcher.kill(first)
    assert (launcher.status(first), launcher.status(second)) == ("gone", "alive")
    assert not ended(facts["helper"])


def test_two_apps_forced_on_one_source_leave_one_owner(homes: Home, name: str) -> None:
    source_id = homes.source("s")
    homes.reconciler().run()
    first = homes.running(source_id)
    assert first.launcher == name
    starter = Starter(homes.catalog, homes.settings, homes.connections, homes.launchers)
    assert starter.start(source_id) == f"job {first.id} exists already"
    with homes.catalog.read() as session:
        source = items.get_source_item(session, source_id)
    second = starter.job_for(source)
    with homes.catalog.write() as session:
        jobs.create_job(
            session, kind="ingest", source_id=source_id, launcher=name, folder=str(second.folder),
            job_id=JobId(second.job_id),
        )  # fmt: skip
    homes.launchers.chosen().start(second)
    wait_until(lambda: homes.jobs(source_id)[0].state == "fenced", 120, "the second to find the source taken")
    assert "held by job" in (homes.jobs(source_id)[0].error or "")
    assert homes.jobs(source_id)[1].id == first.id
    assert homes.jobs(source_id)[1].state == "running"
    assert homes.health(source_id) == "running", "the one that runs counts, not the newer one that ended"
    assert done(homes.reconciler().run()) == []


# ── host gone ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_of_another_machine_is_unknown_and_left_alone(
    launcher: Launcher, handles: list[Handle], tmp_path: Path
) -> None:
    handle, _ = started(launcher, handles, tmp_path / "a")
    elsewhere = replace(handle, host="another-machine")
    assert launcher.status(elsewhere) == "unknown"
    launcher.request_stop(elsewhere)
    assert launcher.kill(elsewhere) == 0
    assert launcher.status(handle) == "alive"


def test_a_machine_that_died_is_noticed_by_the_heart_alone(homes: Home, name: str) -> None:
    source_id, dead = homes.source("s"), JobId("ingest-dead")
    with homes.catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source_id, launcher=name, folder="/none", job_id=dead)
        jobs.note_start(session, dead, pid=1, pid_started=1.0, host="elsewhere")
    CatalogTickStore(homes.catalog, source_id).claim(dead)
    assert list(find_log(homes.catalog, homes.launchers, dead).lines()) == []
    assert homes.reconciler().run() == [], "it may well be alive"
    assert done(homes.reconciler().run_patiently()) == [("lost", "public.s"), ("wait", "public.s")]


# ── the job's own launcher ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_is_ended_by_the_launcher_that_started_it_whatever_is_chosen_now(homes: Home) -> None:
    source_id = homes.source("stubborn")
    homes.reconciler().run()
    job = homes.running(source_id)
    homes.settings = replace(homes.settings, launcher="process")
    homes.launchers = Launchers(homes.settings, STANDIN)
    run = run_of(job, homes.launchers)
    assert run is not None
    assert type(run.runs) is LAUNCHERS.get(job.launcher)
    assert "running" in list(find_log(homes.catalog, homes.launchers, job.id).lines())
    homes.set_desired(source_id, "stopped")
    (outcome,) = homes.reconciler(stop_seconds=0.3, term_seconds=0.3).run()
    assert "was killed" in outcome.detail
    assert not homes.is_alive(job)


def test_the_doctor_can_ask_it(launcher: Launcher) -> None:
    found = launcher.probe()
    assert found
    assert "\n" not in found


# ── one that is not installed ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_of_a_launcher_that_is_not_installed_is_as_one_of_another_machine(home: Home) -> None:
    source_id, theirs = home.source("s"), JobId("ingest-theirs")
    other = home.source("other")
    with home.catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source_id, launcher="pods", folder="/none", job_id=theirs)
    CatalogTickStore(home.catalog, source_id).claim(theirs)
    assert done(home.reconciler().run()) == [("start", "public.other")], "the others are not kept waiting"
    home.running(other)
    assert home.health(source_id) == "starting"
    with pytest.raises(UnknownLauncher, match="there is no launcher 'pods' here; there are: process, supervised"):
        find_log(home.catalog, home.launchers, "s")
    home.set_desired(source_id, "stopped")
    (outcome,) = home.reconciler(stop_seconds=0.1, term_seconds=0.1).run(only=source_id)
    assert (outcome.ok, outcome.detail) == (False, f"job {theirs} on another machine was asked to stop and still runs")


def test_a_launcher_that_nobody_has_registered_starts_nothing_and_is_told_at_once(home: Home) -> None:
    source_id = home.source("s")
    home.settings = replace(home.settings, launcher="pods")
    home.launchers = Launchers(home.settings)
    (outcome,) = home.reconciler().run()
    assert (outcome.action, outcome.ok) == ("start", False)
    assert "there is no launcher 'pods' here" in outcome.detail
    assert "MZSHARE_LAUNCHER" in outcome.hint
    assert home.jobs(source_id) == []
