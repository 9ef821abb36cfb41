"""A table takes the name of another only when it is live and caught up, unless it is forced."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.lifecycle.live_errors import NotLive, NotLiveYet
from airflow_provider_mzshare.control.lifecycle.swap_rule import MAX_LAG_MS
from airflow_provider_mzshare.errors import MzShareError
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

BLUE, GREEN = "CREATE SCHEMA blue;", "CREATE SCHEMA green;"
TABLE = "CREATE TABLE {} FROM SOURCE a (REFERENCE {});"
OLD_AND_NEW = AUCTION + TABLE.format("orders", "bids")


@pytest.fixture
def sql(sql_on_both: Session) -> Session:
    """``orders`` is live, ``orders_v2`` came later: nobody has begun to bring it up."""
    sql_on_both.run(OLD_AND_NEW)
    sql_on_both.tick({4: 7}, source="a")
    sql_on_both.run(TABLE.format("orders_v2", "users"))
    return sql_on_both


def refused(sql: Session, text: str) -> MzShareError:
    """Also by EXPLAIN and in a dry run; and nothing has changed."""
    before = {row["id"]: row["name"] for row in sql.rows("SHOW TABLES")}
    found = []
    for asked, dry_run in ((text, False), (text, True), (f"EXPLAIN {text}", False)):
        with pytest.raises((NotLive, NotLiveYet)) as raised:
            sql.run(asked, dry_run=dry_run)
        found.append(raised.value)
    assert len({(type(error), error.line) for error in found}) == 1
    assert {row["id"]: row["name"] for row in sql.rows("SHOW TABLES")} == before
    return found[0]


def test_a_table_that_is_still_filled_takes_no_name(sql: Session) -> None:
    for text in ("ALTER TABLE orders SWAP WITH orders_v2", "ALTER TABLE orders_v2 SWAP WITH orders"):
        error = refused(sql, text)
        assert isinstance(error, NotLiveYet), "it will be there by itself: a retry makes sense"
        assert "table orders_v2 is backfilling, 1 tick (7 offsets) behind, 0 of 7 offsets" in error.message
        assert "table orders is" not in error.message
        assert error.hint.startswith("mzshare wait orders_v2 --for live; or, to swap anyway, mzshare sql 'ALTER TABLE ")
        assert error.hint.endswith(" FORCE'")


def test_force_swaps_and_says_what_was_given_to_readers(sql: Session) -> None:
    old, new = sql.table("orders").id, sql.table("orders_v2").id
    rows = sql.rows("EXPLAIN ALTER TABLE orders SWAP WITH orders_v2 FORCE")
    assert [(row["action"], row["object"], row["detail"]) for row in rows][:2] == [
        ("check table", "public.orders", "live, 0 ticks (0 offsets) behind"),
        ("check table", "public.orders_v2", "backfilling, 1 tick (7 offsets) behind, 0 of 7 offsets"),
    ]
    (told,) = sql.run("ALTER TABLE orders SWAP WITH orders_v2 FORCE")
    assert told.endswith(
        f"(swapped with public.orders_v2 {new}; orders_v2 is backfilling, 1 tick (7 offsets) behind, 0 of 7 offsets)"
    )
    assert (sql.table("orders").id, sql.table("orders_v2").id) == (new, old)


def test_a_dry_run_says_how_far_each_is(sql: Session) -> None:
    sql.run(TABLE.format("other", "users") + "DROP TABLE orders_v2")
    sql.run("DROP TABLE other; CREATE TABLE other FROM SOURCE a (REFERENCE users) WITH (SNAPSHOT = false)")
    sql.tick({4: 9}, source="a")
    (told,) = sql.run("ALTER TABLE orders SWAP WITH other", dry_run=True)
    assert "orders is live, 0 ticks (0 offsets) behind; other is live, 0 ticks (0 offsets) behind" in told
    assert sql.run("ALTER TABLE orders SWAP WITH other")[0].endswith(f"{sql.table('orders').id})")


def test_a_table_without_a_tick_or_one_that_has_stalled_takes_no_name(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(AUCTION + TABLE.format("t", "bids") + TABLE.format("u", "users"))
    both = refused(sql, "ALTER TABLE t SWAP WITH u")
    assert "table t is created, without a tick yet; table u is created, without a tick yet" in both.message
    sql.tick({4: 1}, source="a", fail=("u",))
    sql.tick({4: 2}, source="a")
    error = refused(sql, "ALTER TABLE t SWAP WITH u")
    assert isinstance(error, NotLive), "a retry would not help"
    assert "table u is stalled (the disk is full), 2 ticks (2 offsets) behind" in error.message
    assert "ALTER TABLE u RESUME" in error.hint


def test_all_tables_of_both_schemas_count_and_nothing_else(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(AUCTION + BLUE + GREEN + TABLE.format("blue.t", "bids") + TABLE.format("blue.single", "bids"))
    sql.tick({4: 1}, source="a")
    sql.run(
        "CREATE SOURCE green.never_run FROM LOAD GENERATOR COUNTER; CREATE VIEW green.v AS SELECT id FROM blue.t;"
        "CREATE TABLE elsewhere FROM SOURCE a (REFERENCE bids)"
    )
    sql.run("ALTER SCHEMA blue SWAP WITH green; ALTER SCHEMA blue SWAP WITH green")
    sql.run(TABLE.format("green.t", "users") + TABLE.format("green.more", "users"))
    error = refused(sql, "ALTER SCHEMA blue SWAP WITH green")
    assert error.message.count(" is backfilling, 1 tick (1 offset) behind") == 2
    assert "green.t" in error.message
    assert "green.more" in error.message
    (told,) = sql.run("ALTER SCHEMA blue SWAP WITH green FORCE")
    assert told.startswith("ALTER SCHEMA blue s2 (swapped with green s3; green.t is backfilling, ")


def test_readers_are_not_taken_back_in_time_by_a_table_of_another_source(sql: Session) -> None:
    sql.run("CREATE SOURCE c FROM LOAD GENERATOR COUNTER; CREATE TABLE counted FROM SOURCE c")
    sql.tick({0: 3}, source="c")
    sql.run("ALTER TABLE orders SWAP WITH counted; ALTER TABLE orders SWAP WITH counted")
    with sql.catalog.write() as session:  # as if the source had stood still since
        older = update(TableRow).where(TableRow.id == sql.table("counted").id)
        session.execute(older.values(upper=TableRow.upper - MAX_LAG_MS - 60_000))
    error = refused(sql, "ALTER TABLE orders SWAP WITH counted")
    assert isinstance(error, NotLive)
    assert "but its newest tick is 3" in error.message
    assert error.message.endswith("s older than that of orders")
    assert error.hint.startswith("mzshare status c;")
