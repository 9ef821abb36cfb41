"""What old-style sources are called, shown as and read back as, and how every lookup knows their outputs."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.legacy_sources import legacy_objects
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.control.catalog.queries.overviews import table_overviews
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.catalog.queries.uppers import table_uppers
from airflow_provider_mzshare.control.definition_errors import NotMigrated, NotPossible
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.control.statements.legacy.problems import OldSyntax
from airflow_provider_mzshare.errors import UnknownItem
from tests.support.old_style import OldStyle, auction, generator

CORPUS = {
    "counter": (
        "CREATE SOURCE c FROM LOAD GENERATOR COUNTER (SEED 7) ENVELOPE NONE",
        "CREATE SOURCE public.c FROM LOAD GENERATOR COUNTER (SEED 7) ENVELOPE NONE",
    ),
    "exposed": (
        'CREATE SOURCE c FROM LOAD GENERATOR KEY VALUE ENVELOPE NONE EXPOSE PROGRESS AS "How far"',
        'CREATE SOURCE public.c FROM LOAD GENERATOR KEY VALUE ENVELOPE NONE EXPOSE PROGRESS AS public."How far"',
    ),
    "keyed": (
        "CREATE SOURCE c FROM LOAD GENERATOR KEY VALUE (KEYS 3) ENVELOPE UPSERT",
        "CREATE SOURCE public.c FROM LOAD GENERATOR KEY VALUE (KEYS 3) ENVELOPE UPSERT",
    ),
    "all": (
        "CREATE SOURCE c FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TRIGGER INTERVAL = '2s')",
        "CREATE SOURCE public.c FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TRIGGER INTERVAL '2 seconds')",
    ),
    "schemas": (
        "CREATE SOURCE c FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction)",
        "CREATE SOURCE public.c FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction)",
    ),
    "tables": (
        (
            "CREATE SOURCE shop.c FROM LOAD GENERATOR AUCTION FOR TABLES (users AS u, bids)"
            " WITH (TEXT COLUMNS (bids.amount), IGNORE COLUMNS (users.name))"
        ),
        (
            "CREATE SOURCE shop.c FROM LOAD GENERATOR AUCTION FOR TABLES (auction.bids AS shop.bids,"
            " auction.users AS public.u)"
            " WITH (TEXT COLUMNS (auction.bids.amount), EXCLUDE COLUMNS (auction.users.name))"
        ),
    ),
}


def definitions(catalog: Catalog, name: items.Name) -> list[object]:
    """Everything that CREATE can say of a source."""
    with catalog.read() as session:
        source = items.find_source(session, name)
        tables = items.list_tables(session, source.id)
        return [source.name, source.spec, source.settings, *((t.name, t.kind, t.spec) for t in tables)]


def test_what_is_shown_makes_the_same_again(old: OldStyle) -> None:
    for text, printed in CORPUS.values():
        old.sql(text)
        ((statement,),) = [transaction.statements for transaction in parse_script(text)]
        assert isinstance(statement, sql.CreateSource)
        name = str(statement.name)
        assert old.create_sql(name) == printed
        before = definitions(old.catalog, (statement.name.schema, statement.name.name))
        old.sql(f"DROP SOURCE {name}")
        old.sql(printed)
        assert definitions(old.catalog, (statement.name.schema, statement.name.name)) == before
        assert old.create_sql(name) == printed
        old.sql(f"DROP SOURCE {name}")


def test_parts_are_shown_as_the_statements_of_subsources(old: OldStyle) -> None:
    old.sql("CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR TABLES (bids) WITH (EXCLUDE COLUMNS (bids.bid_time))")
    (bids,) = old.sql("SHOW CREATE SOURCE bids")
    assert bids.rows is not None
    assert bids.rows[0]["create_sql"] == (
        "CREATE SUBSOURCE public.bids (id bigint, buyer bigint, auction_id bigint, amount integer) OF SOURCE public.a"
        " WITH (EXTERNAL REFERENCE auction.bids, EXCLUDE COLUMNS (bid_time));"
    )
    (progress,) = old.sql("SHOW CREATE SOURCE a_progress")
    assert progress.rows is not None
    assert progress.rows[0]["create_sql"] == (
        "CREATE SUBSOURCE public.a_progress (partition integer, offset bigint, tick bigint, mz_timestamp bigint)"
        " OF SOURCE public.a WITH (PROGRESS);"
    )
    for shown in (bids, progress):
        with pytest.raises(NotPossible, match="CREATE SUBSOURCE only shows a subsource"):
            old.sql((shown.rows or [{}])[0]["create_sql"])


def test_lists_tell_parts_from_sources(old: OldStyle) -> None:
    old.sql(
        "CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR TABLES (bids); CREATE TABLE t FROM SOURCE a (REFERENCE users)"
    )
    assert [(row["name"], row["kind"], row["tables"]) for row in old.rows("sources")] == [
        ("public.a", "load_generator", 1),
        ("public.bids", "subsource", None),
        ("public.a_progress", "progress", None),
    ]
    assert [row["name"] for row in old.rows("tables")] == ["public.t"]
    (of_schema,) = old.sql("CREATE SCHEMA x; SHOW SUBSOURCES FROM x")[1:]
    assert of_schema.rows == []


# ── names lead to outputs ─────────────────────────────────────────────────────────────────────────────────────────────


def test_every_lookup_knows_the_output_by_its_sources_name(old: OldStyle) -> None:
    old.run(generator(name="shop.c"))
    source, output = old.source("shop.c"), old.table("shop.c")
    old.tick("shop.c", {0: 5})
    name = ("shop", "c")
    with old.catalog.read() as session:
        assert table_uppers(session)[name].table_id == output.id
        assert table_uppers(session)[name].table == "shop.c"
        found = convergences(session, [name, output.id])
        assert found[name] == found[output.id]
        assert (found[name].table_id, found[name].table, found[name].source) == (output.id, "shop.c", "shop.c")
        (overview,) = table_overviews(session, source.id)
        assert overview.item.display == "shop.c"
        assert table_read_point(session, output.id).name == "shop.c"
        (member,) = CatalogTickStore(old.catalog, source.id).members()
        assert (member.table_id, member.name) == (output.id, "shop.c")
        with pytest.raises(UnknownItem):
            items.find_table(session, ("shop", "c_progress"))


def test_a_backfill_tells_the_output_by_its_sources_name(old: OldStyle) -> None:
    old.run(generator())
    old.tick("c", {0: 5})
    (result,) = old.sql("ALTER TABLE c RESNAPSHOT")
    assert result.id == old.table("c").id
    with old.catalog.read() as session:
        (backfill,) = active_backfills(session)
    (arrival,) = backfill.tables
    assert (arrival.table_id, arrival.name) == (result.id, ("public", "c"))


# ── the flag ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def force(old: OldStyle, value: bool) -> None:
    old.sql(f"ALTER SYSTEM SET force_source_table_syntax = {str(value).lower()}")


REPLACED = {
    "CREATE SOURCE c FROM LOAD GENERATOR COUNTER ENVELOPE NONE": [
        "CREATE SOURCE public.c_source FROM LOAD GENERATOR COUNTER",
        "CREATE TABLE public.c FROM SOURCE public.c_source (REFERENCE counter.counter)",
    ],
    "CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR TABLES (bids, users AS u)"
    " WITH (TEXT COLUMNS (bids.amount), BACKFILL RATE 5)": [
        "CREATE SOURCE public.a FROM LOAD GENERATOR AUCTION WITH (BACKFILL RATE 5)",
        "CREATE TABLE public.bids FROM SOURCE public.a (REFERENCE auction.bids) WITH (TEXT COLUMNS (amount))",
        "CREATE TABLE public.u FROM SOURCE public.a (REFERENCE auction.users)",
    ],
}


def test_old_syntax_is_refused_with_the_new_statements_which_work(old: OldStyle) -> None:
    force(old, True)
    for text, instead in REPLACED.items():
        with pytest.raises(OldSyntax, match="not allowed while force_source_table_syntax is true") as told:
            old.sql(text)
        assert told.value.instead == instead
        assert "; ".join(instead) in told.value.hint
        assert "ALTER SYSTEM SET force_source_table_syntax = false" in told.value.hint
        old.sql("; ".join(instead))
    with pytest.raises(OldSyntax) as told:
        old.sql("ALTER SOURCE a ADD SUBSOURCE accounts")
    assert told.value.instead == ["CREATE TABLE public.accounts FROM SOURCE public.a (REFERENCE auction.accounts)"]
    assert {row["name"] for row in old.rows("tables")} == {"public.c", "public.bids", "public.u"}


def test_a_new_catalog_has_new_syntax_alone(empty_url: str) -> None:
    with Catalog(empty_url) as catalog:
        catalog.upgrade()
        old = OldStyle(catalog)
        old.sql("ALTER SYSTEM RESET force_source_table_syntax")
        with pytest.raises(OldSyntax):
            old.run(auction())


def test_the_flag_waits_for_what_is_not_migrated(old: OldStyle) -> None:
    old.sql("CREATE SOURCE a FROM LOAD GENERATOR AUCTION FOR TABLES (bids)")
    old.sql('CREATE SOURCE x."C" FROM LOAD GENERATOR COUNTER ENVELOPE NONE')
    with old.catalog.read() as session:
        assert [(o.kind, o.name) for o in legacy_objects(session)] == [
            ("source", "a"),
            ("subsource", "bids"),
            ("source", 'x."C"'),
        ]
    with pytest.raises(NotMigrated) as told:
        force(old, True)
    assert told.value.left == ["source a", "subsource bids", 'source x."C"']
    old.sql('DROP SOURCE bids; DROP SOURCE x."C"')
    force(old, True)
