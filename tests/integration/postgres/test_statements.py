"""Sources and tables of a real publication, as the command line makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.connectors.postgres.specs import PostgresExportDetails
from airflow_provider_mzshare.control.definition_errors import BadExport
from airflow_provider_mzshare.core.ids import journal_of
from airflow_provider_mzshare.errors import NotAuthorized, ReferenceMissing, SpecConflict, StatementError
from tests.support.catalog import new_sqlite
from tests.support.statements import Session
from tests.support.upstream_postgres import CONNECTION, PUBLICATION, Database

SOURCE = f"CREATE SOURCE s FROM POSTGRES CONNECTION {CONNECTION} (PUBLICATION '{PUBLICATION}');"


@pytest.fixture
def sql(tmp_path: Path, upstream: Database) -> Iterator[Session]:
    """With a connection to the upstream, which publishes all of its tables."""
    upstream.publish()
    session = Session(new_sqlite(tmp_path / "catalog.db"))
    session.connections = FixedConnections({CONNECTION: upstream.connection()})
    yield session
    session.catalog.close()


def shown(sql: Session, what: str) -> str:
    (row,) = sql.rows(f"SHOW CREATE {what}")
    return str(row["create_sql"])


def test_a_source_and_a_table_are_made_and_shown(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(10,2), note text)")
    sql.run(SOURCE + "CREATE TABLE orders FROM SOURCE s (REFERENCE public.orders)")

    source, table = sql.source(), sql.table("orders")
    assert source.incarnation.startswith("postgres:")
    assert journal_of(source.incarnation)
    details = table.spec.details
    assert isinstance(details, PostgresExportDetails)
    assert details.oid == upstream.value("SELECT 'orders'::regclass::oid::bigint")
    assert details.keys == ("id",)
    assert [(column.name, column.upstream) for column in details.columns] == [
        ("id", "bigint"), ("total", "numeric(10,2)"), ("note", "text"),
    ]  # fmt: skip
    assert (table.spec.format, table.spec.envelope) == ("postgres", "postgres")
    assert details.stream_reference == str(details.oid)

    assert "FROM POSTGRES CONNECTION shop (PUBLICATION 'pub')" in shown(sql, "SOURCE s")
    text = shown(sql, "TABLE orders")
    assert "FORMAT" not in text
    assert "ENVELOPE" not in text
    sql.run("DROP TABLE orders;" + text)
    assert sql.table("orders").spec == table.spec
    assert upstream.slots() == []


def test_the_same_table_again_changes_nothing(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id bigint PRIMARY KEY, taken interval)")
    again = "CREATE TABLE IF NOT EXISTS t FROM SOURCE s (REFERENCE t) WITH (TEXT COLUMNS (taken))"
    sql.run(SOURCE + again)
    before = sql.table()
    upstream.run("ALTER TABLE t ADD COLUMN more text")
    sql.run(SOURCE.replace("SOURCE s", "SOURCE IF NOT EXISTS s") + again)
    assert sql.table() == before
    with pytest.raises(SpecConflict, match="another definition"):
        sql.run("CREATE TABLE IF NOT EXISTS t FROM SOURCE s (REFERENCE t) WITH (EXCLUDE COLUMNS (taken))")


def test_what_is_offered_is_kept_and_refreshed(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE a (id int PRIMARY KEY)", "CREATE SCHEMA x", "CREATE TABLE x.a (id int PRIMARY KEY)")
    sql.run(SOURCE)
    query = "SELECT namespace, name FROM mz_internal.mz_source_references ORDER BY namespace, name"
    assert [tuple(row.values()) for row in sql.rows(query)] == [("public", "a"), ("x", "a")]
    with pytest.raises(BadExport.__mro__[1], match="ambiguous"):
        sql.run("CREATE TABLE t FROM SOURCE s (REFERENCE a)")
    upstream.run("CREATE TABLE b (id int PRIMARY KEY)")
    with pytest.raises(ReferenceMissing):
        sql.run("CREATE TABLE t FROM SOURCE s (REFERENCE public.c)")
    sql.run("ALTER SOURCE s REFRESH REFERENCES")
    assert len(sql.rows(query)) == 3


def test_a_column_of_another_type_is_text_or_left_out(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id bigint PRIMARY KEY, taken interval, tags text[])")
    sql.run(SOURCE)
    with pytest.raises(BadExport, match="has the type interval") as refused:
        sql.run("CREATE TABLE t FROM SOURCE s")
    assert "TEXT COLUMNS (taken, tags)" in refused.value.hint
    sql.run("CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS (taken), EXCLUDE COLUMNS (tags))")
    assert [(c.name, c.type) for c in sql.table().spec.columns] == [("id", "bigint"), ("taken", "text")]


@pytest.mark.parametrize(
    ("table", "clauses", "why"),
    [
        ("a int", "", "no key"),
        ("a int PRIMARY KEY", "ENVELOPE UPSERT", "always has the rows"),
        ("a int PRIMARY KEY", "WITH (SNAPSHOT = false)", "always begins"),
        ("a int PRIMARY KEY", "FORMAT JSON", "nothing to decode"),
        ("a int PRIMARY KEY, b int", "WITH (EXCLUDE COLUMNS (a))", "in the key"),
        ("a float8 PRIMARY KEY", "", "cannot be in a key"),
        ('a int PRIMARY KEY, "b c" int', "", "b c"),
        ('a int PRIMARY KEY, "A" int', "", "twice"),
        ('a int PRIMARY KEY, "_mz_x" int', "", "_mz_"),
    ],
)
def test_a_table_that_cannot_be_is_refused(
    sql: Session, upstream: Database, table: str, clauses: str, why: str
) -> None:
    upstream.run(f"CREATE TABLE t ({table})")
    sql.run(SOURCE)
    with pytest.raises((BadExport, StatementError), match=why) as refused:
        sql.run(f"CREATE TABLE t FROM SOURCE s (REFERENCE public.t) {clauses}")
    assert refused.value.hint


def test_a_key_of_a_type_that_no_key_has_may_be_text(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE t (a float8 PRIMARY KEY, b int)")
    sql.run(SOURCE + "CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS (a))")
    assert sql.table().spec.columns[0].type == "text"


def test_nothing_is_made_where_a_check_fails(sql: Session, upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE ROLE mere LOGIN")
    try:
        reader = Database(upstream.server, upstream.name, user="mere")
        sql.connections = FixedConnections({CONNECTION: reader.connection()})
        with pytest.raises(NotAuthorized, match="no right to replicate"):
            sql.run(SOURCE)
        upstream.run("ALTER ROLE mere REPLICATION")
        sql.run(SOURCE)
        with pytest.raises(BadExport, match="may not read it") as refused:
            sql.run("CREATE TABLE t FROM SOURCE s")
        upstream.run(*refused.value.hint.split("; "))
        sql.run("CREATE TABLE t FROM SOURCE s")
    finally:
        upstream.run("DROP OWNED BY mere", "DROP ROLE mere")


def test_a_dropped_source_says_what_it_leaves(sql: Session) -> None:
    sql.run(SOURCE)
    (message,) = sql.run("DROP SOURCE s")
    assert "its replication slot goes once its app has ended" in message


def test_settings_of_a_journal_are_a_recorded_sources_too(sql: Session) -> None:
    sql.run(SOURCE.replace(";", " WITH (RETAIN JOURNAL FOR '1 day');"))
    assert sql.source().settings.retain_journal_seconds == 86_400
