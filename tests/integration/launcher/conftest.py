"""A home with a catalog and a reconciler that launches a stand-in for the Spark app."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.reconciler import Outcome, Reconciler
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Tick
from airflow_provider_mzshare.settings import Settings
from tests.support.catalog import new_sqlite
from tests.support.processes import kill_all_in
from tests.support.waiting import wait_until

STANDIN = Path(__file__).parent / "standin.py"


@dataclass
class Home:
    settings: Settings
    catalog: Catalog
    launchers: Launchers
    connections: EnvConnections

    def reconciler(
        self, *, stop_seconds: float = 20, term_seconds: float = 20, max_backfills: int | None = None
    ) -> Reconciler:
        return Reconciler(
            self.catalog,
            replace(self.settings, max_backfills=max_backfills or self.settings.max_backfills),
            self.connections,
            self.launchers,
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

    def late_tables(self, source_id: ItemId, *names: str) -> BackfillId:
        """Tables of a source that has moved on, created together."""
        with self.catalog.write() as session:
            spec = TableSpec(reference="t", format="text")
            made = [
                items.create_table(session, name=("public", name), source_id=source_id, spec=spec) for name in names
            ]
            backfill_id = items.get_table_item(session, made[0]).backfill_id
        assert backfill_id is not None
        return backfill_id

    def table(self, name: str) -> items.TableItem:
        with self.catalog.read() as session:
            return items.find_table(session, ("public", name))

    def tick(self, source_id: ItemId, times: int = 1) -> Tick:
        """What the ingestion app does, under the lease of whoever has it; give back the last one."""
        store = CatalogTickStore(self.catalog, source_id)
        lease = store.load().lease
        holder = Holder(lease.job_id, lease.epoch) if lease.job_id else store.claim(JobId("test"))
        for _ in range(times):
            lower = store.load().upper
            upper = Position({"0": lower["0"] + 5})
            tick = store.mint(holder, lower=lower, upper=upper, incarnation="topic-id")
            store.commit(holder, tick.number, {member.table_id: Done() for member in store.members()}, {})
        if lease.job_id is None:
            store.release(holder)
        return tick

    def follow(self, source_id: ItemId, backfill_id: BackfillId, *, to: int | None = None) -> None:
        """What the backfill's app does: all ticks up to one, for all its tables, 5 records in half a second."""
        store = CatalogBackfillStore(self.catalog, source_id, backfill_id)
        lease = store.lease()
        holder = Holder(lease.job_id, lease.epoch) if lease.job_id else store.claim(JobId("test-backfill"))
        tables = backfill_rules.arriving(store.load(), backfill_id)
        first = min(table.next_tick for table in tables.values())
        ticks = [tick for tick in store.ticks(first, 1_000) if to is None or tick.number <= to]
        outcomes = {table_id: Done() for table_id in tables}
        store.follow(holder, first=first, last=ticks[-1], outcomes=outcomes, stats={"busy_ms": 500 * len(ticks)})
        if lease.job_id is None:
            store.release(holder)

    def stall(self, source_id: ItemId) -> None:
        store = CatalogTickStore(self.catalog, source_id)
        store.stall(store.claim(JobId("test")), "catalog_behind", "the catalog has lost its tail")

    def set_desired(self, source_id: ItemId, desired: items.Desired) -> None:
        with self.catalog.write() as session:
            items.set_desired(session, source_id, desired)

    def jobs(self, source_id: ItemId, kind: jobs.Kind = "ingest") -> list[Job]:
        """Newest first."""
        with self.catalog.read() as session:
            return list(jobs.last_jobs(session, source_id, 100, kind=kind))

    def running(self, source_id: ItemId, kind: jobs.Kind = "ingest") -> Job:
        """Wait for the source's newest job of a kind to run."""

        def look() -> Job | None:
            newest = self.jobs(source_id, kind)[0]
            assert newest.is_active, f"{newest.state}: {newest.error}"
            return newest if newest.state == "running" else None

        return wait_until(look, 120, "the app to run")

    def is_alive(self, job: Job) -> bool:
        run = run_of(job, self.launchers)
        return run is not None and run.status() == "alive"

    def health(self, source_id: ItemId) -> str:
        with self.catalog.read() as session:
            item = items.get_source_item(session, source_id)
        return StatusReader(self.catalog, self.launchers).source(item)[0].health


@pytest.fixture
def home(request: pytest.FixtureRequest, jars: Path, tmp_path: Path) -> Iterator[Home]:
    """On SQLite; on both databases for a test that uses ``catalog_url`` too."""
    asked = "catalog_url" in request.fixturenames
    url = request.getfixturevalue("catalog_url") if asked else new_sqlite(tmp_path / "catalog.db")
    settings = Settings.from_environment(
        {
            "MZSHARE_HOME": str(tmp_path / "home"),
            "MZSHARE_CATALOG": url,
            "MZSHARE_JARS": str(jars),
            "MZSHARE_LEASE_SECONDS": "1",
            "MZSHARE_HEARTBEAT_SECONDS": "0.1",
            "MZSHARE_MAX_BACKFILLS": "4",
        }
    )
    catalog = Catalog(settings.catalog_url)
    catalog.upgrade()
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9", "sasl.password": "hunter2"}}
    connections = EnvConnections({"AIRFLOW_CONN_BROKER": json.dumps(connection)})
    launchers = Launchers(settings, STANDIN)
    yield Home(settings, catalog, launchers, connections)
    with catalog.read() as session:
        found = jobs.last_jobs(session, None, 1_000)
    for job in found:
        if (run := run_of(job, launchers)) is not None:
            run.kill()
    catalog.close()
    kill_all_in(settings.home)


def done(outcomes: list[Outcome], *actions: str) -> list[tuple[str, str]]:
    """What was done, without tidying up unless asked for."""
    started = ("start", "queue", "merge", "wait", "arm")
    wanted = actions or (*started, "stop", "lost", "remove", "retire", "isolate", "abandon")
    return [(outcome.action, outcome.subject) for outcome in outcomes if outcome.action in wanted]
