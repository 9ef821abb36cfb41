"""What only a detached process has: session, files, pid. What all launchers do is in test_conformance.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.compute.launchers.apps import find_app
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher, process_identity
from airflow_provider_mzshare.errors import LaunchFailed
from tests.support.launched import id_in, job_in, started, write_app
from tests.support.waiting import wait_until


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return write_app(tmp_path)


@pytest.fixture
def launcher(app: Path) -> ProcessLauncher:
    return ProcessLauncher(app)


@pytest.fixture
def handles(launcher: ProcessLauncher) -> Iterator[list[Handle]]:
    started: list[Handle] = []
    yield started
    for handle in started:
        launcher.kill(handle)


def test_a_run_is_detached_private_and_told_nothing_secret(
    launcher: ProcessLauncher, handles: list[Handle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA", '{"password": "hunter2"}')
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "hunter2")
    monkeypatch.setenv("MZSHARE_CATALOG", "postgresql://u:hunter2@h/d")
    handle, facts = started(launcher, handles, tmp_path / "a")

    assert facts["pid"] == facts["sid"] == handle.pid
    assert facts["sid"] != os.getsid(0)
    assert facts["url"] == "postgresql+psycopg://u:hunter2@h/d", "the secret travels as the app's standard input"
    env = facts["env"]
    assert isinstance(env, dict)
    assert not [name for name in env if "AIRFLOW" in name]
    assert "hunter2" not in json.dumps([env, facts["argv"]])
    assert facts["cwd"] == str(tmp_path / "a")
    assert facts["stdin"] == "/dev/null"
    held = [path for path in (tmp_path / "a").iterdir() if path.name != "facts.json"]
    assert not [path for path in held if b"hunter2" in path.read_bytes()]
    assert process_identity(handle.pid) == (handle.pid, handle.started)


def test_no_open_file_of_the_caller_is_inherited(
    launcher: ProcessLauncher, handles: list[Handle], tmp_path: Path
) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        _, facts = started(launcher, handles, tmp_path / "a")
    finally:
        os.close(descriptor)
    assert facts["fds"] == ["0", "1", "2", "3"], "3 is the listing itself"


def test_a_run_outlives_the_process_that_started_it(app: Path, tmp_path: Path, handles: list[Handle]) -> None:
    folder = tmp_path / "a"
    script = (
        "import sys; from pathlib import Path\n"
        "from airflow_provider_mzshare.compute.jobs import AppJob\n"
        "from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher\n"
        "job = AppJob.model_validate_json(sys.stdin.read())\n"
        "handle = ProcessLauncher(Path(sys.argv[1])).start(job)\n"
        "print(handle.pid, handle.started, handle.machine)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(app)],
        input=job_in(folder).model_dump_json(), capture_output=True, text=True, check=True, start_new_session=True,
    )  # fmt: skip
    pid, begin, machine = done.stdout.split()
    handle = Handle(id_in(folder), folder, os.uname().nodename, int(pid), float(begin), machine)
    handles.append(handle)
    wait_until((folder / "facts.json").exists, 120, "the app to be ready")
    assert ProcessLauncher().status(handle) == "alive"
    assert ProcessLauncher().find(id_in(folder), folder) == handle
    (folder / "process.json").unlink()
    assert ProcessLauncher().find(id_in(folder), folder) == handle, "by its mark, when the note is missing"
    assert ProcessLauncher().find("ingest-none", folder) is None


def test_a_kill_takes_the_whole_session_other_process_groups_included(
    launcher: ProcessLauncher, handles: list[Handle], tmp_path: Path
) -> None:
    handle, facts = started(launcher, handles, tmp_path / "a", name="stubborn")
    helper = facts["helper"]
    assert isinstance(helper, int)
    assert facts["helper_group"] == helper != handle.pid
    launcher.request_stop(handle)
    assert launcher.status(handle) == "alive", "this app does not listen"

    assert launcher.kill(handle) >= 2
    assert launcher.status(handle) == "gone"
    assert not psutil.pid_exists(helper) or psutil.Process(helper).status() == psutil.STATUS_ZOMBIE
    assert launcher.kill(handle) == 0, "a second kill finds nothing"


@pytest.mark.parametrize("machine", ["another-boot/pid:[4026531836]", "the same boot/pid:[4026532999]"])
def test_a_pid_of_another_boot_or_another_container_says_nothing(
    launcher: ProcessLauncher, handles: list[Handle], tmp_path: Path, machine: str
) -> None:
    """Two containers may share a host's name, a home and a catalog: each must leave the other's app alone."""
    handle, _ = started(launcher, handles, tmp_path / "a")
    elsewhere = replace(handle, machine=machine)
    assert launcher.status(elsewhere) == "unknown"
    launcher.request_stop(elsewhere)
    assert launcher.kill(elsewhere) == 0
    assert launcher.status(handle) == launcher.status(replace(handle, machine=None)) == "alive"


def test_a_recycled_pid_is_never_signalled(launcher: ProcessLauncher, tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        pid, begin = process_identity(stranger.pid)
        older = Handle("ingest-a", tmp_path, os.uname().nodename, pid, begin - 60)
        assert launcher.status(older) == "gone"
        launcher.request_stop(older)
        assert launcher.kill(older) == 0
        # Even with the right start time a process without the run's mark is not ours to kill.
        assert launcher.kill(replace(older, started=begin)) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_ended_child_does_not_stay_a_zombie_of_a_long_running_caller(tmp_path: Path) -> None:
    script = tmp_path / "quick.py"
    script.write_text("print('done')")
    launcher = ProcessLauncher(script)
    handle = launcher.start(job_in(tmp_path / "a"))
    wait_until(lambda: launcher.status(handle) == "gone", 120, "the script to end")
    assert handle.pid is not None
    wait_until(lambda: not psutil.pid_exists(handle.pid or 0), 120, "the script to be reaped")


def test_whoever_is_killed_in_the_middle_of_a_start_no_secret_is_left_on_disk(
    handles: list[Handle], tmp_path: Path
) -> None:
    """An app that never gets to reading its job, as one that is killed before."""
    app = tmp_path / "app.py"
    app.write_text("import time; print('up', flush=True); time.sleep(600)", encoding="utf-8")
    handles.append(ProcessLauncher(app).start(job_in(tmp_path / "a")))
    wait_until(lambda: "up" in (tmp_path / "a" / "log").read_text(), 120, "the app's start")
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(held) >= 3
    assert not [path for path in held if b"hunter2" in path.read_bytes()]


def test_a_start_that_cannot_happen_leaves_no_secret_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(LaunchFailed, match="ingest-a"):
        ProcessLauncher(tmp_path / "app.py").start(job_in(tmp_path / "a"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_an_app_that_is_not_installed_is_one_clear_error() -> None:
    with pytest.raises(LaunchFailed, match=r"nothing\.py is not installed"):
        find_app("nothing")


def test_a_run_can_be_told_to_step_back(app: Path, handles: list[Handle], tmp_path: Path) -> None:
    handle, _ = started(ProcessLauncher(app, nice=5), handles, tmp_path / "a")
    assert psutil.Process(handle.pid).nice() == psutil.Process().nice() + 5
