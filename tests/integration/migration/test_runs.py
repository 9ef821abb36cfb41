"""Runs over several sources: once, back, again and for good; which ones, and how many at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, text

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.catalog.objects import comments, flags, items, lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.objects.renames import rename_item
from airflow_provider_mzshare.control.statements.handlers.show import create_sql
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.upgrade.plan import Action
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError
from tests.support.legacy import (
    JSON,
    SHAPES,
    add_multi,
    add_single,
    add_view,
    data,
    definitions,
)
from tests.support.migrating import ALL, ORDERS, do, ingest, item, on_one, reads, view_text

# ── once, back, again, and for good ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def everything(catalog: Catalog) -> Catalog:
    """Sources of both shapes with views on outputs, on progress names and on views, and a table beside."""
    first, _ = add_single(catalog, ORDERS)
    add_single(catalog, ("shop", "orders"), SHAPES["bytes"], progress=("shop", "How Far"))
    multi, _ = add_multi(catalog, ("public", "auction"))
    with catalog.write() as session:
        items.create_table(session, name=("public", "beside"), source_id=first, spec=JSON)
        comments.set_comment(session, first, "in euros", "amount")
    add_view(
        catalog, ("public", "v"), "SELECT o.id FROM orders AS o JOIN bids ON o.id = bids.id JOIN beside AS b ON TRUE"
    )
    add_view(catalog, ("public", "far"), 'SELECT p.tick FROM shop."How Far" AS p')
    add_view(catalog, ("public", "vv"), "SELECT v.id FROM v, far WHERE far.tick > 0")
    for source_id in (first, multi):
        ingest(catalog, source_id)
    return catalog


def migrations(catalog: Catalog) -> list[tuple[str, str]]:
    with catalog.read() as session:
        rows = session.execute(select(MigrationRow.source_id, MigrationRow.state).order_by(MigrationRow.number))
        return [(row.source_id, row.state) for row in rows]


@on_one
def test_run_twice_it_changes_once(everything: Catalog) -> None:
    first = do(everything)
    assert {one.state for one in first.sources} == {"done"}
    after, rows = definitions(everything), migrations(everything)
    again = do(everything)
    assert {one.state for one in again.sources} == {"already"}
    assert [one.objects for one in again.sources] == [one.objects for one in first.sources]
    for name in ("orders", "orders_source", "u1"):
        (one,) = do(everything, wanted=Wanted(name)).sources
        assert (one.id, one.state) == ("u1", "already")
    assert (definitions(everything), migrations(everything)) == (after, rows)


@on_one
def test_a_dry_run_changes_nothing_and_says_what_is_done(everything: Catalog) -> None:
    before = definitions(everything)
    planned = run(everything, ALL, Run())
    assert definitions(everything) == before
    assert planned.next == "--apply carries the plan out"
    done = do(everything)
    assert [one.objects for one in planned.sources] == [one.objects for one in done.sources]


def test_two_at_the_same_time_change_once(everything: Catalog) -> None:
    with ThreadPoolExecutor(2) as both:
        reports = [future.result() for future in [both.submit(do, everything) for _ in range(2)]]
    states = zip(*([one.state for one in report.sources] for report in reports), strict=True)
    assert [sorted(pair) for pair in states] == [["already", "done"]] * 3
    assert [state for _, state in migrations(everything)] == ["migrated"] * 3


def statements(catalog: Catalog) -> dict[str, str]:
    """What SHOW CREATE says of everything."""
    with catalog.read() as session:
        shown = session.scalars(select(ItemRow.id).where(ItemRow.dropped_at.is_(None), ItemRow.kind != "output"))
        return {one: f"{create_sql(session, lookup.get_item(session, one))};" for one in shown}


@on_one
def test_the_report_has_the_statements_that_show_create_prints(everything: Catalog) -> None:
    actions: tuple[Action, ...] = ("migrate", "rollback", "migrate", "finalize")
    for action in actions:
        check_report(everything, action)


def check_report(everything: Catalog, action: Action) -> None:
    before = statements(everything)
    report = do(everything, action)
    after = statements(everything)
    told = [one for source in report.sources for one in source.objects]
    assert {one.id: one.before for one in told if one.before}.items() <= before.items()
    assert {one.id: one.after for one in told if one.after}.items() <= after.items()
    touched = {one for one in {*before, *after} if before.get(one) != after.get(one)}
    assert touched <= {one.id for one in told}
    views = {one.id for one in told if one.kind == "view"}
    assert all(before[one] == after[one] for one in views) or action == "finalize"


def test_back_and_again(everything: Catalog) -> None:
    before, rows = definitions(everything), data(everything)
    do(everything)
    after = definitions(everything)
    assert after != before
    back = do(everything, "rollback")
    assert {one.state for one in back.sources} == {"done"}
    assert definitions(everything) == before
    do(everything)
    assert definitions(everything) == after
    do(everything, "rollback", Wanted("shop.orders_source"))
    do(everything, wanted=Wanted("shop.orders"))
    assert definitions(everything) == after
    assert data(everything) == rows
    assert [state for _, state in migrations(everything)].count("migrated") == 3


def test_finalized_the_legacy_progress_names_go(everything: Catalog) -> None:
    do(everything)
    alias = item(everything, ("shop", "How Far"))
    assert alias.kind == "progress"
    source = item(everything, ("shop", "orders_source"))
    (far,) = [row for row in _views(everything) if row[1] == "far"]
    assert reads(everything, far[0]) == {alias.id}
    do(everything, "finalize")
    assert reads(everything, far[0]) == {source.id}
    assert view_text(everything, far[0]) == "SELECT p.tick FROM shop.orders_source AS p"
    with everything.read() as session:
        assert lookup.find(session, ("shop", "How Far")) is None
        assert lookup.find(session, ("public", "orders_progress")) is None
    after = definitions(everything)
    assert {one.state for one in run(everything, Wanted("orders"), Run("finalize", apply=True)).sources} == {"already"}
    report = run(everything, Wanted("orders"), Run("rollback", apply=True))
    assert "it was finalized" in report.sources[0].error
    assert run(everything, ALL, Run("rollback", apply=True)).sources == []
    assert definitions(everything) == after


def _views(catalog: Catalog) -> list[tuple[ItemId, str]]:
    with catalog.read() as session:
        return [(row.id, row.name) for row in session.scalars(select(ItemRow).where(ItemRow.kind == "view"))]


def test_what_came_since_is_carried_back(everything: Catalog) -> None:
    do(everything)
    on_table = add_view(everything, ("public", "new1"), "SELECT id FROM orders")
    on_progress = add_view(everything, ("public", "new2"), "SELECT tick FROM orders_source")
    do(everything, "rollback")
    assert reads(everything, on_table) == {"u1"}
    assert reads(everything, on_progress) == {item(everything, ("public", "orders_progress")).id}
    assert view_text(everything, on_table) == "SELECT id FROM orders"
    assert view_text(everything, on_progress) == "SELECT tick FROM orders_progress AS orders_source"
    do(everything)
    assert reads(everything, on_table) == {item(everything, ORDERS).id}


def rename(catalog: Catalog, name: Name, new: Name) -> None:
    found = item(catalog, name)
    with catalog.write() as session:
        rename_item(session, found.id, new)


def change_spec(catalog: Catalog) -> None:
    table = item(catalog, ORDERS)
    spec = JSON.model_copy(update={"retain_history_seconds": 60}).model_dump_json()
    with catalog.write() as session:
        session.execute(text("UPDATE tables SET spec = :spec WHERE id = :id"), {"spec": spec, "id": table.id})


def force(catalog: Catalog, value: str) -> None:
    with catalog.write() as session:
        flags.set_value(session, flags.FORCE_TABLES, value)


def test_what_stands_in_the_way_is_told_and_nothing_done(everything: Catalog) -> None:
    do(everything)

    def refused(why: str) -> None:
        before = definitions(everything)
        report = run(everything, Wanted("u1"), Run("rollback", apply=True))
        assert report.failed
        assert why in report.sources[0].error, report.sources[0].error
        assert definitions(everything) == before

    force(everything, "true")
    refused("force_source_table_syntax is true. Try: mzshare sql 'ALTER SYSTEM SET")
    force(everything, "false")
    rename(everything, ORDERS, ("public", "moved"))
    add_single(everything, ORDERS, progress=("public", "taken_progress"))
    refused("the name orders was taken by something else since")
    rename(everything, ORDERS, ("public", "elsewhere"))
    do(everything, "rollback", Wanted("u1"))
    assert item(everything, ORDERS).id == "u1"


@on_one
def test_names_that_changed_places_since_come_back(everything: Catalog) -> None:
    before = definitions(everything)
    do(everything)
    for old, new in (
        ("bids", "x"),
        ("users", "bids"),
        ("x", "auction_"),
        ("auction", "users"),
        ("auction_", "auction"),
    ):
        rename(everything, ("public", old), ("public", new))
    rename(everything, ORDERS, ("public", "renamed"))
    rename(everything, ("public", "orders_source"), ("public", "bought"))
    do(everything, "rollback")
    assert definitions(everything) == before


@on_one
def test_a_dropped_subsource_does_not_come_back(everything: Catalog) -> None:
    do(everything)
    users = item(everything, ("public", "users"))
    with everything.write() as session:
        items.drop_table(session, users.id)
    (report,) = do(everything, "rollback", Wanted("auction")).sources
    assert report.notes == (f"subsource users ({users.id}) was dropped since, and does not come back",)
    assert item(everything, ("public", "bids")).kind == "subsource"


# ── which, and how many ───────────────────────────────────────────────────────────────────────────────────────────────


@on_one
def test_a_pattern_is_about_the_names_that_match(everything: Catalog) -> None:
    assert [one.source for one in do(everything, wanted=Wanted(pattern="shop.*")).sources] == ["shop.orders"]
    assert [one.source for one in do(everything, wanted=Wanted(pattern="o*")).sources] == ["orders"]
    back = do(everything, "rollback", Wanted(pattern="*.orders"))
    assert [one.source for one in back.sources] == ["orders_source", "shop.orders_source"]
    none = do(everything, wanted=Wanted(pattern="nothing*"))
    assert (none.sources, none.next) == ([], "there is nothing to migrate")


@on_one
def test_what_cannot_be_meant_is_told(everything: Catalog) -> None:
    for name, why in {
        "beside": "'beside' is a table already: it needs no migration. Try: mzshare migrate orders",
        "nope": "there is no source 'nope'",
        "u99": "there is no source 'u99'",
        "v": "'v' is a view",
        "bids": "'bids' is a subsource: migrate its source instead. Try: mzshare migrate auction",
        "a b": "is not a name",
        "": "name one source, or a pattern, or all",
    }.items():
        with pytest.raises(TerminalError) as raised:
            run(everything, Wanted(name), Run())
        assert why in raised.value.line
    (one,) = run(everything, Wanted("orders"), Run("finalize")).sources
    assert "source 'orders' was not migrated" in one.error


@on_one
def test_a_failure_stops_the_rest_or_not(everything: Catalog) -> None:
    do(everything)
    change_spec(everything)
    report = run(everything, ALL, Run("rollback", apply=True))
    assert [one.state for one in report.sources] == ["failed", "pending", "pending"]
    assert "it does nothing twice" in report.next
    report = run(everything, ALL, Run("rollback", apply=True, stop_on_first_failure=False))
    assert [one.state for one in report.sources] == ["failed", "done", "done"]


@on_one
def test_batches_start_while_the_window_is_open(everything: Catalog) -> None:
    opened = iter([True, False])
    report = do(everything, batch_size=2, may_start=lambda: next(opened))
    assert [one.state for one in report.sources] == ["done", "done", "pending"]
    assert report.next == "run the same command again: it goes on with what is pending"
    assert [one.state for one in do(everything).sources] == ["already", "already", "done"]
