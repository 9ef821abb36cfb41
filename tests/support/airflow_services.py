"""A whole Airflow as processes: API server, scheduler, DAG processor and triggerer, on free ports and a Postgres."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg

from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports
from tests.support.postgres import OWNER, Postgres

PARALLELISM = 4


class AirflowServices:
    """Started on entry, all gone on exit. ``kill`` and ``start`` are for the middle.

    :param variables: what the services find in their environment beside Airflow's own settings.
    """

    def __init__(self, folder: Path, postgres: Postgres, dags: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._postgres = folder, postgres
        self.database = postgres.create_database()
        self._api_port, *logs = free_ports(3)
        self._env = {
            **os.environ,
            **_settings(folder, dags, postgres.url(self.database), self._api_port, logs),
            **variables,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        self._services: dict[str, ServerProcess] = {}
        self._cleanup = ExitStack()

    def __enter__(self) -> AirflowServices:
        self._cleanup.callback(self._postgres.drop_database, self.database)
        try:
            self.run("db", "migrate")
            for name in ("api-server", "dag-processor", "scheduler", "triggerer"):
                self.start(name)
            self._services["api-server"].wait_until(self._answers, 120)
        except BaseException:
            self._cleanup.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def start(self, name: str) -> None:
        service = ServerProcess(name, ["airflow", name], log=self._folder / f"{name}.log", env=self._env)
        self._services[name] = service
        self._cleanup.callback(service.stop)

    def kill(self, name: str) -> None:
        """At once, with all its children: no farewell to the database."""
        self._services[name].kill()

    def run(self, *words: str) -> str:
        ran = subprocess.run(
            ["airflow", *words], env=self._env, capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The metadata database knows more than the commands tell."""
        with psycopg.connect(host=LOOPBACK, port=self._postgres.port, user=OWNER, dbname=self.database) as connection:
            return list(connection.execute(query.encode()).fetchall())

    def states(self, dag: str) -> dict[str, int]:
        """How many task instances of a DAG are in each state."""
        found = self.ask(
            f"SELECT coalesce(state, 'none'), count(*) FROM task_instance WHERE dag_id = '{dag}' GROUP BY 1"
        )
        return dict(found)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._api_port}/api/v2/version", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _settings(home: Path, dags: Path, url: str, api_port: int, log_ports: list[int]) -> dict[str, str]:
    settings = {
        "CORE": {
            "DAGS_FOLDER": str(dags),
            "LOAD_EXAMPLES": "False",
            "EXECUTOR": "LocalExecutor",
            "PARALLELISM": str(PARALLELISM),
            "MAX_ACTIVE_TASKS_PER_DAG": "1000",
            "DAGS_ARE_PAUSED_AT_CREATION": "False",
            "EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{api_port}/execution/",
        },
        "DATABASE": {"SQL_ALCHEMY_CONN": url, "SQL_ALCHEMY_CONN_ASYNC": url},
        "API": {"HOST": LOOPBACK, "PORT": str(api_port), "WORKERS": "1", "SECRET_KEY": secrets.token_hex(16)},
        "API_AUTH": {"JWT_SECRET": secrets.token_hex(32)},
        "LOGGING": {"WORKER_LOG_SERVER_PORT": str(log_ports[0]), "TRIGGER_LOG_SERVER_PORT": str(log_ports[1])},
        # How soon the triggers of one that died are taken over.
        "TRIGGERER": {"JOB_HEARTBEAT_SEC": "1", "TRIGGERER_HEALTH_CHECK_THRESHOLD": "5"},
    }
    named = {f"AIRFLOW__{part}__{key}": value for part, keys in settings.items() for key, value in keys.items()}
    return {"AIRFLOW_HOME": str(home), **named}
