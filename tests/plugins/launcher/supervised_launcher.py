"""A launcher as another package would bring it: each app under a shell of its own, known by a pid file.

Nobody but the shell sees the app end. It stands in this tree to show that a launcher needs no change of the package.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from airflow_provider_mzshare.compute.jobs import LOG_FILE, STANDARD_INPUT, AppJob, open_job
from airflow_provider_mzshare.compute.launchers.apps import find_app
from airflow_provider_mzshare.compute.launchers.base import Handle, Liveness
from airflow_provider_mzshare.compute.launchers.environment import JOB_MARK, app_environment
from airflow_provider_mzshare.compute.launchers.log_file import read_lines
from airflow_provider_mzshare.errors import LaunchFailed
from airflow_provider_mzshare.folders import make_folder
from airflow_provider_mzshare.settings import Settings

PID_FILE, EXIT_FILE = "app.pid", "app.exit"
SUPERVISE = """
host=$1; shift
exec 3<&0 0</dev/null
"$@" <&3 3<&- &
exec 3<&-
echo "$host $!" > app.pid.new && mv app.pid.new app.pid
wait $!
echo $? > app.exit
"""
SECONDS = 10.0


class SupervisedLauncher:
    def __init__(self, app: Path | None) -> None:
        self._app = app

    @classmethod
    def from_settings(cls, settings: Settings, app: Path | None = None) -> SupervisedLauncher:
        return cls(app)

    def start(self, job: AppJob) -> Handle:
        app = self._app or find_app(job.kind)
        make_folder(job.folder, job.umask)
        shell = ["setsid", "--fork", "sh", "-c", SUPERVISE, "sh", socket.gethostname()]
        try:
            with (job.folder / LOG_FILE).open("ab") as output, open(open_job(job), "rb") as told:
                subprocess.run(
                    [*shell, sys.executable, str(app), STANDARD_INPUT],
                    cwd=job.folder, env=app_environment(os.environ, job.job_id), umask=job.umask,
                    stdin=told, stdout=output, stderr=subprocess.STDOUT, check=True,
                )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            raise LaunchFailed(f"job {job.job_id} could not be started: {error}") from error
        deadline = time.monotonic() + SECONDS
        while (handle := self.find(job.job_id, job.folder)) is None:
            if time.monotonic() > deadline:
                raise LaunchFailed(f"job {job.job_id} was not seen to start")
            time.sleep(0.01)
        return handle

    def find(self, job_id: str, folder: Path) -> Handle | None:
        try:
            host, pid = (folder / PID_FILE).read_text().split()
        except (OSError, ValueError):
            return None
        started = None
        with contextlib.suppress(psutil.Error):
            started = psutil.Process(int(pid)).create_time()
        return Handle(job_id, folder, host, int(pid), started)

    def status(self, handle: Handle) -> Liveness:
        if handle.host != socket.gethostname():
            return "unknown"
        return "alive" if self._app_of(handle) else "gone"

    def request_stop(self, handle: Handle) -> None:
        if (app := self._app_of(handle)) is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                app.send_signal(signal.SIGTERM)

    def kill(self, handle: Handle) -> int:
        """Whatever carries the job's mark: the app, what it started, and the shell above it."""
        killed, deadline = 0, time.monotonic() + SECONDS
        while (found := self._marked(handle)) and time.monotonic() < deadline:
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed += 1
            psutil.wait_procs(found, timeout=0.2)
        return killed

    def logs(
        self, handle: Handle, *, tail: int | None = None, follow: Callable[[], bool] | None = None
    ) -> Iterator[str]:
        return read_lines(handle.folder / LOG_FILE, tail=tail, follow=follow)

    def probe(self) -> str:
        return f"shells supervise apps on {socket.gethostname()}"

    def _app_of(self, handle: Handle) -> psutil.Process | None:
        """The mark tells it from another process that was given its pid later."""
        return next((one for one in self._marked(handle) if one.pid == handle.pid), None)

    def _marked(self, handle: Handle) -> list[psutil.Process]:
        found = []
        if handle.host == socket.gethostname():
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error, OSError):
                    is_ours = process.environ().get(JOB_MARK) == handle.job_id
                    if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process)
        return found
