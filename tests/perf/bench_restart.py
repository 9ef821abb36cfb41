"""Killed to fresh: how long until a record is in every table again, after a KILL of all of an app; beside a cold start.

``waits`` is a start by somebody who does not know that the process is gone, and so waits for its lease; ``knows`` is
the reconciler's. Run by hand: ``python -m tests.perf.bench_restart [tables …]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings
from tests.apps.test_shared_read import COLUMNS, record
from tests.support.kafka import create_topic, produce
from tests.support.stack import Stack, Table

RECORDS = 1_000
PATIENCE_SECONDS = 300.0
JARS = Settings.from_environment().jars or default_folder()


class Scene:
    def __init__(self, folder: Path, kafka: EmbeddedKafka, tables: int) -> None:
        self._kafka, self._sent = kafka, 0
        usual = Settings.from_environment({})
        self.stack = Stack(folder, kafka, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
        self.stack.lease_seconds, self.stack.heartbeat_seconds = usual.lease_seconds, usual.heartbeat_seconds
        self.topic = create_topic(kafka, 4)
        self.names = [f"t{number}" for number in range(tables)]
        listed = [Table(name, COLUMNS) for name in self.names]
        self.source: ItemId = self.stack.create("live", self.topic, listed, SourceSettings())
        settings = Settings.from_environment({**self.stack.env, "MZSHARE_JARS": str(JARS)})
        self.reconciler = Reconciler(self.stack.catalog, settings, EnvConnections(self.stack.env), self.stack.launchers)

    def fresh_after(self) -> float:
        """Seconds from a start until what was produced before it is in all tables."""
        produce(self._kafka, self.topic, (record(number) for number in range(self._sent, self._sent + RECORDS)))
        self._sent += RECORDS
        began = time.monotonic()
        self.reconciler.run(only=self.source, at_once=True)
        self.stack.wait_caught_up(self.source, self.names, timeout=PATIENCE_SECONDS)
        return time.monotonic() - began

    def kill(self, *, known: bool) -> None:
        with self.stack.catalog.read() as session:
            (job,) = jobs.active_jobs(session, self.source)
        run = run_of(job, self.stack.launchers)
        assert run is not None
        run.kill()
        if not known:
            with self.stack.catalog.write() as session:
                jobs.set_state(session, job.id, "lost", expect=jobs.ACTIVE)


def measure(kafka: EmbeddedKafka, folder: Path, tables: int) -> None:
    scene = Scene(folder, kafka, tables)
    cold = scene.fresh_after()
    found = {}
    for name, known in (("waits", False), ("knows", True)):
        scene.kill(known=known)
        found[name] = scene.fresh_after()
    scene.kill(known=True)
    told = ", ".join(
        f"{name} {seconds:.1f} s ({seconds / cold:.2f} of a cold start)" for name, seconds in found.items()
    )
    print(f"{tables} tables: cold start {cold:.1f} s; killed to fresh: {told}", flush=True)


def main(counts: list[int]) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="mzshare-restart-") as name,
        EmbeddedKafka(Path(name) / "kafka", jars=JARS) as kafka,
    ):
        for count in counts:
            folder = Path(name) / str(count)
            folder.mkdir()
            measure(kafka, folder, count)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 64])
