"""Runs an app as a detached process of this machine: no shell, nothing secret in its arguments or environment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from airflow_provider_mzshare.compute.jobs import APP_KINDS, LOG_FILE, STANDARD_INPUT, AppJob, open_job
from airflow_provider_mzshare.compute.launchers.apps import find_app
from airflow_provider_mzshare.compute.launchers.base import Handle, Liveness
from airflow_provider_mzshare.compute.launchers.environment import JOB_MARK, app_environment
from airflow_provider_mzshare.compute.launchers.log_file import read_lines
from airflow_provider_mzshare.compute.machine import machine_identity
from airflow_provider_mzshare.errors import LaunchFailed
from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.settings import Settings

_NOTE = "process.json"
_NOTED = ("host", "machine", "pid", "started")
_SAME_START_SECONDS = 2.0
"""How far two start times may differ: they are computed from the boot time, which moves when the clock is set."""
_POLL_SECONDS = 0.2
_KILL_SECONDS = 10.0
"""How long ``kill`` tries: new processes may appear, and one that hangs in the kernel dies only later."""

BACKFILL_NICE = 19
"""The priority of a backfill: it only uses CPU time that live tables do not need."""

_children: list[subprocess.Popen[bytes]] = []
"""Children of this process that are not known to have ended. They are kept, so that their exit codes can be read."""


def process_identity(pid: int | None = None) -> tuple[int, float]:
    """Pid and start time of a process (this one by default), as an app notes them for its job."""
    process = psutil.Process(pid)
    return process.pid, process.create_time()


class ProcessLauncher:
    """:param app: the Python file to run; by default the app of the job's kind.
    :param nice: how far to step back behind other processes (0 to 19); a backfill steps back all the way.
    """

    def __init__(self, app: Path | None = None, *, nice: int = 0) -> None:
        self._app, self._nice = app, nice

    @classmethod
    def from_settings(cls, settings: Settings, app: Path | None = None) -> ProcessLauncher:
        """Master, umask and folders are the job's to say."""
        return cls(app)

    def start(self, job: AppJob) -> Handle:
        app = self._app or find_app(job.kind)
        try:
            child = self._run(app, job)
        except OSError as error:
            raise LaunchFailed(f"job {job.job_id} could not be started: {error}") from error
        _children.append(child)
        handle = self._describe(job, child.pid)
        # On a full disk this file is missing: then the run is found by its mark.
        with contextlib.suppress(OSError):
            _note(handle)
        return handle

    def _run(self, app: Path, job: AppJob) -> subprocess.Popen[bytes]:
        """The job, with its secrets, is the app's standard input: whoever is killed here, nothing of it is left."""
        make_folder(job.folder, job.umask)
        job.folder.chmod(0o700)
        log = os.open(job.folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(log, "ab") as output, open(open_job(job), "rb") as told:
            return subprocess.Popen(
                [sys.executable, str(app), STANDARD_INPUT],
                cwd=job.folder,
                env=app_environment(os.environ, job.job_id),
                stdin=told,
                stdout=output,
                stderr=subprocess.STDOUT,
                close_fds=True,
                start_new_session=True,
                umask=job.umask,
            )

    def _describe(self, job: AppJob, pid: int) -> Handle:
        started: float | None = None
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            started = process.create_time()
            step = BACKFILL_NICE if job.kind == "backfill" else self._nice
            if step:
                process.nice(min(19, process.nice() + step))
        return _here(job.job_id, job.folder, pid, started)

    def find(self, job_id: str, folder: Path) -> Handle | None:
        """A run on this machine: from the recorded start, or by its mark alone if that is missing."""
        if (noted := _noted(job_id, folder)) is not None:
            return noted
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == process.pid and process.environ().get(JOB_MARK) == job_id:
                    return _here(job_id, folder, process.pid, process.create_time())
        return None

    def status(self, handle: Handle) -> Liveness:
        if not _is_here(handle):
            return "unknown"
        _reap()
        return "alive" if self._driver(handle) else "gone"

    def request_stop(self, handle: Handle) -> None:
        """TERM to the driver only: its children would otherwise end before it has finished its tick."""
        if driver := self._driver(handle):
            with contextlib.suppress(psutil.NoSuchProcess):
                driver.send_signal(signal.SIGTERM)

    def kill(self, handle: Handle) -> int:
        """KILL by session: Spark's Python daemons have their own process groups, but share the driver's session."""
        killed, deadline = 0, time.monotonic() + _KILL_SECONDS
        while (victims := self._session(handle)) and time.monotonic() < deadline:
            for victim in victims:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
                    killed += 1
            _reap()
            psutil.wait_procs(victims, timeout=_POLL_SECONDS)
        return killed

    def logs(
        self, handle: Handle, *, tail: int | None = None, follow: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        return read_lines(handle.folder / LOG_FILE, tail=tail, follow=follow)

    def probe(self) -> str:
        for kind in APP_KINDS:
            find_app(kind)
        return f"apps run on {socket.gethostname()}, with {sys.executable}"

    def _driver(self, handle: Handle) -> psutil.Process | None:
        """The run's own process, never another one that was given the same pid later."""
        if handle.pid is None or handle.started is None or not _is_here(handle):
            return None
        try:
            process = psutil.Process(handle.pid)
            if abs(process.create_time() - handle.started) > _SAME_START_SECONDS:
                return None
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def _session(self, handle: Handle) -> list[psutil.Process]:
        """What lives in the run's session and carries its mark; a session number alone may be somebody else's."""
        if handle.pid is None or not _is_here(handle):
            return []
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if (
                    os.getsid(process.pid) == handle.pid
                    and process.status() != psutil.STATUS_ZOMBIE
                    and process.environ().get(JOB_MARK) == handle.job_id
                ):
                    found.append(process)
        return found


def _here(job_id: str, folder: Path, pid: int, started: float | None) -> Handle:
    return Handle(job_id, folder, socket.gethostname(), pid, started, machine_identity())


def _is_here(handle: Handle) -> bool:
    """Whether the run's pid is valid here. After a restart of the machine it is not, whichever process has it now."""
    return handle.host == socket.gethostname() and handle.machine in (None, machine_identity())


def _reap() -> None:
    """An ended child stays a zombie until somebody asks for its exit code."""
    _children[:] = [child for child in _children if child.poll() is None]


def _note(handle: Handle) -> None:
    """So an app that died before it could record its pid is known to have died."""
    note = {"job": handle.job_id, **{name: getattr(handle, name) for name in _NOTED}}
    unfinished = handle.folder / f"{_NOTE}.new"
    unfinished.write_text(json.dumps(note), encoding="utf-8")
    unfinished.rename(handle.folder / _NOTE)


def _noted(job_id: str, folder: Path) -> Handle | None:
    try:
        note = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        if note.pop("job") != job_id:
            return None
        return Handle(job_id, folder, **{name: note.get(name) for name in _NOTED})
    except (OSError, ValueError, KeyError):
        return None
