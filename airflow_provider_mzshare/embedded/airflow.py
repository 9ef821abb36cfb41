"""A real Airflow on loopback for demos and tests: each of its parts a process that can be stopped by itself.

It imports nothing of airflow; it starts its programs and speaks to its REST interface.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports
from airflow_provider_mzshare.errors import ServerFailed

PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")
START_SECONDS = 180.0
ATTEMPTS = 4
_ENDED = frozenset({"success", "failed"})


class _NoAnswer(ServerFailed):
    """No answer, which says nothing about whether the call was carried out."""


class EmbeddedAirflow:
    """:param folder: its home: metadata, logs, passwords.
    :param dags: the folder of the DAGs.
    :param env: variables such as MZSHARE_HOME, connections and Airflow's settings; they win over its own. Its metadata
        is an SQLite file unless ``AIRFLOW__DATABASE__SQL_ALCHEMY_CONN`` says otherwise.
    """

    user = "admin"

    def __init__(self, folder: Path, *, dags: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder, self._dags = folder, dags
        self._api, worker_logs, trigger_logs = free_ports(3)
        self.password = secrets.token_urlsafe(9)
        self.env = {**os.environ, **self._settings(worker_logs, trigger_logs), **(env or {})}
        self._parts: dict[str, ServerProcess] = {}
        self._token = ""

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._api}"

    def _settings(self, worker_logs: int, trigger_logs: int) -> dict[str, str]:
        """Small enough for one machine: with more tasks at once, SQLite would be locked too long."""
        return {
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self._dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{self.user}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.folder / "passwords.json"),
            "AIRFLOW__API__HOST": LOOPBACK,
            "AIRFLOW__API__PORT": str(self._api),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONWARNINGS": "ignore",
        }

    # ── its life ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "passwords.json").write_text(json.dumps({self.user: self.password}))
        with ServerProcess(
            "airflow db migrate", self._program("db", "migrate"), log=self.folder / "migrate.log", env=self.env
        ) as migrating:
            _wait(lambda: not migrating.running, START_SECONDS, "airflow db migrate")
        for part in PARTS:
            self.start_part(part)
        self._parts["api-server"].wait_until(self.healthy, START_SECONDS)

    def start_part(self, part: str) -> None:
        log = self.folder / f"{part}.log"
        self._parts[part] = ServerProcess(f"airflow {part}", self._program(part), log=log, env=self.env)

    def kill_part(self, part: str) -> None:
        """Kill the part with all its children, as a crash would."""
        self._parts.pop(part).kill()

    def stop(self) -> None:
        for part in reversed(PARTS):
            if part in self._parts:
                self._parts.pop(part).stop()

    def __enter__(self) -> EmbeddedAirflow:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _program(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *arguments]

    def healthy(self) -> bool:
        try:
            found = self._call("GET", "/api/v2/monitor/health", token="")
        except ServerFailed:
            return False
        return all(found[part]["status"] == "healthy" for part in ("scheduler", "dag_processor", "triggerer"))

    # ── DAGs ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def wait_for_dag(self, dag_id: str, timeout: float = 120.0) -> None:
        """Wait until the DAG has been parsed, then unpause it."""
        _wait(lambda: self._has(dag_id), timeout, f"DAG {dag_id}")
        self.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})

    def _has(self, dag_id: str) -> bool:
        try:
            return bool(self.call("GET", f"/api/v2/dags/{dag_id}")["dag_id"] == dag_id)
        except ServerFailed:
            return False

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Start a run as the button in the UI does; return its id."""
        asked = {"logical_date": None, "conf": dict(conf or {})}
        return str(self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", asked)["dag_run_id"])

    def state(self, dag_id: str, run_id: str) -> str:
        return str(self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """The state of each task of a run."""
        found = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=100")
        return {task["task_id"]: task["state"] for task in found["task_instances"]}

    def wait(self, dag_id: str, run_id: str, timeout: float) -> str:
        """Wait until the run has ended; returns its final state."""
        _wait(lambda: self.state(dag_id, run_id) in _ENDED, timeout, f"run {run_id} of {dag_id}")
        return self.state(dag_id, run_id)

    # ── REST ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if not self._token:
            login = {"username": self.user, "password": self.password}
            self._token = self._call("POST", "/auth/token", login, token="")["access_token"]
        for attempt in range(ATTEMPTS):
            try:
                return self._call(method, path, body, token=self._token)
            except _NoAnswer:
                # Airflow's SQLite may be busy for a while. A GET changes nothing, so it can be repeated.
                if method != "GET" or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, token: str) -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url + path, data, headers, method=method), timeout=30) as answer:
                text = answer.read()
        except HTTPError as error:
            raise ServerFailed(f"airflow answered {error.code} to {method} {path}: {error.read()[:500]!r}") from error
        except (URLError, OSError) as error:
            raise _NoAnswer(f"airflow does not answer {method} {path}: {error}") from error
        return json.loads(text) if text else None


def _wait(ready: Callable[[], bool], timeout: float, what: str) -> None:
    deadline = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > deadline:
            raise ServerFailed(f"{what} was not there after {timeout:.0f} s")
        time.sleep(0.5)
