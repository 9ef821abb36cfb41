"""The relations as any SQL client meets them: their columns and types, and who may read them."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.relations.install import BY_NAME, RELATIONS, SCHEMAS
from tests.support.postgres import Postgres
from tests.support.relations import Described, Running

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).parents[3] / "docs" / "reference" / "relations.md"
FULL = (
    "CREATE SOURCE a FROM LOAD GENERATOR AUCTION",
    "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)",
    "CREATE VIEW v AS SELECT count(*) AS n FROM bids",
    "COMMENT ON TABLE bids IS 'what was offered'",
    "COMMENT ON COLUMN bids.amount IS 'in cents'",
)


def test_postgres_has_the_columns_and_types_of_the_golden_description(postgres: Postgres) -> None:
    name = postgres.create_database()
    with Catalog(postgres.url(name)) as catalog:
        catalog.upgrade()
    with postgres.connect(name) as connection:
        rows = connection.execute(
            "SELECT a.attrelid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a "
            "JOIN pg_class AS c ON c.oid = a.attrelid WHERE c.relnamespace::regnamespace::text = ANY(%s) "
            "AND a.attnum > 0 ORDER BY 1, a.attnum",
            (list(SCHEMAS),),
        ).fetchall()
    postgres.drop_database(name)
    assert _description(rows) == (GOLDEN / "postgres.txt").read_text()


def test_sqlite_has_the_columns_of_the_golden_description(tmp_path: Path) -> None:
    """A view of SQLite has no types of its own: those are held against values below."""
    with Catalog(f"sqlite:///{tmp_path / 'c.db'}") as catalog:
        catalog.upgrade()
    with sqlite3.connect(tmp_path / "c.db") as connection:
        views = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY 1")]
        types = {name: {c.name: _SQLITE[c.type] for c in BY_NAME[name].columns} for name in views}
        rows = [
            (view, column[1], types[view][column[1]])
            for view in views
            for column in connection.execute(f"PRAGMA table_info({view})")
        ]
    assert _description(rows) == (GOLDEN / "sqlite.txt").read_text()


_SQLITE = {
    "text": "text", "integer": "integer", "bigint": "integer", "boolean": "0 or 1", "text[]": "JSON", "jsonb": "JSON",
}  # fmt: skip


def _description(rows: list[tuple[str, str, str]]) -> str:
    lines = []
    for relation in dict.fromkeys(row[0] for row in rows):
        lines += [relation, *(f"    {name} {kind}" for of, name, kind in rows if of == relation), ""]
    return "\n".join(lines)


def test_an_sqlite_client_reads_what_is_there(tmp_path: Path) -> None:
    with Catalog(f"sqlite:///{tmp_path / 'c.db'}") as catalog:
        catalog.upgrade()
        _fill(Described(catalog))
    with sqlite3.connect(tmp_path / "c.db") as connection:
        for relation in RELATIONS:
            kinds = {"text": {"text"}, "integer": {"integer"}, "bigint": {"integer"}, "boolean": {"integer"}}
            for column in relation.columns:
                found = connection.execute(f'SELECT DISTINCT typeof("{column.name}") FROM {relation.name}')
                wrong = {row[0] for row in found} - kinds.get(column.type, {"text"}) - {"null"}
                assert not wrong, f"{relation.name}.{column.name}"
        names = connection.execute("SELECT name, json_array_length(columns) FROM mz_source_references ORDER BY 1")
        assert names.fetchall()[0] == ("accounts", 3)
        assert connection.execute("SELECT name, source_id FROM mz_tables").fetchall() == [("bids", "u1")]


def test_a_postgres_client_with_rights_on_the_two_schemas_alone_reads_what_is_there(postgres: Postgres) -> None:
    name = postgres.create_database()
    with Catalog(postgres.url(name)) as catalog:
        catalog.upgrade()
        _fill(Described(catalog))
    with postgres.connect(name) as owner:
        owner.execute(f'CREATE ROLE "{name}" LOGIN'.encode())
        for schema in SCHEMAS:
            owner.execute(f'GRANT USAGE ON SCHEMA {schema} TO "{name}"'.encode())
            owner.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO "{name}"'.encode())
    url = make_url(postgres.url(name))
    try:
        with psycopg.connect(host=url.host, port=url.port, user=name, dbname=name) as reader:
            for relation in RELATIONS:
                reader.execute(f"SELECT * FROM {relation.schema}.{relation.name}".encode())
            row = reader.execute(
                "SELECT columns, updated_at::timestamptz <= now() FROM mz_internal.mz_source_references "
                "WHERE name = 'accounts'"
            ).fetchone()
            assert row == (["id", "org_id", "balance"], True)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("SELECT * FROM mzshare.items")
    finally:
        postgres.drop_database(name)
        with postgres.connect() as owner:
            owner.execute(f'DROP ROLE "{name}"'.encode())


def test_the_page_about_relations_tells_every_column() -> None:
    page = DOCS.read_text()
    for relation in RELATIONS:
        section = re.search(rf"^### `{relation.name}`\n(.*?)(?=^#|\Z)", page, re.DOTALL | re.MULTILINE)
        assert section, relation.name
        told = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section[1], re.MULTILINE)
        assert told == [(column.name, column.type) for column in relation.columns], relation.name


def _fill(described: Described) -> None:
    """At least a row in most relations."""
    described.run(*FULL)
    running = Running(described, "a")
    running.started()
    running.becomes("running")
    running.tick({4: 10}, stats={"messages": 10, "bytes": 500})
    described.run("CREATE TABLE later FROM SOURCE a (REFERENCE bids)", "DROP TABLE later")
