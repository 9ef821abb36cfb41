"""DROP: refused while something depends on it, or all of it in the right order."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.comments import comments_of
from airflow_provider_mzshare.control.definition_errors import ReadOnly, StillUsed
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError, UnknownItem
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

SCENE = (
    AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids); CREATE TABLE u FROM SOURCE a (REFERENCE users);"
    "CREATE VIEW v AS SELECT id FROM t; CREATE VIEW w AS SELECT v.id FROM v JOIN u ON u.id = v.id;"
    "CREATE VIEW x AS SELECT w.id FROM w JOIN t ON t.id = w.id;"
)


def test_restrict_names_all_that_is_in_the_way(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(SCENE)
    for text, dependents in (
        ("DROP VIEW w", ["view x"]),
        ("DROP VIEW v RESTRICT", ["view w", "view x"]),
        ("DROP TABLE t", ["view v", "view w", "view x"]),
        ("DROP SOURCE a", ["table t", "table u", "view v", "view w", "view x"]),
    ):
        with pytest.raises(StillUsed) as raised:
            sql.run(text)
        assert raised.value.dependents == dependents
        assert raised.value.hint.endswith("CASCADE'")
    assert len(sql.rows("SHOW VIEWS")) == 3


def test_cascade_takes_dependents_before_what_they_depend_on(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(SCENE + "COMMENT ON VIEW x IS 'last'; COMMENT ON COLUMN t.id IS 'key'")
    order = [row["object"] for row in sql.rows("EXPLAIN DROP SOURCE a CASCADE")]
    assert order.index("public.x") < order.index("public.w") < order.index("public.v") < order.index("public.t")
    assert order[-1] == "public.a"
    assert sorted(map(str, order)) == [f"public.{name}" for name in "atuvwx"]
    assert sql.run("DROP TABLE t CASCADE") == ["DROP TABLE public.t u2 (with views public.x, public.w, public.v)"]
    assert (sql.names(), sql.rows("SHOW VIEWS")) == (["a", "u"], [])
    with sql.catalog.read() as session:
        assert (comments_of(session, "u6"), comments_of(session, "u2")) == ({}, {})
        assert items.get_table_item(session, ItemId("u2")).status == "dropped"
    assert sql.run("DROP SOURCE a CASCADE; DROP SOURCE IF EXISTS a; DROP TABLE IF EXISTS u") == [
        "DROP SOURCE public.a u1 (with table public.u)", "DROP SOURCE public.a (it does not exist)",
        "DROP TABLE public.u (it does not exist)",
    ]  # fmt: skip
    sql.run(SCENE)
    assert sql.table().id == "u8", "ids are not given twice"


def test_a_view_that_is_gone_holds_nothing_back(sql: Session) -> None:
    sql.run(SCENE + "DROP VIEW x; DROP VIEW w; DROP VIEW v; DROP TABLE t; DROP TABLE u; DROP SOURCE a")
    assert sql.names() == []


def test_what_is_of_another_kind_is_not_dropped(sql: Session) -> None:
    sql.run(SCENE)
    for text, told in (
        ("DROP TABLE v", "is a view, not a"),
        ("DROP VIEW t", "is a table, not a"),
        ("DROP SOURCE t", "is a table, not a"),
        ("DROP TABLE IF EXISTS a", "is a source, not a"),
        ("DROP VIEW nope", "does not exist"),
    ):
        with pytest.raises((UnknownItem, TerminalError), match=told):
            sql.run(text)


def test_rows_cannot_be_written_and_the_error_names_what_feeds_them(sql: Session) -> None:
    sql.run(SCENE)
    for text, told in (
        ("INSERT INTO t VALUES (1)", "INSERT into table t is not possible: it is read-only: source a feeds it"),
        ("UPDATE t SET id = 1", "UPDATE of table t is not possible: it is read-only: source a feeds it"),
        ("DELETE FROM v", "DELETE from view v is not possible: a view is read-only: it has no rows of its own"),
        ("DELETE FROM a", "DELETE from source a is not possible: a source is read-only: its relation is its progress"),
    ):
        with pytest.raises(ReadOnly) as raised:
            sql.run(text)
        assert raised.value.message == told
    with pytest.raises(UnknownItem, match="nope"):
        sql.run("DELETE FROM nope")
