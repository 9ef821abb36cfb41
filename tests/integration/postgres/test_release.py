"""What a source leaves in its database goes with it, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import Connection, ConnectionStore, FixedConnections
from airflow_provider_mzshare.connectors.postgres import slot
from airflow_provider_mzshare.connectors.postgres.identity import slot_name
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.supervision.reconciler import Outcome, Reconciler
from airflow_provider_mzshare.core.ids import JobId, journal_of, new_journal_id
from airflow_provider_mzshare.settings import Settings
from tests.support.catalog import new_sqlite
from tests.support.upstream_postgres import CONNECTION, PUBLICATION, Database

SOURCE = f"CREATE SOURCE s FROM POSTGRES CONNECTION {CONNECTION} (PUBLICATION '{PUBLICATION}')"


class Home:
    """A catalog with the source ``s``, whose journal somebody has begun, and whose slot is there."""

    def __init__(self, folder: Path, upstream: Database) -> None:
        self.catalog, self.upstream = Catalog(new_sqlite(folder / "catalog.db")), upstream
        given = {"MZSHARE_HOME": str(folder / "home"), "MZSHARE_CATALOG": self.catalog.url}
        self.settings = Settings.from_environment(given)
        Path(self.settings.warehouse).mkdir(parents=True)
        self.connections: ConnectionStore = FixedConnections({CONNECTION: upstream.connection()})
        self.run(SOURCE)
        with self.catalog.read() as session:
            journal = journal_of(items.find_source(session, ("public", "s")).incarnation)
        assert journal is not None
        self.slot = slot_name(journal)
        partition = CatalogJournal(self.catalog, journal).partition(0)
        partition.release(partition.claim(JobId("ingest-1"), stood_still=partition.lease()))
        self.make(self.slot)

    def make(self, name: str) -> str:
        with self.upstream.connect() as session:
            slot.make(session, name)
        return name

    def run(self, text: str) -> None:
        execute_script(self.catalog, text, self.connections)

    def reconcile(self) -> list[Outcome]:
        made = Reconciler(self.catalog, self.settings, self.connections, Launchers(self.settings))
        return [one for one in made.run() if one.action == "remove"]


@pytest.fixture
def home(tmp_path: Path, upstream: Database) -> Iterator[Home]:
    upstream.publish()
    made = Home(tmp_path, upstream)
    yield made
    made.catalog.close()


def test_the_slot_of_a_dropped_source_is_dropped_and_no_other(home: Home) -> None:
    others = {home.make("theirs"), home.make(slot_name(new_journal_id())), home.make("mzshare_by_hand")}
    home.reconcile()
    assert set(home.upstream.slots()) == {home.slot, *others}
    home.run("DROP SOURCE s")
    assert set(home.upstream.slots()) == {home.slot, *others}, "an app might still read it"
    (done,) = home.reconcile()
    assert done.ok
    assert home.slot in done.detail
    assert set(home.upstream.slots()) == others
    assert home.reconcile() == []


def test_a_slot_that_cannot_be_dropped_yet_is_told_and_tried_again(home: Home) -> None:
    home.run("DROP SOURCE s")
    reachable = home.connections
    away = Connection(CONNECTION, "postgres", host="127.0.0.1", port=9)
    home.connections = FixedConnections({CONNECTION: away})
    for _ in range(2):
        (failed,) = home.reconcile()
        assert not failed.ok
        assert "cannot be reached" in failed.detail
    assert home.upstream.slots() == [home.slot]
    home.connections = reachable
    (done,) = home.reconcile()
    assert done.ok
    assert home.upstream.slots() == []


def test_without_its_connection_the_journal_goes_and_what_stays_is_told(home: Home) -> None:
    home.run("DROP SOURCE s")
    home.connections = FixedConnections({})
    (done,) = home.reconcile()
    assert done.ok
    assert f"connection '{CONNECTION}' is not defined" in done.detail
    assert home.slot in done.detail
    assert home.reconcile() == []


def test_a_source_whose_slot_is_gone_already_is_dropped_all_the_same(home: Home) -> None:
    with home.upstream.connect() as session:
        slot.drop(session, home.slot)
    home.run("DROP SOURCE s")
    (done,) = home.reconcile()
    assert done.ok
    assert done.detail == "its journal"
