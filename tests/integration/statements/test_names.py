"""RENAME and SWAP: names only. Whoever reads by name sees the one or the other, never neither and never both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.dependents import direct
from airflow_provider_mzshare.control.definition_errors import NotPossible, ReservedSchema
from airflow_provider_mzshare.control.lifecycle.typed_names import find_item
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.values import Swap
from airflow_provider_mzshare.control.statements.run import run_transactions
from airflow_provider_mzshare.errors import NameTaken, StatementError, TerminalError, UnknownItem
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

TWO = AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids); CREATE TABLE u FROM SOURCE a (REFERENCE users);"
SWAPS = 100
T = QualifiedName("public", "t")


def test_a_rename_keeps_the_id_and_all_that_hangs_on_it(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(TWO + "CREATE VIEW v AS SELECT id FROM t; COMMENT ON TABLE t IS 'bids'")
    sql.tick({4: 3}, source="a")
    before = sql.table()
    odd = 'it\'s "odd"; $(x) {{ y }} --conf 🙂'
    quoted = '"' + odd.replace('"', '""') + '"'
    assert sql.run(f"ALTER TABLE t RENAME TO {quoted}") == [f"ALTER TABLE public.t u2 (now public.{quoted})"]
    after = sql.table(odd)
    assert (after.id, after.spec, after.upper, after.position) == (
        before.id, before.spec, before.upper, before.position,
    )  # fmt: skip
    assert quoted in str(sql.rows("SHOW CREATE v")[0]["create_sql"])
    sql.run("ALTER SOURCE a RENAME TO b; ALTER VIEW v RENAME TO w")
    assert "FROM SOURCE public.b" in str(sql.rows("SHOW CREATE u")[0]["create_sql"])
    assert [row["name"] for row in sql.rows("SHOW VIEWS")] == ["public.w"]
    with pytest.raises(UnknownItem):
        sql.run("ALTER TABLE t RENAME TO x")
    sql.tick({4: 4}, source="b")
    assert sql.table(odd).upper > before.upper, "its ticks go on"


def test_what_cannot_be_renamed_or_swapped(sql: Session) -> None:
    sql.run(TWO + "CREATE VIEW v AS SELECT id FROM t")
    for text, error, told in (
        ("ALTER TABLE t RENAME TO u", NameTaken, "it is a table"),
        ("ALTER TABLE t RENAME TO v", NameTaken, "it is a view"),
        ("ALTER TABLE t RENAME TO t", NameTaken, "already exists"),
        ("ALTER SOURCE t RENAME TO x", UnknownItem, "is a table, not a"),
        ("ALTER VIEW nope RENAME TO x", TerminalError, "view 'public.nope' does not exist"),
        ("ALTER TABLE t SWAP WITH t", StatementError, "with itself"),
        ("ALTER TABLE t SWAP WITH v", UnknownItem, "is a view, not a"),
        ("ALTER TABLE t SWAP WITH nope", UnknownItem, "nope"),
        ("ALTER TABLE t SWAP WITH mz_internal.u1", UnknownItem, "mz_internal"),
    ):
        with pytest.raises(error, match=told):
            sql.run(text)
    with pytest.raises(NotPossible, match="with itself"):
        list(run_transactions(sql.catalog, [[Swap("table", T, T)]], sql.connections))
    assert sql.names() == ["a", "t", "u"]
    with pytest.raises(ReservedSchema):
        sql.run("CREATE TABLE mz_x.t FROM SOURCE a (REFERENCE bids)")


def test_a_swap_changes_what_names_mean_and_nothing_that_is_stored_by_id(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(TWO + "CREATE VIEW v AS SELECT id FROM t; CREATE TABLE shop.x FROM SOURCE a (REFERENCE users);")
    sql.tick({4: 3}, source="a")
    t, u = sql.table("t"), sql.table("u")
    assert sql.run("ALTER TABLE t SWAP WITH u") == ["ALTER TABLE public.t u2 (swapped with public.u u3)"]
    assert (sql.table("t").id, sql.table("u").id) == (u.id, t.id)
    assert (sql.table("t").spec, sql.table("u").spec) == (u.spec, t.spec)
    assert "FROM u" in str(sql.rows("SHOW CREATE v")[0]["create_sql"]).replace("public.u", "u")
    with sql.catalog.read() as session:
        assert [item.kind for item in direct(session, [t.id])[t.id]] == ["view"]
    sql.run("ALTER TABLE u SWAP WITH shop.x")
    with sql.catalog.read() as session:
        assert items.find_table(session, ("shop", "x")).id == t.id
    sql.run("ALTER TABLE u SWAP WITH shop.x; ALTER TABLE t SWAP WITH u")
    assert (sql.table("t"), sql.table("u")) == (t, u)


def test_a_transaction_of_names_is_all_or_nothing(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(TWO)
    sql.tick({4: 3}, source="a")
    with pytest.raises(UnknownItem):
        sql.run("BEGIN; ALTER TABLE t SWAP WITH u; ALTER SOURCE a RENAME TO b; ALTER TABLE nope RENAME TO x; COMMIT")
    assert (sql.names(), sql.table("t").id) == (["a", "t", "u"], "u2")
    sql.run(
        "BEGIN; ALTER SOURCE a RENAME TO b; ALTER TABLE t RENAME TO old; "
        "CREATE TABLE t FROM SOURCE b (REFERENCE accounts); ALTER TABLE t SWAP WITH old FORCE; COMMIT"
    )
    assert {n: sql.table(n).id for n in ("t", "old")} == {"t": "u2", "old": "u4"}, "statements see those before them"


@contextmanager
def polling(url: str, name: str) -> Iterator[list[tuple[str, str]]]:
    """Reads a name as fast as it can, from its own connection; what it saw, as id and reference."""
    seen: list[tuple[str, str]] = []
    problems: list[BaseException] = []
    done, begun = threading.Event(), threading.Event()

    def read() -> None:
        with Catalog(url) as catalog:
            try:
                while not done.wait(0.001):  # as a client would, and without taking the swaps' time
                    item = find_item(catalog, name)
                    assert isinstance(item, items.TableItem)
                    seen.append((item.id, item.spec.reference))
                    begun.set()
            except BaseException as error:
                problems.append(error)
                begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait(30)
    try:
        yield seen
    finally:
        done.set()
        reader.join(30)
    assert not problems, problems
    assert not reader.is_alive()


def test_readers_of_a_name_never_see_it_missing_or_mixed_while_it_is_swapped(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(TWO)
    sql.tick({4: 1}, source="a")
    with polling(sql.catalog.url, "t") as seen:
        for number in range(SWAPS):
            sql.run("ALTER TABLE t SWAP WITH u")
            if number % 10 == 0:
                sql.tick({4: number + 2}, source="a")  # the source goes on meanwhile
    assert set(seen) == {("u2", "bids"), ("u3", "users")}, "each id with its own definition"
    assert sql.table("t").id == "u2", "an even number of swaps is none"
