"""Creating, upgrading and refusing catalogs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.database.schema_versions import HEAD, VERSION_TABLE
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import (
    CatalogMissing,
    CatalogOutdated,
    CatalogTooNew,
    CatalogUnreachable,
    CatalogUnusable,
)
from tests.support.catalog import SOURCE, TABLE, add_source
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until


@pytest.fixture
def catalog_url(empty_url: str) -> str:
    """Here it is made by the test."""
    return empty_url


def test_a_missing_catalog_is_refused_and_not_created_by_looking(opened: Callable[[], Catalog], tmp_path: Path) -> None:
    catalog = opened()
    with pytest.raises(CatalogMissing) as refused, catalog.read():
        pass
    assert refused.value.hint == "mzshare catalog upgrade"
    assert list(tmp_path.iterdir()) == []


def test_upgrade_creates_the_newest_revision_and_may_be_repeated(opened: Callable[[], Catalog]) -> None:
    catalog = opened()
    catalog.upgrade()
    assert catalog.revision() == HEAD
    source = add_source(catalog)
    catalog.upgrade()
    assert CatalogTickStore(catalog, source).load().source_id == source


def test_the_migrations_give_exactly_the_models(catalog: Catalog) -> None:
    with catalog.read() as session:
        context = MigrationContext.configure(
            session.connection(), opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, TableRow.metadata) == []


def test_an_older_catalog_is_refused_until_upgraded_and_keeps_its_data(opened: Callable[[], Catalog]) -> None:
    old = opened()
    old.upgrade("0001")
    with old._writing.begin() as connection:
        for statement in _rows_of_0001():
            connection.execute(text(statement))
    with pytest.raises(CatalogOutdated) as refused, opened().read():
        pass
    assert (refused.value.found, refused.value.wanted) == ("0001", HEAD)

    new = opened()
    new.upgrade()
    state = CatalogTickStore(new, ItemId("u1")).load()
    assert state.last is not None
    assert (state.last.number, state.last.upper, state.members) == (7, Position({"0": 5}), {"u2"})
    assert state.tables[ItemId("u2")].upper == 701


def _rows_of_0001() -> list[str]:
    source, table = SOURCE.model_dump_json(), TABLE.model_dump_json()
    rest = "'active', NULL, NULL, 'running', 0, NULL, 0"
    # A colon would be taken for a parameter.
    rows = [
        "INSERT INTO items VALUES ('u1', 1, 'source', 'public', 's', 1, NULL)",
        "INSERT INTO items VALUES ('u2', 2, 'table', 'public', 't', 1, NULL)",
        f"INSERT INTO sources VALUES ('u1', '{source}', '{{}}', 'x', '{{}}', {rest})",
        f"INSERT INTO tables VALUES ('u2', 'u1', '{table}', 1, 1, 'live', NULL, '{{}}', '{{\"0\":5}}', 701, 700, 3, 0)",
        "INSERT INTO membership VALUES ('u2', 7, 'u1', 1, 1, NULL, NULL)",
        "INSERT INTO ticks VALUES ('u1', 7, '{}', '{\"0\":5}', 700, 1, 2, true, 1, 'j', 1, NULL, 0, false)",
    ]
    return [row.replace(":", r"\:") for row in rows]


def test_a_newer_catalog_is_refused_for_reading_and_for_upgrading(
    catalog: Catalog, opened: Callable[[], Catalog]
) -> None:
    with catalog.write() as session:
        session.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(CatalogTooNew), opened().read():
        pass
    with pytest.raises(CatalogTooNew):
        opened().upgrade()
    assert opened().revision() == "9999"


def test_several_upgrades_at_once_make_one_catalog(opened: Callable[[], Catalog]) -> None:
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(opened().upgrade) for _ in range(6)]:
            done.result()
    add_source(opened())


def test_an_embedded_catalog_is_made_on_first_use_a_server_catalog_is_not(opened: Callable[[], Catalog]) -> None:
    catalog = opened()
    if catalog.is_embedded:
        catalog.ensure()
        assert catalog.revision() == HEAD
    else:
        with pytest.raises(CatalogMissing):
            catalog.ensure()


def test_a_file_of_somebody_else_does_not_become_a_catalog_by_itself(tmp_path: Path) -> None:
    other = Catalog(f"sqlite:///{tmp_path / 'other.db'}")
    with other._writing.begin() as connection:
        connection.execute(text("CREATE TABLE notes (body TEXT)"))
    with pytest.raises(CatalogMissing):
        other.ensure()
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(CatalogUnusable, match="not a database"):
        Catalog(f"sqlite:///{tmp_path / 'text.db'}").check()


def test_the_postgres_database_may_belong_to_another_alembic(postgres: Postgres) -> None:
    name = postgres.create_database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
        connection.execute("INSERT INTO alembic_version VALUES ('somebody-elses')")
        connection.execute("CREATE TABLE jobs (mine int)")
    catalog = Catalog(postgres.url(name))
    catalog.upgrade()
    add_source(catalog)
    catalog.close()
    with postgres.connect(name) as connection:
        ours = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'mzshare'").fetchone()
        theirs = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
    assert ours == (len(TableRow.metadata.tables) + 1,)
    assert theirs == [("alembic_version",), ("jobs",)]
    postgres.drop_database(name)


def test_an_unreachable_server_is_transient_and_tells_no_password(postgres: Postgres) -> None:
    url = postgres.url("absent").replace("mzshare@", "mzshare:s3cr3t@") + "?password=s3cr3t"
    with pytest.raises(CatalogUnreachable) as refused:
        Catalog(url).check()
    assert "does not exist" in refused.value.line
    assert "s3cr3t" not in refused.value.line
    assert "s3cr3t" not in str(refused.value.__cause__)


def test_a_server_that_takes_no_writes_is_transient_and_works_again_once_promoted() -> None:
    server = Postgres()
    try:
        with Catalog(server.start().url()) as catalog:
            catalog.upgrade()
            server.stop()
            (server.folder / "data" / "standby.signal").touch()
            server.start()
            wait_until(lambda: _is_readable(catalog), 30, "the standby to be read from")
            with pytest.raises(CatalogUnreachable, match="does not answer: cannot"):
                add_source(catalog)
            with server.connect() as connection:
                assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
            assert add_source(catalog)
    finally:
        server.remove()


def _is_readable(catalog: Catalog) -> bool:
    try:
        return catalog.revision() == HEAD
    except CatalogUnreachable:
        return False


def test_a_connection_that_breaks_is_transient_and_the_next_transaction_works(postgres: Postgres) -> None:
    name = postgres.create_database()
    catalog = Catalog(postgres.url(name))
    catalog.upgrade()
    source = add_source(catalog)
    with pytest.raises(CatalogUnreachable), catalog.locked(source) as (session, _state):
        _terminate(postgres, session.execute(text("SELECT pg_backend_pid()")).scalar_one())
    assert CatalogTickStore(catalog, source).load().source_id == source
    catalog.close()
    postgres.drop_database(name)


def _terminate(postgres: Postgres, pid: int) -> None:
    with psycopg.connect(host="127.0.0.1", port=postgres.port, user="mzshare", dbname="postgres") as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
