"""An ingestion under a launcher of another package, through the commands that a user has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.jobs import last_jobs
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.catalog import new_sqlite
from tests.support.kafka import Record, create_topic, produce
from tests.support.plugins import LAUNCHER
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
NAMES = ["numbers", "raw"]


@pytest.mark.timeout(600)
def test_a_source_is_read_by_an_app_that_another_packages_launcher_runs(
    kafka: EmbeddedKafka, jars: Path, tmp_path: Path
) -> None:
    stack = Stack(tmp_path, kafka, Catalog(new_sqlite(tmp_path / "catalog.db")))
    tables = [Table("numbers", (("n", "bigint"),)), Table("raw", format="bytes")]
    topic = create_topic(kafka, 2)
    source = stack.create("events", topic, tables)
    produce(kafka, topic, [Record(json.dumps({"n": n}).encode(), partition=n % 2) for n in range(200)])
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ},
        **stack.env,
        "MZSHARE_JARS": str(jars),
        "MZSHARE_LAUNCHER": "supervised",
        # As an installed package is found by anybody.
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(LAUNCHER))),
    }

    def mzshare(*words: str) -> str:
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", *words]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    assert "launcher" in (told := mzshare("doctor", "--no-spark"))
    assert "supervised: shells supervise apps" in told
    try:
        mzshare("start", "events")
        stack.wait_caught_up(source, NAMES, timeout=300)
        with stack.catalog.read() as session:
            (job,) = last_jobs(session, source, 10)
        assert job.launcher == "supervised"
        assert psutil.Process(job.pid).parent().name() == "sh", "the app's own shell"  # type: ignore[union-attr]
        stack.check(topic, tables)
        assert f"{job.id} holds" in mzshare("logs", "events")
    finally:
        environment["MZSHARE_LAUNCHER"] = "process"
        mzshare("stop", "events")
    wait_until((Path(job.folder) / "app.exit").exists, 30, "the shell to see the app's end")
    assert (Path(job.folder) / "app.exit").read_text() == "0\n"
    assert stack.job(job.id).state == "stopped"
    stack.catalog.close()
