"""Deferred sensors and an asset watcher through a real Airflow, whose triggerer dies in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.process import LOOPBACK
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log
from tests.support.postgres import OWNER, Postgres
from tests.support.waiting import wait_until

SENSORS = 50
DAGS = f"""
from airflow.sdk import DAG, Asset, AssetWatcher, task
from airflow_provider_mzshare.sensors.offsets import OffsetsConvergedSensor
from airflow_provider_mzshare.triggers.tables import TableUpdatedTrigger

with DAG("waits"):
    for number in range({SENSORS}):
        OffsetsConvergedSensor(
            task_id=f"wait_{{number}}", table=f"late_{{number % 10}}", mzshare_conn_id="mz", timeout=1800
        )

trigger = TableUpdatedTrigger("s_first", every_ticks=1, mzshare_conn_id="mz", poll_interval=1.0)
ticks = Asset("ticks_of_s_first", watchers=[AssetWatcher(name="ticks", trigger=trigger)])

with DAG("follows", schedule=[ticks]):

    @task
    def follow():
        pass

    follow()
"""
TABLES = [f"late_{number}" for number in range(10)]


@pytest.fixture
def catalog(postgres: Postgres) -> Iterator[Catalog]:
    name = postgres.create_database()
    with Catalog(postgres.url(name)) as created:
        created.upgrade()
        yield created
    postgres.drop_database(name)


@pytest.fixture
def late(catalog: Catalog) -> tuple[Log, list[ItemId]]:
    """Return a source's log and the tables that came late; all that is there before Airflow first looks."""
    return add_late_tables(catalog, *TABLES)


class Metadata:
    """Airflow's own database, which knows more than its REST interface tells."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres, self.name = postgres, postgres.create_database()
        self.url = postgres.url(self.name)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._postgres.connect(self.name) as connection:
            return list(connection.execute(query.encode()).fetchall())

    def states(self, dag: str) -> dict[str, int]:
        """How many task instances of a DAG are in each state."""
        query = f"SELECT coalesce(state, 'none'), count(*) FROM task_instance WHERE dag_id = '{dag}' GROUP BY 1"
        return dict(self.ask(query))


@pytest.fixture
def metadata(postgres: Postgres) -> Iterator[Metadata]:
    created = Metadata(postgres)
    yield created
    postgres.drop_database(created.name)


@pytest.fixture
def airflow(
    postgres: Postgres, catalog: Catalog, late: object, metadata: Metadata, tmp_path: Path
) -> Iterator[EmbeddedAirflow]:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "waits.py").write_text(DAGS)
    database = catalog.url.rpartition("/")[2]
    env = {
        "AIRFLOW_CONN_MZ": f"mzshare://{OWNER}@{LOOPBACK}:{postgres.port}/{database}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.url,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": metadata.url,
        "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "1000",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # How soon the triggers of one that died are taken over.
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
    }
    with EmbeddedAirflow(tmp_path / "airflow", dags=dags, env=env) as started:
        yield started


@pytest.mark.full(seconds=120)
@pytest.mark.timeout(1800)
def test_deferred_sensors_survive_the_death_of_their_triggerer(
    airflow: EmbeddedAirflow, metadata: Metadata, catalog: Catalog, late: tuple[Log, list[ItemId]]
) -> None:
    log, tables = late
    backfill = Backfilling(catalog, log.source_id)
    for dag in ("waits", "follows"):
        airflow.wait_for_dag(dag, 180)
    airflow.trigger("waits")
    wait_until(lambda: metadata.states("waits") == {"deferred": SENSORS}, 900, "all sensors are deferred", every=1)
    wait_until(lambda: metadata.states("follows") == {"success": 1}, 300, "a first update is told", every=1)
    first = _triggerer(metadata)

    airflow.kill_part("triggerer")
    airflow.start_part("triggerer")
    wait_until(lambda: _triggerer(metadata) - first, 300, "another triggerer has taken over", every=1)
    backfill.follow()
    wait_until(lambda: _statuses(catalog) == {"converging"}, 300, "the triggers have armed the tables", every=1)
    tick = log.tick()

    wait_until(lambda: metadata.states("waits") == {"success": SENSORS}, 900, "all sensors have succeeded", every=1)
    told = [json.loads(str(value)) if isinstance(value, str) else value for [value] in metadata.ask(RESULTS)]
    assert len(told) == SENSORS
    assert {one["table_id"] for one in told} == set(tables)
    assert {(one["backfill_id"], one["tick"]) for one in told} == {(backfill.id, tick.number)}
    wait_until(lambda: metadata.states("follows") == {"success": 2}, 300, "a run for each update", every=1)
    updates = [extra["payload"] for [extra] in metadata.ask("SELECT extra FROM asset_event ORDER BY id")]
    assert [(update["table"], update["tick"]) for update in updates] == [("s_first", 3), ("s_first", 4)], (
        "what was told before the restart is not told again"
    )


RESULTS = "SELECT value FROM xcom WHERE key = 'return_value' AND dag_id = 'waits'"


def _triggerer(metadata: Metadata) -> set[object]:
    """The job that holds all triggers; none while some are without one."""
    holders = {holder for [holder] in metadata.ask("SELECT triggerer_id FROM trigger")}
    return set() if None in holders else holders


def _statuses(catalog: Catalog) -> set[str]:
    with catalog.read() as session:
        return {found.status for found in convergences(session, [("public", name) for name in TABLES]).values()}
