"""EXPLAIN: the plan as rows, and a catalog that is as it was."""

from __future__ import annotations

import pytest
from sqlalchemy import MetaData, select

from airflow_provider_mzshare.control.catalog.database.base import Base
from airflow_provider_mzshare.control.definition_errors import StillUsed
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

SCENE = (
    AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids); CREATE TABLE u FROM SOURCE a (REFERENCE users);"
    "CREATE SCHEMA shop; CREATE VIEW v AS SELECT id FROM t;"
)
EXPLAINED = {
    "CREATE SOURCE c FROM LOAD GENERATOR COUNTER": [("create source", "public.c", "")],
    "CREATE SOURCE IF NOT EXISTS a FROM LOAD GENERATOR AUCTION": [("create source", "public.a", "it exists")],
    "CREATE SCHEMA x": [("create schema", "x", "")],
    "CREATE VIEW w AS SELECT id FROM u": [("create view", "public.w", "")],
    "ALTER SOURCE a SET (BACKFILL RATE 7)": [("alter source", "public.a", "")],
    "ALTER SOURCE a REFRESH REFERENCES": [("alter source", "public.a", "5 references, the same as before")],
    "ALTER TABLE t SET (ON DECODE ERROR 'STOP')": [("alter table", "public.t", "")],
    "ALTER TABLE t RENAME TO x": [("rename table", "public.t", "to public.x")],
    "ALTER TABLE t SWAP WITH u FORCE": [
        ("check table", "public.t", "created, without a tick yet"),
        ("check table", "public.u", "created, without a tick yet"),
        ("rename table", "public.t", "to public.u"), ("rename table", "public.u", "to public.t"),
    ],
    "ALTER SCHEMA shop RENAME TO market": [("rename schema", "shop", "to market")],
    "ALTER SYSTEM SET enable_create_table_from_source = false": [
        ("set", "enable_create_table_from_source", "from true to false")
    ],
    "COMMENT ON TABLE t IS 'x'": [("comment on table", "public.t", "")],
    "DROP TABLE t CASCADE": [("drop view", "public.v", "u4"), ("drop table", "public.t", "u2")],
    "DROP SCHEMA shop": [("drop schema", "shop", "")],
    "DROP TABLE IF EXISTS nope": [("drop table", "public.nope", "it does not exist")],
    "SHOW TABLES": [("read", "show tables", "")],
}  # fmt: skip


def dump(sql: Session) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the catalog."""
    metadata: MetaData = Base.metadata
    with sql.catalog.read() as session:
        return {t.name: sorted(map(tuple, session.execute(select(t))), key=repr) for t in metadata.sorted_tables}


def test_every_statement_is_told_and_none_is_done(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(SCENE)
    before = dump(sql)
    for text, told in EXPLAINED.items():
        rows = sql.rows(f"EXPLAIN {text}")
        assert [(row["action"], row["object"], row["detail"]) for row in rows] == told, text
        assert [row["step"] for row in rows] == list(range(1, len(told) + 1))
    assert dump(sql) == before


def test_the_plan_of_a_table_is_told_with_its_backfill(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(SCENE)
    sql.tick({4: 1_000}, source="a")
    before = dump(sql)
    (result,) = sql.results("EXPLAIN CREATE TABLE w FROM SOURCE a (REFERENCE bids)")
    assert result.rows is not None
    assert [row["action"] for row in result.rows] == ["create table", "backfill", "follow", "cut over"]
    assert "at most 1,000 records of 1 partition" in str(result.rows[1]["detail"])
    assert result.plan is not None
    assert dump(sql) == before
    sql.run(
        "BEGIN; CREATE TABLE w FROM SOURCE a (REFERENCE bids); EXPLAIN CREATE TABLE x FROM SOURCE a (REFERENCE bids);"
        "CREATE TABLE x FROM SOURCE a (REFERENCE bids); COMMIT"
    )
    assert sql.table("w").backfill_id == sql.table("x").backfill_id is not None
    assert len(dump(sql)["backfills"]) == 1, "what EXPLAIN opened was taken back, and theirs is one"


def test_what_would_fail_fails(sql: Session) -> None:
    sql.run(SCENE)
    with pytest.raises(StillUsed):
        sql.run("EXPLAIN DROP TABLE t")
