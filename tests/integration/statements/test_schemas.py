"""Schemas: made, shown, renamed, swapped, dropped; names change, ids do not."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.definition_errors import (
    NotPossible,
    ReservedSchema,
    SchemaNotEmpty,
    SchemaTaken,
    UnknownSchema,
)
from airflow_provider_mzshare.errors import StatementError
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

TABLE = "CREATE TABLE {} FROM SOURCE a (REFERENCE {});"


def ids(sql: Session, what: str = "TABLES") -> dict[object, object]:
    return {row["name"]: row["id"] for row in sql.rows(f"SHOW {what}")}


def test_a_schema_from_its_making_to_its_end(sql_on_both: Session) -> None:
    sql = sql_on_both
    assert sql.run('CREATE SCHEMA shop; CREATE SCHEMA IF NOT EXISTS shop; CREATE SCHEMA "Ünï code"') == [
        "CREATE SCHEMA shop s2", "CREATE SCHEMA shop s2 (it exists)", 'CREATE SCHEMA "Ünï code" s3',
    ]  # fmt: skip
    assert ids(sql, "SCHEMAS") == {"public": "s1", "shop": "s2", '"Ünï code"': "s3"}
    sql.run(AUCTION + TABLE.format("shop.bids", "bids") + "CREATE VIEW v AS SELECT id FROM shop.bids")
    assert [row["name"] for row in sql.rows("SHOW TABLES FROM shop")] == ["shop.bids"]
    assert sql.rows("SHOW SOURCES FROM shop") == []
    with pytest.raises(SchemaNotEmpty, match=r"still holds table shop\.bids"):
        sql.run("DROP SCHEMA shop")
    assert sql.run('ALTER SCHEMA shop RENAME TO "Market"') == ['ALTER SCHEMA shop s2 (now "Market")']
    assert ids(sql) == {'"Market".bids': "u2"}
    assert 'FROM "Market".bids' in str(sql.rows("SHOW CREATE v")[0]["create_sql"])
    assert sql.run('DROP SCHEMA "Market" CASCADE; DROP SCHEMA IF EXISTS "Market"') == [
        'DROP SCHEMA "Market" s2 (with table "Market".bids, view v)', 'DROP SCHEMA "Market" (it does not exist)',
    ]  # fmt: skip
    assert sql.names() == ["a"]
    assert sql.run("CREATE SCHEMA shop") == ["CREATE SCHEMA shop s4"], "ids are not given twice"


def test_what_is_no_schema_of_yours_is_refused(sql: Session) -> None:
    for text, error in (
        ("CREATE SCHEMA mz_catalog", ReservedSchema),
        ('CREATE SCHEMA "PG_x"', ReservedSchema),
        ("CREATE SCHEMA public", SchemaTaken),
        ("DROP SCHEMA nope", UnknownSchema),
        ("DROP SCHEMA mz_internal CASCADE", ReservedSchema),
        ("DROP SCHEMA public CASCADE", NotPossible),
        ("ALTER SCHEMA public RENAME TO p", NotPossible),
        ("ALTER SCHEMA nope RENAME TO p", UnknownSchema),
        ("ALTER SCHEMA public SWAP WITH nope", UnknownSchema),
        ("ALTER SCHEMA public SWAP WITH public", StatementError),
        ("SHOW TABLES FROM nope", UnknownSchema),
        ("CREATE SOURCE mz_x.s FROM LOAD GENERATOR COUNTER", ReservedSchema),
        ("CREATE VIEW pg_x.v AS SELECT 1 AS one", ReservedSchema),
    ):
        with pytest.raises(error):
            sql.run(text)
    assert ids(sql, "SCHEMAS") == {"public": "s1"}


def test_schemas_change_places_with_all_that_is_in_them(sql_on_both: Session) -> None:
    """The same names in both, and a third that only one has."""
    sql = sql_on_both
    sql.run(
        AUCTION + "CREATE SCHEMA blue; CREATE SCHEMA green;" + TABLE.format("blue.t", "bids")
        + TABLE.format("green.t", "users") + TABLE.format("green.single", "users")
        + "COMMENT ON SCHEMA green IS 'the next one'; CREATE VIEW v AS SELECT id FROM blue.t"
    )  # fmt: skip
    sql.tick({4: 1}, source="a")
    assert sql.run("ALTER SCHEMA blue SWAP WITH green") == ["ALTER SCHEMA blue s2 (swapped with green s3)"]
    assert ids(sql) == {"green.t": "u2", "blue.t": "u3", "blue.single": "u4"}
    assert ids(sql, "SCHEMAS") == {"public": "s1", "blue": "s3", "green": "s2"}
    assert "FROM green.t" in str(sql.rows("SHOW CREATE v")[0]["create_sql"])
    sql.run("ALTER SCHEMA blue SWAP WITH green")
    assert ids(sql) == {"blue.t": "u2", "green.t": "u3", "green.single": "u4"}
    sql.run("ALTER SCHEMA public SWAP WITH blue")
    assert ids(sql) == {"public.t": "u2", "green.t": "u3", "green.single": "u4"}
    assert ids(sql, "SOURCES") == {"blue.a": "u1"}
    sql.run("DROP SCHEMA green CASCADE; ALTER SCHEMA blue RENAME TO green")
    assert ids(sql, "SCHEMAS") == {"public": "s2", "green": "s1"}, "a name that was dropped is free"
