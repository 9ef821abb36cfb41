"""What the relations say of definitions is what SHOW CREATE prints, after every kind of change."""

from __future__ import annotations

from sqlalchemy import text

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.relations.create_sql import refresh_create_sql
from airflow_provider_mzshare.control.statements.handlers.show import create_sql
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from tests.integration.catalog.test_versions import _rows_of_0001
from tests.support.relations import Described

CHANGES = [
    "CREATE SOURCE a FROM LOAD GENERATOR AUCTION",
    "CREATE SOURCE c FROM LOAD GENERATOR COUNTER (UP TO 5)",
    "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)",
    "CREATE TABLE old_bids FROM SOURCE a (REFERENCE bids) WITH (EXCLUDE COLUMNS (amount))",
    "CREATE VIEW v AS SELECT b.id FROM bids AS b",
    "CREATE VIEW w AS SELECT v.id FROM v JOIN old_bids AS o ON o.id = v.id",
    "CREATE VIEW how_far AS SELECT * FROM a",
    "ALTER SOURCE a SET (TRIGGER INTERVAL '5s')",
    "ALTER SOURCE a RESET (TRIGGER INTERVAL)",
    "ALTER TABLE bids SET (RETAIN HISTORY FOR '2 days')",
    "ALTER SOURCE a RENAME TO auctions",
    'ALTER TABLE bids RENAME TO "Bids"',
    "ALTER VIEW v RENAME TO first_view",
    'ALTER TABLE "Bids" SWAP WITH old_bids FORCE',
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.users FROM SOURCE auctions (REFERENCE users)",
    "CREATE VIEW shop.names AS SELECT name FROM shop.users",
    "ALTER SCHEMA shop RENAME TO store",
    "CREATE SCHEMA shop",
    "ALTER SCHEMA shop SWAP WITH store FORCE",
    "ALTER SYSTEM SET force_source_table_syntax = false",
    "CREATE SOURCE l FROM LOAD GENERATOR AUCTION FOR TABLES (bids AS l_bids, users AS l_users)",
    "CREATE SOURCE s FROM LOAD GENERATOR COUNTER ENVELOPE NONE EXPOSE PROGRESS AS s_far",
    "CREATE VIEW on_s AS SELECT * FROM s",
    "ALTER SOURCE l ADD SUBSOURCE accounts AS l_accounts",
    "ALTER SOURCE s RENAME TO t",
    "ALTER SOURCE l DROP SUBSOURCE l_users",
    "DROP VIEW on_s",
    "DROP TABLE old_bids CASCADE",
    "DROP SOURCE l CASCADE",
    "BEGIN; CREATE TABLE x FROM SOURCE auctions (REFERENCE bids); ALTER SOURCE auctions RENAME TO z; COMMIT",
]


def test_the_statements_of_relations_are_never_stale(described: Described) -> None:
    told = 0
    for change in CHANGES:
        described.run(change)
        assert described.statements() == described.printed(), change
        told += len(described.statements())
    assert told > 200
    assert all(described.statements().values())


def test_a_query_sees_what_its_own_transaction_has_changed(described: Described) -> None:
    described.run("CREATE SOURCE a FROM LOAD GENERATOR AUCTION", "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)")
    script = (
        "BEGIN; ALTER SOURCE a RENAME TO z; ALTER TABLE bids RENAME TO b; "
        "SELECT t.name, t.create_sql, s.status FROM mz_tables t JOIN mz_source_statuses s ON s.id = t.id; "
        "ALTER TABLE b RENAME TO c; COMMIT"
    )
    [answer] = [one.rows for one in described.script(script) if one.rows is not None]
    assert answer is not None
    assert [(row["name"], row["status"]) for row in answer] == [("b", "starting")]
    assert answer[0]["create_sql"].startswith("CREATE TABLE public.b ")
    assert "FROM SOURCE public.z" in answer[0]["create_sql"]
    assert described.statements() == described.printed()


def test_a_migration_and_its_rollback_are_seen_at_once(described: Described) -> None:
    described.run(
        "ALTER SYSTEM SET force_source_table_syntax = false",
        "CREATE SOURCE s FROM LOAD GENERATOR COUNTER ENVELOPE NONE",
        "CREATE VIEW on_s AS SELECT * FROM s",
        "CREATE SOURCE l FROM LOAD GENERATOR AUCTION FOR ALL TABLES",
        "CREATE VIEW on_l AS SELECT b.id FROM bids AS b",
    )
    before, actions = described.statements(), ("migrate", "rollback", "migrate", "finalize")
    for action in actions:
        assert not run(described.catalog, Wanted(everything=True), Run(action, apply=True)).failed
        assert described.statements() == described.printed(), action
        assert (described.statements() == before) is (action == "rollback")
    statuses = {row["id"]: row["type"] for row in described.query("SELECT id, type FROM mz_source_statuses")}
    assert statuses == {
        **dict.fromkeys((row["id"] for row in described.query("SELECT id FROM mz_tables")), "table"),
        **dict.fromkeys((row["id"] for row in described.query("SELECT id FROM mz_sources")), "load-generator"),
    }
    assert len(described.history(described.id("s"))) == 1


def test_nothing_is_printed_anew_unless_it_has_changed(described: Described) -> None:
    described.run(*CHANGES[:7])
    with described.catalog.write() as session:
        assert refresh_create_sql(session, create_sql) == set()
    described.run("ALTER TABLE old_bids SET (RETAIN HISTORY FOR '3 days')")
    with described.catalog.write() as session:
        assert refresh_create_sql(session, create_sql) == set()


def test_a_dry_run_changes_nothing_that_is_shown(described: Described) -> None:
    described.run(*CHANGES[:5])
    before = described.statements()
    described.run("EXPLAIN ALTER SOURCE a RENAME TO b")
    assert described.statements() == before


def _fill(catalog: Catalog) -> None:
    """As the first version left it."""
    catalog.upgrade("0001")
    with catalog._writing.begin() as connection:
        for statement in _rows_of_0001():
            connection.execute(text(statement))


def test_an_older_catalog_has_its_statements_after_the_upgrade(empty_url: str) -> None:
    with Catalog(empty_url) as old:
        _fill(old)
        old.upgrade()
        described = Described(old)
        assert described.statements() == described.printed()
        assert len(described.statements()) == 2
        assert described.one("SELECT messages_received AS n FROM mz_source_statistics WHERE id = 'u1'") == {"n": 5}
        assert {row["status"] for row in described.query("SELECT status FROM mz_source_statuses")} == {"starting"}


def test_counters_of_an_older_catalog_go_on(empty_url: str) -> None:
    with Catalog(empty_url) as old:
        _fill(old)
        old.upgrade("0006")
        with old._writing.begin() as connection:
            connection.execute(text("DELETE FROM statistics WHERE id = 'u2'"))
            connection.execute(text("UPDATE tables SET rows = 7, errors = 1 WHERE id = 'u2'"))
            connection.execute(
                text("INSERT INTO statistics (id, messages_received, updates_staged, updates_committed) "
                     "VALUES ('u2', 20, 20, 15)")
            )  # fmt: skip
        old.upgrade()
        asked = "SELECT messages_received AS m, updates_staged AS s, updates_committed AS c FROM mz_source_statistics "
        assert Described(old).one(asked + "WHERE id = 'u2'") == {"m": 20, "s": 20, "c": 15}
