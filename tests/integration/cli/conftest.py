"""The command line as a user has it: a home of its own, a connection to the real broker."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from airflow_provider_mzshare.cli.main import run
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.catalog import new_sqlite
from tests.support.kafka import Record, create_topic, produce
from tests.support.statements import Session

ROOT = Path(__file__).parents[3]


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, object]]:
        return json.loads(self.out)


@dataclass
class Cli:
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Answer:
        """Run it in this process, with nothing of this process's environment: a new one takes a second to start."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {**self.environment, **(env or {})}, clear=True),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(argv)
        return Answer(code, out.getvalue(), err.getvalue())

    def command(self, *argv: str) -> list[str]:
        """For a process of its own."""
        return [sys.executable, "-m", "airflow_provider_mzshare.cli.main", *argv]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "MZSHARE_JARS") if name in os.environ}
        return {**kept, "PYTHONPATH": str(ROOT), "MZSHARE_HOME": str(self.home), **self.env}

    def ok(self, *argv: str, stdin: str = "") -> Answer:
        answer = self(*argv, stdin=stdin)
        assert answer.code == 0, answer.err
        return answer

    def error(self, *argv: str) -> str:
        """The one line of a command that fails with 1."""
        answer = self(*argv)
        assert answer.code == 1, answer.out
        (line,) = answer.err.splitlines()
        return line


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "home")


@pytest.fixture
def broker_cli(cli: Cli, kafka: EmbeddedKafka) -> Cli:
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    cli.env["AIRFLOW_CONN_BROKER"] = json.dumps(connection)
    return cli


@pytest.fixture
def sql(tmp_path: Path, kafka: EmbeddedKafka) -> Iterator[Session]:
    session = Session(new_sqlite(tmp_path / "catalog.db"), kafka)
    yield session
    session.catalog.close()


@pytest.fixture
def sql_on_both(catalog_url: str, kafka: EmbeddedKafka) -> Iterator[Session]:
    session = Session(catalog_url, kafka)
    yield session
    session.catalog.close()


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = create_topic(kafka, 2)
    produce(kafka, name, [Record(b'{"a": 1}', partition=number % 2) for number in range(10)])
    return name
