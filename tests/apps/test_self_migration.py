"""From old syntax to tables by hand, both ways, on real apps that go on meanwhile; load generators need no broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.control.definition_errors import NotMigrated, StillUsed
from airflow_provider_mzshare.control.lifecycle.read_table import Query, count_rows, read_cut, read_table
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.control.upstreams import connect
from airflow_provider_mzshare.core.ids import new_job_id
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.apps.backfill import Backfill
from airflow_provider_mzshare.storage.apps.ingestion import Ingestion
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.old_style import OldStyle
from tests.support.stack import RunningApp
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAST = "TRIGGER INTERVAL '300ms', IDLE TICK INTERVAL '1s', CUTOVER WAIT '3s'"
"""A tick waits for a backfill that is one behind, so that a busy machine does not keep them apart."""


class Home:
    """A catalog that allows old syntax, a warehouse, and apps in this process."""

    def __init__(self, spark: SparkSession, folder: Path, catalog: Catalog, closing: ExitStack) -> None:
        self.old, self.catalog = OldStyle(catalog), catalog
        self._spark, self._folder, self._closing = spark, folder, closing
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir()

    def ingest(self, source: str) -> RunningApp:
        found = self.old.source(source)
        store = CatalogTickStore(self.catalog, found.id)
        backfills = partial(CatalogBackfillStore, self.catalog, found.id)
        return self._run(Ingestion(store=store, backfills=backfills, **self._parts(found)))

    def bring_up(self, *names: str) -> None:
        """Backfill tables of one transaction, and wait until they are cut over."""
        table = self.old.table(names[0])
        assert table.backfill_id is not None
        with self.catalog.read() as session:
            source = items.get_source_item(session, table.source_id)
        store = CatalogBackfillStore(self.catalog, source.id, table.backfill_id)
        app = self._run(Backfill(store=store, backfill_id=table.backfill_id, **self._parts(source)))
        wait_until(lambda: not self._coming(app, names), 120, f"the cutover of {', '.join(names)}", every=0.3)
        assert app.join().state == "finished"

    def _coming(self, app: RunningApp, names: Sequence[str]) -> list[str]:
        """How far those are that are not live yet; those that are close enough are let converge."""
        with self.catalog.read() as session:
            found = list(convergences(session, [("public", name) for name in names]).values())
        for one in found:
            if one.can_arm(1):
                with self.catalog.write() as session:
                    arrivals.arm_table(session, one.table_id)
        coming = [one.progress for one in found if not one.converged]
        assert not coming or app.end is None or app.end.state == "finished", (coming, app.end)
        return coming

    def _run(self, app: Any) -> RunningApp:
        running = RunningApp(app)
        self._closing.callback(running.stop)
        return running

    def _parts(self, source: items.SourceItem) -> dict[str, Any]:
        job_id = new_job_id("test")
        folder = self._folder / "jobs" / job_id
        folder.mkdir(parents=True)
        connector = connect(None, source.spec, source.incarnation)
        return {
            "spark": self._spark,
            "connector": connector,
            "upstream": connector.upstream(),
            "reader": connector.reader(self._spark),
            "source_id": source.id,
            "job_id": job_id,
            "root": str(self.warehouse),
            "folder": folder,
            "indexing": Indexing(str(self.warehouse), KeyStates(folder / "keys")),
            "lease_seconds": 5.0,
            "heartbeat_seconds": 0.5,
            "stop": threading.Event(),
        }

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def wait_rows(self, name: str, more_than: int = 0) -> int:
        return wait_until(lambda: (found := self.old.table(name).rows) > more_than and found, 60, f"rows of {name}")

    def epoch(self, source: str) -> int:
        return self.old.source(source).lease.epoch

    def rows(self, *names: str) -> list[list[dict[str, Any]]]:
        """Of all at the same tick, with the places they come from."""
        query = Query(with_system_columns=True, ordered=True)
        found = read_cut(self.catalog, str(self.warehouse), names, query)
        return [found[name].to_pylist() for name in names]

    def verify(self, table: TableItem) -> None:
        """Every record once, none lost, as the generator makes it."""
        exact = verify_table(self.catalog, self.old.connections, str(self.warehouse), table, everything=True)
        assert exact.verdict == "exact", exact


@contextmanager
def _home(spark: SparkSession, folder: Path) -> Iterator[Home]:
    with Catalog(f"sqlite:///{folder / 'catalog.db'}") as catalog, ExitStack() as closing:
        catalog.upgrade()
        yield Home(spark, folder, catalog, closing)


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Iterator[Home]:
    with _home(spark, tmp_path) as made:
        yield made


def test_tables_on_the_same_source_take_over_from_its_subsources(home: Home) -> None:
    sql = home.old.sql
    sql(
        "CREATE SOURCE a FROM LOAD GENERATOR AUCTION (SEED 7, TICK INTERVAL '50ms', BATCH SIZE 8)"
        f" FOR TABLES (bids, users) WITH ({FAST}, EXCLUDE COLUMNS (users.name))"
    )
    sql("CREATE VIEW bidders AS SELECT buyer, amount FROM bids")
    home.ingest("a")
    home.wait_rows("bids", 50)
    epoch = home.epoch("a")

    sql(
        "BEGIN; CREATE TABLE bids_table FROM SOURCE a (REFERENCE bids);"
        " CREATE TABLE users_table FROM SOURCE a (REFERENCE users) WITH (EXCLUDE COLUMNS (name)); COMMIT"
    )
    home.bring_up("bids_table", "users_table")
    for old, new in (("bids", "bids_table"), ("users", "users_table")):
        before, after = home.rows(old, new)
        assert before == after
        assert before

    with pytest.raises(StillUsed, match="view bidders"):
        sql("DROP SOURCE bids")
    with pytest.raises(NotMigrated, match="source a, subsource bids, subsource users"):
        sql("ALTER SYSTEM SET force_source_table_syntax = true")
    sql("BEGIN; DROP VIEW bidders; CREATE VIEW bidders AS SELECT buyer, amount FROM bids_table; COMMIT")
    sql("DROP SOURCE bids; DROP SOURCE users")
    sql("ALTER SYSTEM SET force_source_table_syntax = true")
    assert " FOR " not in home.old.create_sql("a")
    assert "COLUMNS" not in home.old.create_sql("a")

    home.wait_rows("bids_table", home.old.table("bids_table").rows)
    home.wait_rows("users_table", home.old.table("users_table").rows)
    assert home.epoch("a") == epoch, "the app was restarted"
    for name in ("bids_table", "users_table"):
        home.verify(home.old.table(name))


def test_a_new_source_takes_over_from_an_old_one(home: Home) -> None:
    sql = home.old.sql
    made = "LOAD GENERATOR COUNTER (TICK INTERVAL '20ms', BATCH SIZE 5, UP TO 200)"
    sql(f"CREATE SOURCE c FROM {made} ENVELOPE NONE EXPOSE PROGRESS AS how_far WITH ({FAST})")
    sql("CREATE TABLE beside FROM SOURCE c; CREATE VIEW total AS SELECT sum(counter) AS total FROM c")
    old = home.ingest("c")
    wait_until(lambda: home.old.table("c").rows == 200, 60, "all rows of the old source")
    root = str(home.warehouse)
    assert read_table(home.catalog, root, "c", Query(ordered=True)).column("counter").to_pylist() == list(range(1, 201))
    (progress,) = read_table(home.catalog, root, "how_far").to_pylist()
    assert (progress["partition"], progress["offset"]) == (0, 200)

    sql(f"CREATE SOURCE n FROM {made} WITH ({FAST}); CREATE TABLE counts FROM SOURCE n")
    home.ingest("n")
    wait_until(lambda: home.old.table("counts").rows == 200, 60, "all rows of the new table")
    assert read_table(home.catalog, root, "n").column("offset").to_pylist() == [200]
    with pytest.raises(StillUsed, match=r"view total, table beside|table beside, view total"):
        sql("DROP SOURCE c")
    (dropped,) = sql("DROP SOURCE c CASCADE")
    assert "table public.beside" in dropped.message
    assert "view public.total" in dropped.message

    assert old.join().state in ("fenced", "finished")  # at its next step, or between two
    sql("ALTER SYSTEM SET force_source_table_syntax = true")
    for gone in ("c", "how_far", "beside", "total"):
        with pytest.raises(MzShareError):
            count_rows(home.catalog, root, gone)
    assert home.old.names() == {"public.n": "load_generator"}
    home.verify(home.old.table("counts"))
