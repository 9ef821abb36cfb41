"""A server process in a session of its own, ended as a whole and never left behind; it knows no particular server."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from airflow_provider_mzshare.embedded import guard
from airflow_provider_mzshare.errors import ServerFailed

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on; all are held until all are known, so none comes twice."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def last_words(output: str) -> str:
    """Return what a server's output says about its failure, in one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"ERROR|FATAL|Exception", line)] or lines
    return " | ".join(line[:300] for line in telling[-3:])


def _alive(group: int) -> bool:
    """Whether a process of the group lives. Zombies do not count: in some containers nobody reaps them."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


class ServerProcess:
    """One command under a guard, with its output in a file.

    :param name: what messages call it.
    :param command: program and arguments.
    :param log: file that takes stdout and stderr (appended).
    :param ending: signal that asks for an orderly end.
    :param user: account to run as (root only); the present one when empty.
    :param env: the whole environment; the present one when None.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ending: signal.Signals = signal.SIGTERM,
        user: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.log, self._ending = name, log, ending
        guarded = [sys.executable, "-I", "-S", guard.__file__, str(int(ending)), user or "-", *command]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                guarded, stdin=subprocess.PIPE, stdout=output, stderr=output, env=env, start_new_session=True
            )

    @property
    def group(self) -> int:
        """Process group and session id: the guard's pid."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], timeout: float) -> None:
        """Return when ``ready()`` is true; raise ServerFailed when the process ends or the time is up."""
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running:
                raise ServerFailed(f"{self.name} ended at its start with code {self._process.returncode}: {self.words}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} was not ready within {timeout:.0f} s: {self.words}")
            time.sleep(0.05)

    @property
    def words(self) -> str:
        """The end of its output, for an error message."""
        return last_words(self.log.read_text(encoding="utf-8", errors="replace")) or f"nothing in {self.log}"

    def stop(self, timeout: float = 20.0) -> None:
        """Ask for an orderly end, then kill; returns when nothing of the group is left. May be called again."""
        if self.running:
            self._signal(self._ending)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """End the whole group at once, and return when it is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        deadline = time.monotonic() + 10
        while self._signal(0) and _alive(self.group):
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"{self.name}: process group {self.group} does not end", hint=f"kill -9 -{self.group}"
                )
            time.sleep(0.01)

    def _signal(self, number: int) -> bool:
        try:
            os.killpg(self.group, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
