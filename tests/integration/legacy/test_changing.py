"""Subsources that are added, dropped and renamed; what goes with what; what the source's definition says then."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.definition_errors import NotPossible, StillUsed
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.legacy.problems import OutputNameTaken, ReferenceTaken
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.errors import UnknownItem
from tests.support.old_style import (
    OUTPUTS,
    OldStyle,
    auction,
    drop,
    for_tables,
    generator,
    named,
    new_source,
    table,
)


def add(source: str, *subsources: tuple[str, str | None], **more: tuple[str, ...]) -> sql.AddSubsources:
    wanted = tuple((tuple(ref.split(".")), named(name) if name else None) for ref, name in subsources)
    return sql.AddSubsources(named(source), wanted, **more)


def take(source: str, *names: str, **more: bool) -> sql.DropSubsources:
    return sql.DropSubsources(named(source), tuple(named(name) for name in names), **more)


def view(name: str, *reads: str) -> sql.CreateView:
    return sql.CreateView(named(name), False, " UNION ALL ".join(f"SELECT 1 AS one FROM {read}" for read in reads))


def stored(old: OldStyle, name: str = "a") -> LegacySpec | None:
    return old.source(name).spec.legacy


def listed(old: OldStyle, name: str = "a") -> tuple[tuple[str, str], ...]:
    found = stored(old, name)
    assert found is not None
    assert found.shape == "tables"
    return found.tables


# ── ADD ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_added_subsource_joins_or_is_backfilled_as_a_table_would_be(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "")))
    (first,) = old.run(add("a", ("users", None)))
    assert first.message.endswith("(public.users joins at the next tick)")
    old.tick("a", {0: 1})
    (later,) = old.run(
        add("a", ("auction.accounts", None), ("auctions", "lots"), exclude_columns=("accounts.balance",))
    )
    accounts, lots = old.table("accounts"), old.table("lots")
    assert (accounts.kind, accounts.status, lots.status) == ("subsource", "backfilling", "backfilling")
    assert accounts.backfill_id == lots.backfill_id
    assert f"public.accounts backfill {accounts.backfill_id}: mzshare start public.a starts it" in later.message
    assert later.plan is not None
    assert later.plan.backfilled == ("public.accounts", "public.lots")
    assert [reference for reference, _ in listed(old)] == [
        "auction.accounts", "auction.auctions", "auction.bids", "auction.users",
    ]  # fmt: skip


def test_what_cannot_be_added(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "b")), new_source("n"), generator(), table("t", "a", "bids"))
    before = old.names()
    with pytest.raises(ReferenceTaken, match=r"has a subsource already, public.b") as taken:
        old.run(add("a", ("bids", "b2")))
    assert "CREATE TABLE … FROM SOURCE public.a (REFERENCE auction.bids)" in taken.value.hint
    with pytest.raises(ReferenceTaken):
        old.run(add("a", ("users", "u1"), ("auction.users", "u2")))
    with pytest.raises(OutputNameTaken, match=r"'public.t' cannot name the subsource of auction.users") as name:
        old.run(add("a", ("users", "t")))
    assert name.value.hint == "ADD SUBSOURCE auction.users AS another name"
    with pytest.raises(NotPossible, match=r"source public.n has tables, not subsources") as new:
        old.run(add("n", ("bids", "b3")))
    assert "CREATE TABLE public.b3 FROM SOURCE public.n (REFERENCE auction.bids)" in new.value.hint
    with pytest.raises(NotPossible, match="LOAD GENERATOR COUNTER has one output"):
        old.run(add("c", ("counter", "c2")))
    with pytest.raises(UnknownItem):
        old.run(add("nobody", ("bids", None)))
    assert old.names() == before


def test_options_are_those_of_the_subsources_that_are_added(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "")), add("a", ("users", None), text_columns=("id",)))
    assert old.table("users").spec.text_columns == ("id",)
    found = stored(old)
    assert found is not None
    assert found.text_columns == ("auction.users.id",)


# ── DROP ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["DROP SOURCE", "ALTER SOURCE"])
def test_a_dropped_subsource_goes_alone(old: OldStyle, way: str) -> None:
    old.run(auction("a"))
    bids = old.table("bids")
    (result,) = old.run(drop("bids") if way == "DROP SOURCE" else take("a", "bids"))
    assert "bids" in result.message
    assert old.find("bids") is None
    assert sorted(t.display for t in old.tables("a")) == sorted(set(OUTPUTS) - {"bids"})
    assert "auction.bids" not in dict(listed(old))
    old.run(add("a", ("bids", None)))
    assert old.table("bids").id != bids.id


def test_the_last_one_leaves_a_source_of_the_new_kind(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "b")), table("t", "a", "bids"))
    old.run(drop("b"))
    assert stored(old) is None
    assert old.names() == {"public.a": "load_generator", "public.a_progress": "progress"}
    (flag,) = old.run(sql.AlterSystem("force_source_table_syntax", True))
    assert "true" in flag.message
    old.run(drop("a_progress"))
    assert old.names() == {"public.a": "load_generator"}
    assert old.table("t").kind == "table"


def test_what_cannot_be_dropped(old: OldStyle) -> None:
    old.run(auction("a"), for_tables("b", ("bids", "b_bids")), table("t", "a", "bids"), view("v", "bids"))
    before = old.names()
    with pytest.raises(StillUsed, match="view v"):
        old.run(take("a", "bids"))
    with pytest.raises(StillUsed, match="view v"):
        old.run(drop("bids"))
    with pytest.raises(NotPossible, match=r"subsource public.b_bids does not belong to source public.a") as other:
        old.run(take("a", "b_bids"))
    assert "ALTER SOURCE b DROP SUBSOURCE b_bids" in other.value.hint
    with pytest.raises(UnknownItem, match="is a table, not a"):
        old.run(take("a", "t"))
    with pytest.raises(UnknownItem, match="does not exist"):
        old.run(take("a", "nobody"))
    with pytest.raises(UnknownItem, match="is a subsource, not a"):
        old.run(drop("bids", "table"))
    with pytest.raises(NotPossible, match="a_progress is the progress of source a and is dropped with it"):
        old.run(drop("a_progress"))
    (none,) = old.run(take("a", "nobody", if_exists=True))
    assert "nothing to drop" in none.message
    assert old.names() == before


def test_a_progress_name_stays_until_its_migration_is_finalized(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "b")), drop("b"))
    with old.catalog.write() as session:
        migrated = {"source_id": old.source("a").id, "state": "migrated", "before": "{}", "report": "{}"}
        session.execute(insert(MigrationRow).values(**migrated, created_at=wall_ms()))
    with pytest.raises(NotPossible, match="until the migration of source a is finalized") as told:
        old.run(drop("a_progress"))
    assert "--finalize" in told.value.hint


def test_cascade_takes_the_views_along(old: OldStyle) -> None:
    old.run(auction("a"), view("v", "bids"), view("w", "v", "users"))
    (result,) = old.run(take("a", "bids", cascade=True))
    assert "public.v" in result.message
    assert "public.w" in result.message
    assert old.find("w") is None
    assert old.table("users").kind == "subsource"


@pytest.mark.parametrize("statement", [generator(name="a"), auction("a")])
def test_outputs_and_progress_go_with_the_source_and_tables_need_cascade(
    old: OldStyle, statement: sql.CreateSource
) -> None:
    old.run(statement)
    old.run(drop("a"))
    assert old.names() == {}
    assert old.rows("subsources") == []
    old.run(statement, table("t", "a", *(() if statement.output else ("bids",))))
    with pytest.raises(StillUsed, match="table t"):
        old.run(drop("a"))
    old.run(drop("a", cascade=True))
    assert (old.names(), old.rows("tables")) == ({}, [])


def test_a_view_on_a_source_of_one_output_holds_it(old: OldStyle) -> None:
    old.run(generator(), view("v", "c"), view("p", "c_progress"))
    with pytest.raises(StillUsed, match="view v"):
        old.run(drop("c"))
    (result,) = old.run(drop("c", cascade=True))
    assert "views public.v, public.p" in result.message
    assert old.names() == {}


def test_a_schema_goes_with_the_old_style_sources_in_it(old: OldStyle) -> None:
    old.run(for_tables("a", ("bids", "shop.b"), ("users", "public.u")), auction("shop.x"), generator(name="shop.c"))
    old.run(sql.DropSchema("shop", cascade=True))
    assert set(old.names()) == {"public.a", "public.u", "public.a_progress"}
    assert listed(old) == (("auction.users", "public.u"),)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rename(name: str, new: str) -> sql.Rename:
    return sql.Rename("source", named(name), new)


def test_the_definition_follows_the_names(old: OldStyle) -> None:
    old.run(auction("a"))
    ids = {t.spec.reference: t.id for t in old.tables("a")}
    old.run(rename("bids", "my_bids"))
    assert dict(listed(old))["auction.bids"] == "public.my_bids"
    assert len(listed(old)) == len(OUTPUTS)
    old.run(rename("a", "b"))
    found = stored(old, "b")
    assert found is not None
    assert found.progress == "public.a_progress"
    old.run(rename("a_progress", "b_progress"))
    found = stored(old, "b")
    assert found is not None
    assert found.progress is None
    assert {t.spec.reference: t.id for t in old.tables("b")} == ids


def test_the_definition_follows_the_schemas(old: OldStyle) -> None:
    old.run(sql.CreateSchema("x"), for_tables("a", ("bids", "x.b"), progress="x.p"))
    old.run(sql.Rename("schema", "x", "y"))
    assert listed(old) == (("auction.bids", "y.b"),)
    old.run(sql.CreateSchema("z"), sql.Swap("schema", "y", "z", force=True))
    assert listed(old) == (("auction.bids", "z.b"),)
    found = stored(old)
    assert found is not None
    assert found.progress == "z.p"


def test_a_source_of_one_output_is_known_by_its_name_whatever_it_becomes(old: OldStyle) -> None:
    old.run(generator())
    output = old.table("c").id
    old.run(rename("c", "d"))
    assert (old.table("d").id, old.table("d").display) == (output, "d")
    with pytest.raises(UnknownItem):
        old.table("c")


def test_old_syntax_has_no_options_of_tables(old: OldStyle) -> None:
    old.run(auction("a"), generator())
    for name in ("bids", "c"):
        with pytest.raises(NotPossible, match=f"{name} is not a table"):
            old.run(sql.AlterTableSet(named(name), {"retain_history_seconds": 60}))


def test_all_or_nothing(old: OldStyle) -> None:
    with pytest.raises(OutputNameTaken):
        old.together(auction("a"), generator(), auction("b"))
    assert old.names() == {}
    old.together(for_tables("a", ("bids", "")), table("t", "a", "bids"), add("a", ("users", None)), drop("bids"))
    assert set(old.names()) == {"public.a", "public.users", "public.a_progress"}
    assert listed(old) == (("auction.users", "public.users"),)


def test_names_that_an_earlier_statement_frees_can_be_taken_at_once(old: OldStyle) -> None:
    """Both ways from old to new, each in one transaction."""
    old.run(auction("a"), new_source("b"))
    old.together(take("a", "users"), table("users", "a", "users"))
    assert [row["name"] for row in old.rows("tables")] == ["public.users"]
    old.together(drop("a", cascade=True), table("users", "b", "users"), new_source("bids", "counter"))
    assert [(row["name"], row["source"]) for row in old.rows("tables")] == [("public.users", "public.b")]
    assert set(old.names()) == {"public.b", "public.bids"}
