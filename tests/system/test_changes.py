"""DAGs that load what has changed, run by Airflow itself: hours, deferral, cleared runs; the reference's too."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.embedded.process import LOOPBACK
from tests.support.filled import Filled
from tests.support.postgres import OWNER, Postgres
from tests.support.reading_page import examples
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
MAIN = """
if __name__ == "__main__":
    import sys

    forms = {"file": None, "postgres": {"table": "orders", "key": "id"}}
    dags = {"file": dag, "postgres": mzshare_changes_to_postgres()}
    for line in sys.stdin:
        name, at = line.split()
        run = dags[name].test(logical_date=datetime.fromisoformat(at), run_conf=forms[name])
        print(f"run ended: {run.state.value}", flush=True)
"""


class Orders:
    """A table whose ticks are at times past noon of one day."""

    def __init__(self, catalog: Catalog, home: Path) -> None:
        self._now = 0
        self._filled = Filled(catalog, home, clock=lambda: self._now)
        self._source = self._filled.source()
        self._filled.table(self._source, "orders", "id bigint, customer text, amount numeric(9,2)")

    def tick(self, minutes: int, *ids: int) -> None:
        self._now = int((NOON + timedelta(minutes=minutes)).timestamp() * 1000)
        self._filled.feed(self._source, [{"id": one, "customer": f"c{one % 2}", "amount": 1.5} for one in ids])


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    home = tmp_path / "home"
    home.mkdir()
    with Catalog(f"sqlite:///{home / 'catalog.db'}") as catalog:
        catalog.upgrade()
        yield Orders(catalog, home)


@pytest.fixture
def target(postgres: Postgres) -> Iterator[psycopg.Connection]:
    name = postgres.create_database()
    with postgres.connect(name) as connection:
        yield connection
    postgres.drop_database(name)


class Runs:
    """One process, which runs DAGs as ``airflow dags test`` does, for the hours that it is told."""

    def __init__(self, airflow_home: Path, folder: Path, postgres: int, database: str) -> None:
        file = folder / "dags" / "both.py"
        file.parent.mkdir()
        file.write_text(f"{_examples(folder / 'changes')}{MAIN}")
        server = {"conn_type": "postgres", "host": LOOPBACK, "port": postgres, "login": OWNER, "schema": database}
        env = {
            **os.environ,
            "AIRFLOW_HOME": str(airflow_home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(file.parent),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_POSTGRES_DEFAULT": json.dumps(server),
            "MZSHARE_HOME": str(folder / "home"),
        }
        self._output = folder / "output.txt"
        with self._output.open("w") as out:
            command = [sys.executable, str(file)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=env, text=True)
        self._ended = 0

    @property
    def text(self) -> str:
        return self._output.read_text()

    def begin(self, name: str, hour: int) -> None:
        """The run at this hour past noon; its interval is the hour before."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {(NOON + timedelta(hours=hour)).isoformat()}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._ended += 1
        wait_until(lambda: len(self._states()) == self._ended or self._is_over(), 240, "the run has ended")
        assert self._states()[self._ended - 1 :] == ["success"], self.text[-6000:]

    def run(self, name: str, hour: int) -> None:
        self.begin(name, hour)
        self.end()

    def kill(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()

    def _states(self) -> list[str]:
        return re.findall(r"^run ended: (\w+)$", self.text, re.MULTILINE)

    def _is_over(self) -> bool:
        return self._process.poll() is not None


def _examples(changes: Path) -> str:
    """The DAG that is shipped, and those of the reference, which writes its files elsewhere."""
    shipped = (ROOT / "dags" / "mzshare_changes_to_postgres.py").read_text()
    files, sums = examples("Loading what has changed", "airflow.md")
    assert "/srv/changes" in files
    mine = files.replace("/srv/changes", str(changes))
    return f"{shipped}{mine}\n{sums.replace('task = ', 'with dag: task = ')}"


@pytest.fixture
def runs(
    orders: Orders, airflow_database: Path, tmp_path: Path, postgres: Postgres, target: psycopg.Connection
) -> Iterator[Runs]:
    made = Runs(airflow_database.parent, tmp_path, postgres.port, target.info.dbname)
    yield made
    made.kill()


@pytest.mark.timeout(1200)
def test_hours_become_files_and_rows_in_postgres(
    runs: Runs, orders: Orders, target: psycopg.Connection, tmp_path: Path, airflow_database: Path
) -> None:
    for minutes, ids in ((-90, [1]), (-70, [2]), (-30, [3]), (-10, [4, 5]), (1, [6])):
        orders.tick(minutes, *ids)
    for hour in (-1, 0, 0):
        runs.run("file", hour)
    files = sorted((tmp_path / "changes").iterdir())
    assert [file.name for file in files] == ["20260301T100000.parquet", "20260301T110000.parquet"]
    first, second = (pq.read_table(file) for file in files)
    assert sorted(first["id"].to_pylist()) == [1, 2]
    assert set(first["mz_timestamp"].to_pylist()) == {int((NOON - timedelta(hours=1)).timestamp() * 1000) - 1}
    assert sorted(second["id"].to_pylist()) == [3, 4, 5], "also when the run was cleared"
    with closing(sqlite3.connect(airflow_database)) as metadata:
        kept = metadata.execute("SELECT value FROM xcom WHERE task_id = 'sums' AND key = 'return_value'").fetchall()
    told = {answer["start"]: answer for answer in (json.loads(value) for (value,) in kept)}
    assert [(told[at]["snapshot"], told[at]["result"]) for at in sorted(told)] == [
        (True, {"c0": "1.50", "c1": "1.50"}), (False, {"c0": "1.50", "c1": "3.00"})
    ]  # fmt: skip

    for hour in (-1, 0):
        runs.run("postgres", hour)
    runs.begin("postgres", 1)
    wait_until(lambda: "DEFERRED" in runs.text, 120, "the task is deferred")
    orders.tick(59, 7)
    orders.tick(61, 8)
    runs.end()
    found = target.execute("SELECT id, customer, amount::text FROM orders ORDER BY id").fetchall()
    assert found == [(one, f"c{one % 2}", "1.50") for one in range(1, 8)]
    loaded = target.execute("SELECT snapshot, inserted FROM mzshare_slices ORDER BY slice_end").fetchall()
    assert loaded == [(True, 2), (False, 3), (False, 2)]
