"""ALTER SYSTEM and COMMENT ON: what there is, what is refused, and that comments stay with their objects."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog.objects import flags
from airflow_provider_mzshare.control.catalog.objects.comments import comments_of
from airflow_provider_mzshare.control.definition_errors import (
    BadValue,
    NotMigrated,
    UnknownColumn,
    UnknownSchema,
    UnknownSetting,
)
from airflow_provider_mzshare.errors import StatementError, UnknownItem
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session


def value(sql: Session, name: str) -> str:
    with sql.catalog.read() as session:
        return flags.value_of(session, name)


def test_a_new_catalog_has_both_flags_true_and_settings_change(sql_on_both: Session) -> None:
    sql = sql_on_both
    assert [value(sql, name) for name in flags.SETTINGS] == ["true", "true", "30 days", "30 seconds"]
    assert sql.run(
        "ALTER SYSTEM SET enable_create_table_from_source = false;ALTER SYSTEM SET status_history_retention = '1 week';"
    ) == ["ALTER SYSTEM enable_create_table_from_source (false)", "ALTER SYSTEM status_history_retention (7 days)"]
    assert [value(sql, name) for name in flags.SETTINGS] == ["false", "true", "7 days", "30 seconds"]
    with sql.catalog.read() as session:
        assert flags.retention_ms(session) == 7 * 86_400_000
    sql.run("ALTER SYSTEM RESET enable_create_table_from_source; ALTER SYSTEM RESET status_history_retention")
    assert [value(sql, name) for name in flags.SETTINGS] == ["true", "true", "30 days", "30 seconds"]


def test_settings_that_do_not_exist_and_values_that_are_none(sql: Session) -> None:
    with pytest.raises(UnknownSetting) as raised:
        sql.run("ALTER SYSTEM SET enable_everything = true")
    assert all(name in raised.value.hint for name in flags.SETTINGS)
    for text in ("status_history_retention = 'long'", "status_history_retention = '0s'"):
        with pytest.raises(BadValue):
            sql.run(f"ALTER SYSTEM SET {text}")
    with pytest.raises(UnknownSetting):
        sql.run("ALTER SYSTEM RESET nope")
    with pytest.raises(StatementError, match="true or false"):
        sql.run("ALTER SYSTEM SET force_source_table_syntax = 'perhaps'")


def test_the_flag_of_the_old_syntax_waits_for_the_last_migration(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run("ALTER SYSTEM SET force_source_table_syntax = false")
    sql.run("CREATE SOURCE c FROM LOAD GENERATOR COUNTER ENVELOPE NONE")
    sql.run("CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR ALL TABLES")
    for text in ("SET force_source_table_syntax = true", "RESET force_source_table_syntax"):
        with pytest.raises(NotMigrated) as raised:
            sql.run(f"ALTER SYSTEM {text}")
        assert raised.value.left[:2] == ["source c", "source a"]
        assert "subsource bids" in raised.value.left
    assert value(sql, flags.FORCE_TABLES) == "false"
    sql.run("DROP SOURCE c; DROP SOURCE a; ALTER SYSTEM SET force_source_table_syntax = true")
    assert value(sql, flags.FORCE_TABLES) == "true"


def test_comments_are_on_objects_whatever_they_are_called(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(
        AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids); CREATE TABLE u FROM SOURCE a (REFERENCE bids);"
        "CREATE VIEW v AS SELECT id, amount * 2 AS double_amount FROM t;"
        "COMMENT ON TABLE t IS 'it''s bids'; COMMENT ON COLUMN t.id IS 'key'; COMMENT ON SOURCE a IS 'all';"
        "COMMENT ON VIEW v IS 'v'; COMMENT ON COLUMN v.double_amount IS '2x'; COMMENT ON COLUMN a.partition IS 'p';"
        "COMMENT ON SCHEMA public IS 'home'; ALTER TABLE t SWAP WITH u FORCE; ALTER VIEW v RENAME TO w;"
    )
    with sql.catalog.read() as session:
        found = {one: comments_of(session, one) for one in ("u1", "u2", "u3", "u4", "s1")}
    assert found == {
        "u1": {"": "all", "partition": "p"},
        "u2": {"": "it's bids", "id": "key"},
        "u3": {},
        "u4": {"": "v", "double_amount": "2x"},
        "s1": {"": "home"},
    }
    sql.run("COMMENT ON TABLE u IS NULL; COMMENT ON COLUMN u.id IS 'other'; COMMENT ON COLUMN w.double_amount IS NULL")
    with sql.catalog.read() as session:
        assert (comments_of(session, "u2"), comments_of(session, "u4")) == ({"id": "other"}, {"": "v"})


def test_comments_need_something_to_be_on(sql: Session) -> None:
    sql.run(AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids) WITH (EXCLUDE COLUMNS (buyer))")
    for text, error in (
        ("TABLE nope IS 'x'", UnknownItem),
        ("SOURCE t IS 'x'", UnknownItem),
        ("SCHEMA nope IS 'x'", UnknownSchema),
        ("COLUMN t.buyer IS 'x'", UnknownColumn),
        ("COLUMN nope.id IS 'x'", UnknownItem),
        ("COLUMN a.id IS NULL", UnknownColumn),
    ):
        with pytest.raises(error):
            sql.run(f"COMMENT ON {text}")
