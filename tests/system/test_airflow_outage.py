"""A table is added through Airflow, whose parts all die in the middle: apps go on, and so does the run afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.control.catalog.queries.certificates import certificates
from airflow_provider_mzshare.demo.producer import Writer
from tests.support.airflow_scene import DAGS, QUICKSTART, SOURCE, TOPIC, Scene, scene
from tests.support.kafka import groups
from tests.support.stack import Table
from tests.support.waiting import wait_until

HISTORY, PER_SECOND, OUTAGE_SECONDS = 20_000, 100, 60.0
NEW = "shop_amounts"
TABLES = (*QUICKSTART, Table(NEW, (("amount", "double"),), include=("partition", "offset")))
ADD, WAIT = "mzshare_add_table", "wait_for_the_same"
CONVERGE = "add_table.converge_1"
SECOND = f"""
from airflow.sdk import DAG
from airflow_provider_mzshare.sensors.offsets import OffsetsConvergedSensor

with DAG("{WAIT}"):
    OffsetsConvergedSensor(task_id="wait", table="{NEW}", timeout=1800)
"""


@pytest.fixture
def airflow(jars: Path, tmp_path: Path) -> Iterator[Scene]:
    dags = tmp_path / "dags"
    shutil.copytree(DAGS, dags)
    (dags / "second.py").write_text(SECOND)
    with scene(tmp_path, jars, dags) as made:
        yield made


@pytest.mark.full(seconds=200)
@pytest.mark.timeout(1800)
def test_a_table_arrives_although_airflow_dies_in_the_middle(airflow: Scene) -> None:
    writer = Writer(airflow.kafka.bootstrap, TOPIC, partitions=2, per_second=PER_SECOND)
    writer.send(HISTORY)
    writer.start()
    try:
        airflow.quickstart()
        airflow.mzshare("sql", f"ALTER SOURCE {SOURCE} SET (BACKFILL RATE 0)")
        added = airflow.trigger(ADD, source=SOURCE, table=NEW)
        wait_until(lambda: airflow.airflow.tasks(ADD, added)[CONVERGE] == "deferred", 300, "a deferred sensor", every=1)
        second = airflow.trigger(WAIT)
        wait_until(lambda: airflow.airflow.tasks(WAIT, second) == {"wait": "deferred"}, 120, "another one", every=1)

        with airflow.airflow_dead(OUTAGE_SECONDS):
            airflow.kafka.restart()
            airflow.mzshare("sql", f"ALTER SOURCE {SOURCE} RESET (BACKFILL RATE)")
            wait_until(_history_is_there(airflow), 300, "a backfill that goes on", every=0.5)
            assert airflow.stack.table(NEW).status == "backfilling", "nobody was there to ask for the cutover"

        airflow.wait_for(ADD, added)
        airflow.wait_for(WAIT, second, 120)
    finally:
        writer.stop()
    airflow.check(*TABLES)
    _check_clean(airflow)

    _check_cleared(airflow, added)
    airflow.check(*TABLES)
    _check_clean(airflow)


def _history_is_there(scene: Scene) -> Callable[[], bool]:
    return lambda: sum(scene.stack.arrival(NEW).position.offsets.values()) >= HISTORY  # type: ignore[union-attr]


def _check_cleared(scene: Scene, run: str) -> None:
    """The sensor's task is cleared after its success: it succeeds again, and nothing has changed."""
    before = _facts(scene)
    ask = {"dry_run": False, "dag_run_id": run, "task_ids": [CONVERGE], "only_failed": False, "reset_dag_runs": True}
    cleared = scene.airflow.call("POST", f"/api/v2/dags/{ADD}/clearTaskInstances", ask)["task_instances"]
    assert CONVERGE in {task["task_id"] for task in cleared}
    scene.wait_for(ADD, run, 180)
    assert set(scene.airflow.tasks(ADD, run).values()) == {"success"}
    assert _facts(scene) == before


def _facts(scene: Scene) -> object:
    """What a second cutover, backfill or start would change."""
    table = scene.stack.table(NEW)
    with scene.stack.catalog.read() as session:
        proofs = [proof.id for proof in certificates(session, table.id)]
    jobs = [(job.id, job.state) for kind in ("ingest", "backfill") for job in scene.jobs(kind)]
    return table.id, table.status, table.generation, proofs, jobs


def _check_clean(scene: Scene) -> None:
    """The shared app is the one that was started first; of the backfill only its log is left."""
    [ingestion], [backfill] = scene.jobs("ingest"), scene.jobs("backfill")
    assert ingestion.state == "running", ingestion
    assert backfill.state == "finished", backfill
    wait_until(lambda: not psutil.pid_exists(backfill.pid or 0), 60, "the end of the backfill's process")
    assert sorted(file.name for file in Path(backfill.folder).iterdir()) == ["log"]
    assert groups(scene.kafka) == []
