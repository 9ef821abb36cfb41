"""Tables of a Postgres that others write to all the time: at every tick that can be read they are what all transactions
before its end make, whatever is killed while snapshots are taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.client import MzShare, connect
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CommitRow, TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import find_table
from airflow_provider_mzshare.storage.crashpoints import SNAPSHOT_LABELS
from tests.support.postgres_truth import Rows, Truth, prepare, writing
from tests.support.upstream_postgres import CONNECTION, PUBLICATION, Database
from tests.support.waiting import wait_until

TABLES = ("a", "b")
SOURCE = (
    f"CREATE SOURCE shop FROM POSTGRES CONNECTION {CONNECTION} (PUBLICATION '{PUBLICATION}') "
    "WITH (TRIGGER INTERVAL '200ms', IDLE TICK INTERVAL '500ms')"
)


class Home:
    """A home folder as a user has it: commands in processes of their own, and Python."""

    def __init__(self, folder: Path, jars: Path, database: Database) -> None:
        self.folder, self.database = folder, database
        given = {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": database.server.port,
            "login": database.user,
            "schema": database.name,
        }
        connection = {f"AIRFLOW_CONN_{CONNECTION.upper()}": json.dumps(given)}
        self.env = {**os.environ, "MZSHARE_HOME": str(folder), "MZSHARE_JARS": str(jars), **connection}
        self.mz: MzShare = connect(home=folder)

    def command(self, *words: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("mzshare")), *words]
        ran = subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=240, check=False)
        assert not check or ran.returncode == 0, ran.stderr + self.logs()
        return ran

    def logs(self) -> str:
        return "\n\n".join(path.read_text()[-6_000:] for path in self.folder.glob("jobs/*/*/log"))

    def add(self, *names: str) -> None:
        """All in one transaction: they share one backfill."""
        made = "; ".join(f"CREATE TABLE {name} FROM SOURCE shop (REFERENCE public.{name})" for name in names)
        self.command("sql", f"BEGIN; {made}; COMMIT" if len(names) > 1 else made)

    def rows(self, name: str, time: int) -> Rows:
        found = self.mz.read(name, as_of=time).to_pylist()
        rows = {row["id"]: (row["n"], row["note"]) for row in found}
        assert len(rows) == len(found), f"{name} has a key twice at {time}"
        return rows

    def check(self, name: str, truth: Truth) -> int:
        """Every tick at whose time the table can be read. How many there were."""
        wrong = []
        ticks = self.readable(name)
        for time, upper in ticks:
            found, right = self.rows(name, time), truth.at(name, upper)
            if found != right:
                keys = [key for key in {*found, *right} if found.get(key) != right.get(key)]
                wrong.append((time, upper, len(found), len(right), sorted(keys)[:5]))
        assert not wrong, f"{name}: {len(wrong)} of {len(ticks)} ticks are wrong: {wrong[:3]}"
        return len(ticks)

    def readable(self, name: str) -> list[tuple[int, int]]:
        """Times, and where their ticks end; without those inside of a commit of several ticks."""
        with Catalog(f"sqlite:///{self.folder / 'catalog.db'}") as catalog, catalog.read() as session:
            table = find_table(session, ("public", name))
            ticks = session.execute(
                select(TickRow.mz_timestamp, TickRow.upper).where(
                    TickRow.source_id == table.source_id, TickRow.mz_timestamp.between(table.since, table.upper - 1)
                )
            ).all()
            groups = session.execute(
                select(CommitRow.first_timestamp, CommitRow.mz_timestamp).where(
                    CommitRow.collection_id.like(f"{table.id}-%"), CommitRow.first_timestamp < CommitRow.mz_timestamp
                )
            ).all()
        inside = [(first, last) for first, last in groups]
        return [
            (time, upper["lsn"]) for time, upper in ticks if not any(first <= time < last for first, last in inside)
        ]


@pytest.fixture
def home(tmp_path: Path, jars: Path, upstream: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    prepare(upstream, *TABLES)
    upstream.publish(*TABLES)
    made = Home(tmp_path / "home", jars, upstream)
    for name, value in made.env.items():
        if name.startswith("AIRFLOW_CONN_"):
            monkeypatch.setenv(name, value)
    try:
        made.command("sql", SOURCE)
        yield made
    finally:
        made.command("stop", "shop", check=False)
        made.mz.close()


def test_tables_are_exact_at_every_tick_while_others_write(home: Home) -> None:
    with writing(home.database, TABLES):
        home.command("start", "shop")
        home.add(*TABLES)
        for name in TABLES:
            home.mz.wait(name, timeout=180, start=True)
    for name in TABLES:
        home.mz.wait(name, until="caught-up", timeout=120)
    truth = Truth(home.database, TABLES)
    for name in TABLES:
        assert home.check(name, truth) > 3


@pytest.mark.parametrize("label", SNAPSHOT_LABELS)
def test_an_app_that_is_killed_while_it_takes_a_snapshot(home: Home, label: str) -> None:
    with writing(home.database, TABLES, seed=1):
        home.command("start", "shop")
        home.add(*TABLES)
        started = home.command("start", "shop", MZSHARE_CRASH=label)
        wait_until(lambda: home.died(), 120, f"the death at {label}: {started.stdout}")
        for name in TABLES:
            home.mz.wait(name, timeout=180, start=True)
    for name in TABLES:
        home.mz.wait(name, until="caught-up", timeout=120)
    truth = Truth(home.database, TABLES)
    for name in TABLES:
        assert home.check(name, truth) > 3
