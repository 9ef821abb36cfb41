"""CREATE SOURCE of the old syntax: what is made, under which names, and what is refused."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.connectors.load_generator.specs import Generator, LoadGeneratorExportDetails
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, ItemRow
from airflow_provider_mzshare.control.catalog.objects import legacy_sources
from airflow_provider_mzshare.control.definition_errors import AmbiguousReference, BadExport, NotPossible, UnknownColumn
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.legacy.problems import OutputNameTaken, ReferenceTaken
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.errors import (
    MzShareError,
    NameTaken,
    ReferenceMissing,
    SpecConflict,
    StatementError,
    TerminalError,
)
from tests.support.old_style import OUTPUTS, OldStyle, auction, drop, for_tables, generator, kafka, new_source, table


def sql_legacy(shape: str, **more: object) -> LegacySpec:
    return LegacySpec.model_validate({"shape": shape, **more})


# ── one output ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("kind", "columns"), [("counter", ["counter"]), ("key_value", ["key", "value"])])
def test_a_source_of_one_output_has_the_rows_itself(old: OldStyle, kind: Generator, columns: list[str]) -> None:
    old.run(generator(kind, "c"))
    source, output = old.source("c"), old.table("c")
    assert [c.name for c in output.spec.columns][: len(columns)] == columns
    assert (output.kind, output.display, output.source_id) == ("output", "c", source.id)
    assert output.id != source.id
    assert isinstance(output.spec.details, LoadGeneratorExportDetails)
    assert output.spec.details.output == kind
    assert old.names() == {"public.c": "load_generator", "public.c_progress": "progress"}
    with old.catalog.read() as session:
        hidden = session.execute(select(ItemRow).where(ItemRow.id == output.id)).scalar_one()
        assert (hidden.kind, hidden.schema_name, hidden.name) == ("output", "mz_internal", source.id)
        roles = session.scalars(select(CollectionRow.role).where(CollectionRow.table_id == output.id))
        assert sorted(roles) == ["data", "errors"]
    assert old.rows("tables") == []


def test_it_says_that_the_output_joins_and_has_a_plan(old: OldStyle) -> None:
    (result,) = old.run(generator())
    assert result.message == f"CREATE SOURCE public.c {old.source('c').id} (joins at the next tick)"
    assert result.plan is not None


def test_progress_has_a_name_of_its_own_where_one_is_given(old: OldStyle) -> None:
    old.run(generator(progress='"How far"'))
    assert set(old.names()) == {"public.c", 'public."How far"'}
    assert old.source("c").spec.legacy == sql_legacy("single", progress='public."How far"')


def test_a_progress_name_that_is_taken_is_told_with_the_way_out(old: OldStyle) -> None:
    old.run(new_source("c_progress"))
    for statement in (generator(), auction("c")):
        with pytest.raises(OutputNameTaken, match=r"'public.c_progress' cannot name the progress of source") as told:
            old.run(statement)
        assert told.value.hint == "EXPOSE PROGRESS AS another name"
        assert set(old.names()) == {"public.c_progress"}


def test_a_name_too_long_for_its_progress_is_told_with_the_way_out(old: OldStyle) -> None:
    name = "n" * 250
    with pytest.raises(TerminalError, match="too long to add _progress") as told:
        old.run(generator(name=name))
    assert told.value.hint == "EXPOSE PROGRESS AS another name"
    old.run(generator(name=name, progress="p"))
    assert old.table(name).kind == "output"


def test_an_auction_cannot_be_one_output(old: OldStyle) -> None:
    with pytest.raises(NotPossible, match="LOAD GENERATOR AUCTION has several outputs") as told:
        old.run(generator("auction"))
    assert "FOR ALL TABLES" in told.value.hint


# ── several ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_tables_become_subsources_beside_the_source(old: OldStyle) -> None:
    (result,) = old.run(auction("shop.a"))
    subsources = {row["name"]: row for row in old.rows("subsources")}
    assert set(subsources) == {*(f"shop.{name}" for name in OUTPUTS), "shop.a_progress"}
    assert {row["source"] for row in subsources.values()} == {"shop.a"}
    assert subsources["shop.bids"]["kind"] == "subsource"
    assert subsources["shop.a_progress"]["kind"] == "progress"
    assert result.message.endswith(f"(with subsources {', '.join(f'shop.{name}' for name in OUTPUTS)})")
    bids = old.table("shop.bids")
    assert (bids.kind, bids.spec.namespace, bids.spec.reference) == ("subsource", "auction", "bids")
    assert bids.spec.format == "none"
    assert old.rows("tables") == []
    with old.catalog.read() as session:
        assert legacy_sources.output_of(session, old.source("shop.a").id) is None


def test_schemas_of_the_upstream(old: OldStyle) -> None:
    old.run(auction("a", shape="schemas", schemas=("auction",)))
    assert [t.spec.reference for t in old.tables("a")] == OUTPUTS
    with pytest.raises(ReferenceMissing, match=r"source public.b has no schema sales upstream") as told:
        old.run(auction("b", shape="schemas", schemas=("sales",)))
    assert told.value.hint == "one of auction"


def test_chosen_tables_under_chosen_names(old: OldStyle) -> None:
    old.run(for_tables("a", ("auction.bids", "other.my_bids"), ("users", "")))
    assert {t.display: t.spec.reference for t in old.tables("a")} == {"other.my_bids": "bids", "users": "users"}
    stored = old.source("a").spec.legacy
    assert stored is not None
    assert stored.tables == (("auction.bids", "other.my_bids"), ("auction.users", "public.users"))


def test_names_of_any_kind(old: OldStyle) -> None:
    odd = 'we"ird.$(x) {{ y }} 🦊'
    quoted = '"' + odd.replace('"', '""') + '"'
    old.run(for_tables("a", ('"auction"."bids"', f"public.{quoted}")))
    (bids,) = old.tables("a")
    assert bids.name == ("public", odd)
    assert old.source("a").spec.legacy == sql_legacy("tables", tables=[("auction.bids", f"public.{quoted}")])


def test_options_of_columns_stand_on_the_source_and_are_the_subsources(old: OldStyle) -> None:
    old.run(auction(text_columns=("bids.amount",), exclude_columns=("auction.bids.bid_time", "users.name")))
    bids, users = old.table("bids").spec, old.table("users").spec
    assert {c.name: c.type for c in bids.columns}["amount"] == "text"
    assert "bid_time" not in {c.name for c in bids.columns}
    assert (bids.text_columns, bids.exclude_columns, users.exclude_columns) == (("amount",), ("bid_time",), ("name",))
    stored = old.source("a").spec.legacy
    assert stored is not None
    assert stored.text_columns == ("auction.bids.amount",)
    assert stored.exclude_columns == ("auction.bids.bid_time", "auction.users.name")


REFUSED: dict[str, tuple[sql.CreateSource, type[MzShareError], str]] = {
    "unknown reference": (for_tables("a", ("auction.lots", "")), ReferenceMissing, "no reference auction.lots"),
    "twice": (for_tables("a", ("bids", "x"), ("auction.bids", "y")), ReferenceTaken, "already, public.x"),
    "same name": (for_tables("a", ("bids", "x"), ("users", "x")), OutputNameTaken, "'public.x' cannot name"),
    "own name": (for_tables("a", ("bids", "a")), OutputNameTaken, "it is the name of a source"),
    "progress as a subsource": (auction("a", progress="bids"), OutputNameTaken, "progress of source public.a"),
    "reserved": (for_tables("a", ("bids", "mz_internal.b")), TerminalError, "reserved"),
    "unknown column": (auction("a", text_columns=("bids.price",)), UnknownColumn, "has no column 'price'"),
    "column of nobody": (auction("a", text_columns=("amount",)), BadExport, "may belong to any output"),
    "column of another": (
        for_tables("a", ("bids", ""), exclude_columns=("users.name",)), ReferenceMissing, "no reference users"
    ),
    "both": (auction("a", text_columns=("bids.id",), exclude_columns=("bids.id",)), BadExport, "EXCLUDE COLUMNS"),
    "not a name": (for_tables("a", ("bids..x", "")), StatementError, "is not a name"),
    "one output": (
        sql.CreateSource(
            auction("a").name, False, None,
            generator("counter").spec.model_copy(update={"legacy": sql_legacy("all_tables")}),
        ),
        NotPossible,
        "FOR ALL TABLES needs several outputs, but LOAD GENERATOR COUNTER has one",
    ),
}  # fmt: skip


def test_what_cannot_be_is_refused_and_nothing_is_made(old: OldStyle) -> None:
    for which, (asked, error, words) in REFUSED.items():
        with pytest.raises(error, match=words) as told:
            old.run(asked)
        assert told.value.hint or isinstance(told.value, StatementError), which
        assert old.names() == {}, which


def test_a_taken_name_is_told_with_the_way_to_give_another(old: OldStyle) -> None:
    old.run(new_source("s"), table("users", "s", "auction", "users"))
    with pytest.raises(OutputNameTaken, match=r"'public.users' cannot name the subsource of auction.users") as told:
        old.run(auction("a"))
    assert told.value.by == "table"
    assert told.value.hint == "FOR TABLES (auction.users AS another name, …)"
    assert set(old.names()) == {"public.s"}


def test_a_dry_run_makes_nothing(old: OldStyle) -> None:
    (result,) = old.run(auction("a"), dry_run=True)
    assert result.id is None
    assert "dry run" in result.message
    assert old.names() == {}


# ── IF NOT EXISTS ─────────────────────────────────────────────────────────────────────────────────────────────────────


SAME = {
    "single": (generator(), generator(if_not_exists=True)),
    "all": (auction(), auction(if_not_exists=True)),
    "schemas": (auction(shape="schemas", schemas=("auction",)),) * 2,
    "tables": (
        for_tables("a", ("bids", "b"), ("users", ""), text_columns=("bids.amount",)),
        for_tables("a", ("auction.users", "users"), ("auction.bids", "b"), text_columns=("auction.bids.amount",)),
    ),
    "progress": (auction(progress="p"), auction(progress="public.p")),
}


def test_the_same_again_changes_nothing(old: OldStyle) -> None:
    for which, (first, again) in SAME.items():
        old.run(first)
        before = old.names()
        (result,) = old.run(if_not_exists(again))
        assert "it exists" in result.message, which
        assert old.names() == before, which
        with pytest.raises(NameTaken):
            old.run(first)
        old.run(sql.DropItem("source", first.name))
        assert old.names() == {}, which


def if_not_exists(statement: sql.CreateSource) -> sql.CreateSource:
    return sql.CreateSource(
        statement.name, True, statement.connection, statement.spec, statement.settings, statement.output
    )


OTHER = {
    "shape": (auction(), for_tables("a", ("bids", "")), "shape is 'all_tables', not 'tables'"),
    "names": (for_tables("a", ("bids", "b")), for_tables("a", ("bids", "c")), "tables: it has"),
    "progress": (auction(), auction(progress="p"), "progress is None, not 'public.p'"),
    "columns": (auction(), auction(exclude_columns=("bids.id",)), "exclude_columns"),
    "syntax": (new_source("a"), auction("a"), "it has only tables"),
    "generator": (generator(), generator("key_value"), "generator is 'counter', not 'key_value'"),
}


def test_another_definition_is_a_conflict(old: OldStyle) -> None:
    for first, other, words in OTHER.values():
        old.run(first)
        with pytest.raises(SpecConflict, match=words):
            old.run(if_not_exists(other))
        old.run(sql.DropItem("source", first.name))


# ── beside tables ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_work_beside_outputs_and_may_repeat_a_reference(old: OldStyle) -> None:
    old.run(auction("a"), table("t1", "a", "bids"), table("t2", "a", "auction", "bids", exclude_columns=("amount",)))
    old.run(generator(), table("t3", "c"))
    assert {row["name"] for row in old.rows("tables")} == {"public.t1", "public.t2", "public.t3"}
    with pytest.raises(AmbiguousReference):
        old.run(table("t4", "a"))


def test_ids_are_never_given_twice(old: OldStyle) -> None:
    old.run(generator(), drop("c"), generator())
    first, second = old.source("c").id, old.table("c").id
    assert {first, second}.isdisjoint({"u1", "u2", "u3"})


def test_kafka_has_one_output(old: OldStyle) -> None:
    with pytest.raises(NotPossible, match="FOR ALL TABLES needs several outputs, but KAFKA has one"):
        old.run(kafka("t", None, shape="all_tables"))
