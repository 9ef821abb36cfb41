"""A Postgres as a user has it, with commands and apps of their own: what is committed there is in the tables, each
transaction whole, wherever the app is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.client import connect
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.objects.lookup import find_source
from airflow_provider_mzshare.storage.crashpoints import LABELS, RECORDER_LABELS
from tests.support.postgres_stack import SOURCE, PostgresStack
from tests.support.postgres_truth import Truth, prepare, writing
from tests.support.upstream_postgres import CONNECTION, Database
from tests.support.waiting import wait_until

TABLES = ("a", "b")
SMALL = "segment_flushed"


class Home(PostgresStack):
    """The same questions to a home whose apps are processes."""

    def __init__(self, folder: Path, jars: Path, database: Database) -> None:
        self.folder, self.database = folder, database
        self.env = {**os.environ, "MZSHARE_HOME": str(folder), "MZSHARE_JARS": str(jars)}
        self.command("sql", SOURCE)
        self.mz = connect(home=folder)
        self.catalog = Catalog(f"sqlite:///{folder / 'catalog.db'}")
        with self.catalog.read() as session:
            self.source = find_source(session, ("public", "shop")).id

    def close(self) -> None:
        self.command("stop", "shop", check=False)
        super().close()

    def command(self, *words: str, check: bool = True, **env: str) -> None:
        command = [str(Path(sys.executable).with_name("mzshare")), *words]
        ran = subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=240, check=False)
        assert not check or ran.returncode == 0, ran.stderr + self.logs()

    def logs(self) -> str:
        return "\n\n".join(path.read_text()[-4_000:] for path in self.folder.glob("jobs/*/*/log"))

    def died(self) -> bool:
        return self.mz.status("shop").sources[0].health in ("lost", "failed", "stopped")


@pytest.fixture
def home(tmp_path: Path, jars: Path, upstream: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    prepare(upstream, *TABLES, rows=0)
    upstream.publish(*TABLES)
    server = {"host": "127.0.0.1", "port": upstream.server.port}
    given = {"conn_type": "postgres", "login": upstream.user, "schema": upstream.name, **server}
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(given))
    monkeypatch.setenv("MZSHARE_JARS", str(jars))
    made = Home(tmp_path / "home", jars, upstream)
    yield made
    made.close()


def check(home: Home) -> None:
    home.wait_for_all()
    for name in TABLES:
        home.mz.wait(name, until="caught-up", timeout=120)
    truth = Truth(home.database, TABLES)
    for name in TABLES:
        assert home.check(name, truth) > 3
        upstream = {key: (n, note) for key, n, note in home.database.rows(f"SELECT id, n, note FROM {name}")}
        assert {row["id"]: (row["n"], row["note"]) for row in home.mz.read(name).to_pylist()} == upstream


def killed_at(home: Home, label: str) -> None:
    """While others write, the ingestion app passes this label for the third time; then it is started again.

    Nobody writes while apps start: that takes long where all of them share few cores.
    """
    home.add(*TABLES)
    with writing(home.database, TABLES, writers=1):
        home.command("start", "shop", MZSHARE_CRASH=f"{label}@3")
        wait_until(home.died, 180, f"the death at {label}")
    home.command("start", "shop")
    for name in TABLES:
        home.mz.wait(name, timeout=400, start=True)
    with writing(home.database, TABLES, seed=1):
        before = home.state(TABLES[0]).next_tick
        wait_until(lambda: home.state(TABLES[0]).next_tick > before + 5, 60, "more ticks")
    check(home)


@pytest.mark.timeout(900)
def test_an_app_that_is_killed_while_it_records_goes_on(home: Home) -> None:
    killed_at(home, SMALL)


@pytest.mark.timeout(900)
@pytest.mark.full(seconds=1_500)
@pytest.mark.parametrize("label", [label for label in (*RECORDER_LABELS, *LABELS) if label != SMALL])
def test_an_app_goes_on_from_every_label(home: Home, label: str) -> None:
    killed_at(home, label)
