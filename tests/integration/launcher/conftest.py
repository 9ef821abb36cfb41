"""A home with a catalog and a reconciler that launches a stand-in for the Spark app."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher
from airflow_provider_mzshare.control.catalog import Catalog, items, jobs
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.reconciler import Outcome, Reconciler
from airflow_provider_mzshare.control.runs import handle_of
from airflow_provider_mzshare.control.status import StatusReader
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.connections import EnvConnections
from airflow_provider_mzshare.types.ids import ItemId
from airflow_provider_mzshare.types.positions import Position
from airflow_provider_mzshare.types.specs import KafkaSourceSpec, TableSpec
from tests.support.waiting import wait_until

STANDIN = Path(__file__).parent / "standin.py"


@dataclass
class Home:
    settings: Settings
    catalog: Catalog
    launcher: ProcessLauncher
    connections: EnvConnections

    def reconciler(self, *, stop_seconds: float = 20, term_seconds: float = 20) -> Reconciler:
        return Reconciler(
            self.catalog,
            self.settings,
            self.connections,
            self.launcher,
            stop_seconds=stop_seconds,
            term_seconds=term_seconds,
        )

    def source(self, name: str, *, tables: int = 1, connection: str = "broker") -> ItemId:
        with self.catalog.write() as session:
            spec = KafkaSourceSpec(connection=connection, topic="t")
            source_id = items.create_source(
                session, name=("public", name), spec=spec, incarnation="topic-id", start=Position()
            )
            for number in range(tables):
                table = TableSpec(reference="t", format="text")
                items.create_table(session, name=("public", f"{name}_{number}"), source_id=source_id, spec=table)
        return source_id

    def set_desired(self, source_id: ItemId, desired: items.Desired) -> None:
        with self.catalog.write() as session:
            items.set_desired(session, source_id, desired)

    def jobs(self, source_id: ItemId) -> list[Job]:
        """Newest first."""
        with self.catalog.read() as session:
            return list(jobs.last_jobs(session, source_id, 100))

    def running(self, source_id: ItemId) -> Job:
        """Wait for the source's newest job to run."""

        def look() -> Job | None:
            newest = self.jobs(source_id)[0]
            assert newest.is_active, f"{newest.state}: {newest.error}"
            return newest if newest.state == "running" else None

        return wait_until(look, 30, "the app to run")

    def is_alive(self, job: Job) -> bool:
        handle = handle_of(job, self.launcher)
        return handle is not None and self.launcher.status(handle) == "alive"

    def health(self, source_id: ItemId) -> str:
        with self.catalog.read() as session:
            item = items.get_source_item(session, source_id)
        return StatusReader(self.catalog, self.launcher).source(item)[0].health


@pytest.fixture
def home(request: pytest.FixtureRequest, jars: Path, tmp_path: Path) -> Iterator[Home]:
    """On SQLite; on both databases for a test that uses ``catalog_url`` too."""
    asked = "catalog_url" in request.fixturenames
    url = request.getfixturevalue("catalog_url") if asked else f"sqlite:///{tmp_path / 'catalog.db'}"
    settings = Settings.from_environment(
        {
            "MZSHARE_HOME": str(tmp_path / "home"),
            "MZSHARE_CATALOG": url,
            "MZSHARE_JARS": str(jars),
            "MZSHARE_LEASE_SECONDS": "1",
            "MZSHARE_HEARTBEAT_SECONDS": "0.1",
        }
    )
    catalog = Catalog(settings.catalog_url)
    catalog.upgrade()
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9", "sasl.password": "hunter2"}}
    connections = EnvConnections({"AIRFLOW_CONN_BROKER": json.dumps(connection)})
    launcher = ProcessLauncher(STANDIN)
    yield Home(settings, catalog, launcher, connections)
    with catalog.read() as session:
        found = [job for item in items.list_sources(session) for job in jobs.last_jobs(session, item.id, 100)]
        found += jobs.active_jobs(session)
    for job in found:
        if (handle := handle_of(job, launcher)) is not None:
            launcher.kill(handle)
    catalog.close()


def done(outcomes: list[Outcome], *actions: str) -> list[tuple[str, str]]:
    """What was done, without tidying up unless asked for."""
    wanted = actions or ("start", "stop", "lost", "wait", "remove")
    return [(outcome.action, outcome.subject) for outcome in outcomes if outcome.action in wanted]
