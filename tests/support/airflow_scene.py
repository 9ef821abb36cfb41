"""A broker, a whole Airflow and apps on one machine, with what a user has at hand: commands, REST, the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.jobs import Job, last_jobs
from airflow_provider_mzshare.control.catalog.objects.lookup import find
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

DAGS = Path(__file__).parents[2] / "dags"
TOPIC, SOURCE = "orders", "shop"
QUICKSTART = (
    Table("shop_rows", (("id", "bigint"), ("customer", "text"), ("amount", "numeric(12,2)")), include=("timestamp",)),
    Table("shop_documents", include=("partition", "offset", "key")),
)
"""What the DAG makes with the defaults of its form."""


@dataclass
class Scene:
    kafka: EmbeddedKafka
    airflow: EmbeddedAirflow
    stack: Stack
    env: dict[str, str]

    def mzshare(self, *words: str) -> str:
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", *words]
        ran = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=180, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def trigger(self, dag: str, **form: object) -> str:
        self.airflow.wait_for_dag(dag, 180)
        return self.airflow.trigger(dag, form)

    def wait_for(self, dag: str, run: str, timeout: float = 600) -> None:
        state = self.airflow.wait(dag, run, timeout)
        assert state == "success", (self.airflow.tasks(dag, run), self.mzshare("status", SOURCE))

    def quickstart(self) -> None:
        self.wait_for("mzshare_quickstart", self.trigger("mzshare_quickstart"))

    def jobs(self, kind: str) -> list[Job]:
        with self.stack.catalog.read() as session:
            return [job for job in last_jobs(session, self.stack.source_id(SOURCE), 100) if job.kind == kind]

    def check(self, *tables: Table) -> None:
        """Each holds what the topic holds now, and nothing twice."""
        self.stack.wait_caught_up(self.stack.source_id(SOURCE), [table.name for table in tables], timeout=180)
        self.stack.check(TOPIC, tables)

    def stop(self) -> None:
        """The apps, if it ever came so far."""
        with self.stack.catalog.read() as session:
            known = find(session, ("public", SOURCE))
        if known is not None:
            self.mzshare("stop", SOURCE)

    @contextmanager
    def airflow_dead(self, seconds: float) -> Iterator[None]:
        """All that schedules, parses, waits and works is killed; started again after the block, and no sooner."""
        parts, began = ("scheduler", "triggerer", "dag-processor"), time.monotonic()
        for part in parts:
            self.airflow.kill_part(part)
        yield
        wait_until(lambda: time.monotonic() - began >= seconds, seconds * 2, "the outage's end")
        for part in parts:
            self.airflow.start_part(part)


@contextmanager
def scene(folder: Path, jars: Path, dags: Path = DAGS) -> Iterator[Scene]:
    """Nothing of it runs when the block has ended."""
    home = folder / "home"
    home.mkdir()
    with EmbeddedKafka(folder / "kafka", jars=jars) as kafka:
        connection = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}})
        env = {"MZSHARE_HOME": str(home), "AIRFLOW_CONN_KAFKA_DEFAULT": connection}
        with (
            Catalog(f"sqlite:///{home / 'catalog.db'}") as catalog,
            EmbeddedAirflow(folder / "airflow", dags=dags, env=env) as airflow,
        ):
            made = Scene(kafka, airflow, Stack(home, kafka, catalog), {**os.environ, **env})
            try:
                yield made
            finally:
                made.stop()
