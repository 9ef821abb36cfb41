"""Slices of changes under a running Airflow whose parts are killed: each is loaded once, and the hold goes along."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import psycopg
import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.hold_rows import list_holds
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.process import LOOPBACK
from tests.support.postgres import BLOCK, OWNER, Postgres
from tests.support.waiting import wait_until
from tests.system.test_changes import NOON, ROOT, Orders

DAG = """

from airflow.sdk import DAG

form = {"table": "orders", "target": None, "key": "id", "postgres_conn_id": "target", "start": 0, "end": 0}
with DAG("slices", params=form):
    ReadChangesOperator(
        task_id="load", table="orders", start="{{ params.start }}", end="{{ params.end }}", process=load, hold=True,
        retries=5, retry_delay=timedelta(seconds=1),
    )
"""
"""The shipped DAG's load, for slices that are asked for."""
PARTS = ("scheduler", "triggerer", "dag-processor")
LOADING = """
SELECT client_port FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"""


def at(minutes: int) -> int:
    return int((NOON + timedelta(minutes=minutes)).timestamp() * 1000)


class Slices:
    """A table whose hours are loaded into Postgres by an Airflow."""

    def __init__(self, orders: Orders, catalog: Catalog, airflow: EmbeddedAirflow, target: psycopg.Connection) -> None:
        self.orders, self.airflow, self.target = orders, airflow, target
        self._catalog = catalog

    def begin(self, hour: int) -> str:
        """The slice of an hour past noon."""
        return self.airflow.trigger("slices", {"start": at(60 * hour), "end": at(60 * (hour + 1))})

    def wait_deferred(self, run: str) -> None:
        wait_until(lambda: self.airflow.tasks("slices", run) == {"load": "deferred"}, 180, "it is deferred", every=1)

    def check(self, run: str, *ids: int) -> None:
        """The run succeeds, and the target has these rows."""
        state = self.airflow.wait("slices", run, 400)
        assert state == "success", self.airflow.tasks("slices", run)
        found = self.target.execute("SELECT id FROM orders ORDER BY id").fetchall()
        assert [one for (one,) in found] == list(ids)

    def held_at(self) -> int:
        with self._catalog.read() as session:
            (hold,) = list_holds(session)
        assert hold.dropped_at is None
        return hold.at

    def worker(self) -> psutil.Process | None:
        """Whose task is loading, and waits in the middle."""
        found = self.target.execute(LOADING).fetchone()
        ports = {} if found is None else {one.laddr.port: one.pid for one in psutil.net_connections("tcp") if one.laddr}
        pid = ports.get(found[0]) if found else None
        return psutil.Process(pid).parent() if pid else None


@pytest.fixture
def slices(tmp_path: Path, postgres: Postgres) -> Iterator[Slices]:
    home, dags = tmp_path / "home", tmp_path / "dags"
    home.mkdir()
    dags.mkdir()
    shipped = (ROOT / "dags" / "mzshare_changes_to_postgres.py").read_text()
    (dags / "slices.py").write_text(shipped + DAG)
    database = postgres.create_database()
    server = {"conn_type": "postgres", "host": LOOPBACK, "port": postgres.port, "login": OWNER, "schema": database}
    env = {**os.environ, "MZSHARE_HOME": str(home), "AIRFLOW_CONN_TARGET": json.dumps(server)}
    with Catalog(f"sqlite:///{home / 'catalog.db'}") as catalog, postgres.connect(database) as target:
        catalog.upgrade()
        orders = Orders(catalog, home)
        with EmbeddedAirflow(tmp_path / "airflow", dags=dags, env=env) as airflow:
            airflow.wait_for_dag("slices", 180)
            yield Slices(orders, catalog, airflow, target)
    postgres.drop_database(database)


@pytest.mark.full(seconds=240)
@pytest.mark.timeout(1800)
def test_slices_are_loaded_once_whatever_is_killed(slices: Slices) -> None:
    slices.orders.tick(-10, 1, 2)
    slices.orders.tick(61, 3)
    slices.check(slices.begin(0), 1, 2)
    assert slices.held_at() == at(60) - 1

    # All of Airflow but its REST interface, while the task is deferred; the slice becomes final meanwhile.
    run = slices.begin(1)
    slices.wait_deferred(run)
    for part in PARTS:
        slices.airflow.kill_part(part)
    slices.orders.tick(110, 4)
    slices.orders.tick(130, 5)
    for part in PARTS:
        slices.airflow.start_part(part)
    slices.check(run, 1, 2, 3, 4)
    assert slices.held_at() == at(120) - 1

    # The worker, after the deferral and in the middle of the load; scheduler and triggerer go on.
    slices.target.execute(BLOCK.encode())
    slices.target.execute("SELECT pg_advisory_lock(7)")
    run = slices.begin(2)
    slices.wait_deferred(run)
    slices.orders.tick(190, 6)
    worker = wait_until(slices.worker, 180, "the task loads, and waits in the middle", every=0.5)
    for process in (worker, *worker.children(recursive=True)):
        process.send_signal(signal.SIGKILL)
    slices.target.execute("SELECT pg_advisory_unlock(7)")
    slices.check(run, 1, 2, 3, 4, 5)
    assert slices.held_at() == at(180) - 1
    found = slices.target.execute(
        "SELECT snapshot, inserted, deleted FROM mzshare_slices ORDER BY slice_end"
    ).fetchall()
    assert found == [(True, 2, 0), (False, 2, 0), (False, 1, 0)]
