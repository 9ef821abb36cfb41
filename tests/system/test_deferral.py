"""Sensors that defer and resume in Airflow's own way, in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.waiting import wait_until

DAG = """
import json
from pathlib import Path
from airflow.sdk import DAG, task
from airflow_provider_mzshare.sensors.offsets import OffsetsConvergedSensor

with DAG("waits"):
    first, second, live = (
        OffsetsConvergedSensor(task_id=name, table=table, mzshare_conn_id="mz", timeout=120)
        for name, table in (("first", "late"), ("second", "late"), ("live", "s_first"))
    )

    @task
    def keep(*results):
        Path(RESULTS).write_text(json.dumps(results))

    first >> second >> live
    keep(first.output, second.output, live.output)
"""


def test_sensors_resume_with_the_certificate(airflow_database: Path, tmp_path: Path) -> None:
    dags, home, results = tmp_path / "dags", tmp_path / "home", tmp_path / "results.json"
    dags.mkdir()
    home.mkdir()
    (dags / "waits.py").write_text(DAG.replace("RESULTS", repr(str(results))))
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(airflow_database.parent),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_MZ": json.dumps({"conn_type": "mzshare", "extra": {"home": str(home)}}),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["airflow", "dags", "reserialize"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    with Catalog(f"sqlite:///{home / 'catalog.db'}") as catalog:
        catalog.upgrade()
        log, [late] = add_late_tables(catalog, "late")
        backfill = Backfilling(catalog, log.source_id)
        backfill.follow()

        def armed() -> bool:
            with catalog.read() as session:
                return convergences(session, [late])[late].status == "converging"

        output = tmp_path / "output.txt"
        with output.open("w") as file:
            running = subprocess.Popen(["airflow", "dags", "test", "waits"], env=env, stdout=file, stderr=file)
        try:
            wait_until(lambda: armed() or running.poll() is not None, 180, "the first sensor has armed its table")
            assert armed(), output.read_text()[-3000:]
            tick = log.tick()
            assert running.wait(timeout=180) == 0, output.read_text()[-3000:]
        finally:
            running.kill()
            running.wait()
    first, second, live = json.loads(results.read_text())
    assert first == second
    assert (first["table_id"], first["tick"], first["backfill_id"]) == (late, tick.number, backfill.id)
    assert live == {"table": "s_first", "status": "live"}
