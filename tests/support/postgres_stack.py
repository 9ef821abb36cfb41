"""A home of its own on a real Postgres: catalog, warehouse, a source with a journal; its apps run in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from airflow_provider_mzshare.client import connect as open_home
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CommitRow, TickRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, find_source, find_table
from airflow_provider_mzshare.control.upstreams import connect
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, new_job_id
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import TableState
from airflow_provider_mzshare.storage.apps.backfill import Backfill
from airflow_provider_mzshare.storage.apps.base import End
from airflow_provider_mzshare.storage.apps.ingestion import Ingestion
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.postgres_truth import Rows, Truth
from tests.support.stack import RunningApp
from tests.support.upstream_postgres import CONNECTION, PUBLICATION, Database
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = (
    f"CREATE SOURCE shop FROM POSTGRES CONNECTION {CONNECTION} (PUBLICATION '{PUBLICATION}') "
    "WITH (TRIGGER INTERVAL '2s', IDLE TICK INTERVAL '500ms')"
)


class MortalApp(RunningApp):
    """One that may die of what no app handles."""

    def _run(self) -> None:
        try:
            super()._run()
        except BaseException as error:
            self.end = End("failed", repr(error))


class PostgresStack:
    """:param folder: the home. The connection is in the environment."""

    def __init__(self, folder: Path, spark: SparkSession, database: Database) -> None:
        self.folder, self.spark, self.database = folder, spark, database
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir(parents=True)
        self.mz = open_home(home=folder)
        self.mz.sql(SOURCE)
        self.catalog = Catalog(f"sqlite:///{folder / 'catalog.db'}")
        with self.catalog.read() as session:
            self.source = find_source(session, ("public", "shop")).id

    def close(self) -> None:
        self.mz.close()
        self.catalog.close()

    def add(self, *names: str) -> None:
        """All in one transaction: they share one backfill."""
        made = [f"CREATE TABLE {name} FROM SOURCE shop (REFERENCE public.{name})" for name in names]
        self.mz.sql("; ".join(["BEGIN", *made, "COMMIT"]))

    def table(self, name: str) -> TableItem:
        with self.catalog.read() as session:
            return find_table(session, ("public", name))

    def state(self, name: str) -> TableState:
        """Of the table, or of its new generation."""
        state, table_id = CatalogTickStore(self.catalog, self.source).load(), self.table(name).id
        return state.replacements.get(table_id) or state.tables[table_id]

    # ── apps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def ingesting(self) -> Iterator[RunningApp]:
        store = CatalogTickStore(self.catalog, self.source)
        backfills = partial(CatalogBackfillStore, self.catalog, self.source)
        app = RunningApp(Ingestion(store=store, backfills=backfills, **self._parts()))
        try:
            yield app
        finally:
            app.stop(120)

    def start_backfill(self, name: str) -> RunningApp:
        backfill_id = self.state(name).backfill_id
        assert backfill_id is not None
        return self.backfill(backfill_id)

    def backfill(self, backfill_id: BackfillId) -> RunningApp:
        store = CatalogBackfillStore(self.catalog, self.source, backfill_id)
        return MortalApp(Backfill(store=store, backfill_id=backfill_id, **self._parts()))

    def _parts(self) -> dict[str, Any]:
        job_id = new_job_id("test")
        folder = self.folder / "jobs" / job_id
        folder.mkdir(parents=True)
        with self.catalog.read() as session:
            source = items.get_source_item(session, ItemId(self.source))
        journals = journals_of(self.catalog, str(self.warehouse))
        connector = connect(self.database.connection(), source.spec, source.incarnation, journals=journals)
        return {
            "spark": self.spark,
            "connector": connector,
            "upstream": connector.upstream(),
            "reader": connector.reader(self.spark),
            "source_id": self.source,
            "job_id": job_id,
            "root": str(self.warehouse),
            "folder": folder,
            "indexing": Indexing(str(self.warehouse), KeyStates(folder / "keys")),
            "lease_seconds": 2.0,
            "heartbeat_seconds": 0.5,
            "stop": threading.Event(),
        }

    def wait_live(self, names: Sequence[str], timeout: float = 180) -> None:
        """Cutovers are armed as soon as they can be."""

        def live() -> bool:
            with self.catalog.write() as session:
                arrivals.arming(session, self.source)
            state = CatalogTickStore(self.catalog, self.source).load()
            return not backfill_rules.arriving(state)

        wait_until(live, timeout, f"{', '.join(names)} to be live: {[self.state(name) for name in names]}")
        assert {name: self.table(name).status for name in names} == dict.fromkeys(names, "live")

    def wait_for_all(self, timeout: float = 120) -> None:
        """Until the ticks have all that is committed in the database by now."""
        end = int(self.database.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
        self.database.run("SELECT pg_logical_emit_message(true, 'test', '')")

        def there() -> bool:
            last = CatalogTickStore(self.catalog, self.source).load().last
            return last is not None and last.upper["lsn"] >= end

        wait_until(there, timeout, f"the ticks to be past {end}")

    # ── the proof ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, name: str, truth: Truth) -> int:
        """Every tick at whose time the table can be read. How many there were."""
        wrong = []
        ticks = self.readable(name)
        for time, upper in ticks:
            found, right = self.rows(name, time), truth.at(name, upper)
            if found != right:
                keys = [key for key in {*found, *right} if found.get(key) != right.get(key)]
                wrong.append((time, upper, len(found), len(right), sorted(keys)[:5]))
        assert not wrong, f"{name}: {len(wrong)} of {len(ticks)} ticks are wrong: {wrong[:3]}"
        return len(ticks)

    def rows(self, name: str, time: int) -> Rows:
        found = self.mz.read(name, as_of=time).to_pylist()
        rows = {row["id"]: (row["n"], row["note"]) for row in found}
        assert len(rows) == len(found), f"{name} has a key twice at {time}"
        return rows

    def readable(self, name: str) -> list[tuple[int, int]]:
        """Times, and where their ticks end; without those inside of a commit of several ticks."""
        table = self.table(name)
        of_source = TickRow.source_id == self.source
        of_table = CommitRow.collection_id.like(f"{table.id}-g%")
        ticks = select(TickRow.mz_timestamp, TickRow.upper).where(
            of_source, TickRow.mz_timestamp.between(table.since, table.upper - 1)
        )
        groups = select(CommitRow.first_timestamp, CommitRow.mz_timestamp).where(of_table)
        with self.catalog.read() as session:
            inside = [(first, last) for first, last in session.execute(groups) if first < last]
            return [
                (time, upper["lsn"])
                for time, upper in session.execute(ticks.order_by(TickRow.number))
                if not any(first <= time < last for first, last in inside)
            ]
