"""What the version before has left goes on under this one: a catalog, a warehouse and an app that died in a tick."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.catalog.objects import items, table_specs, upgrades
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.control.lifecycle.check_table import check_table
from airflow_provider_mzshare.control.lifecycle.holding import hold_table
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import CatalogOutdated
from tests.support.before import TABLES, answers, generated, known, open_catalog, read, unpack
from tests.support.driven import DrivenIngestion, note_job

NO_CONNECTIONS = FixedConnections({})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Upgraded, as its user is told to."""
    folder = unpack(tmp_path / "home")
    with open_catalog(folder) as catalog:
        with pytest.raises(CatalogOutdated):
            catalog.ensure()
        catalog.upgrade()
    return folder


def table(catalog: Catalog, name: str) -> items.TableItem:
    with catalog.read() as session:
        return items.find_table(session, ("public", name))


def test_every_read_as_of_every_tick_is_answered_as_before(home: Path) -> None:
    assert answers(home) == known()["answers"]


def test_stored_definitions_are_understood(home: Path) -> None:
    with open_catalog(home) as catalog:
        with catalog.read() as session:
            named = {item.name[1] for item in (*items.list_sources(session), *items.list_tables(session))}
            assert named >= {"shop", "house", "old_house", "old_count", *TABLES, "old_users", "old_bids"}
            for one in items.list_tables(session):
                (version,) = table_specs.versions_of(session, one.id)
                assert (version.version, version.first_tick, version.spec) == (one.spec_version, 1, one.spec)
            (migration,) = session.scalars(select(MigrationRow))
            before, left = upgrades.kept_definitions(migration)
            assert before.source.spec.legacy
            assert not left.source.spec.legacy
        shown = execute_script(catalog, "SHOW CREATE TABLE orders; SHOW CREATE VIEW cheap", NO_CONNECTIONS)
        assert all(result.rows for result in shown)
        assert not run(catalog, Wanted(source="old_house"), Run("rollback", apply=True)).failed


def test_the_history_that_it_has_can_be_held(home: Path) -> None:
    with open_catalog(home) as catalog:
        since = table(catalog, "orders").since
        with hold_table(catalog, "orders", at=since, name="loader", keep=True):
            maintain(catalog, str(home / "warehouse"), now_ms=wall_ms() + 40_000 * 86_400_000)
        assert table(catalog, "orders").since == since
        assert table(catalog, "lines").since > since
    assert answers(home)["orders"] == known()["answers"]["orders"]


def test_hashes_and_certificates_still_prove_what_was_written(home: Path) -> None:
    warehouse = str(home / "warehouse")
    with open_catalog(home) as catalog:
        for name in TABLES:
            checked = check_table(catalog, warehouse, table(catalog, name), deep=True)
            assert checked.is_whole, checked.damages
        for name, rows in (("bids", 15), ("users", 15)):
            found = verify_table(catalog, NO_CONNECTIONS, warehouse, table(catalog, name), everything=True)
            assert (found.verdict, found.rows) == ("exact", rows)
        with catalog.read() as session:
            found_at = {name: last_certificate(session, table_id) for name, table_id in ids(catalog).items()}
        assert {name: one.tick for name, one in found_at.items() if one} == {"late": 3, "orders": 5}


def ids(catalog: Catalog) -> dict[str, ItemId]:
    return {name: table(catalog, name).id for name in TABLES}


def test_a_tick_that_was_begun_is_finished_by_whoever_takes_over(home: Path) -> None:
    warehouse = str(home / "warehouse")
    with open_catalog(home) as catalog:
        with catalog.read() as session:
            house = items.find_source(session, ("public", "house"))
            dead = jobs.get_job(session, JobId("ingest-2"))
        assert (house.lease.job_id, dead.state) == (dead.id, "running")
        app = DrivenIngestion(
            catalog, warehouse, house.id, generated(house), note_job(catalog, "new", house.id, "/none")
        )
        assert app.finish_pending() == [3]
        app.tick(Position(dict.fromkeys(range(5), 30)))
        for name, before in (("bids", 15), ("users", 15)):
            assert read(home, name, tick=2) == known()["answers"][name]["rows"]
            assert [len(read(home, name, tick=tick)) for tick in (2, 3, 4)] == [before, 22, 30]
            found = verify_table(catalog, NO_CONNECTIONS, warehouse, table(catalog, name), everything=True)
            assert (found.verdict, found.rows, found.errors) == ("exact", 30, 0)
