"""Legacy sources become sources with tables: names keep their rows, ids are as promised, and data is not touched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, text

from airflow_provider_mzshare.control.catalog import Catalog, comments, flags, items, legacy, lookup
from airflow_provider_mzshare.control.catalog.models import ItemRow
from airflow_provider_mzshare.control.catalog.naming import Name
from airflow_provider_mzshare.control.catalog.object_models import DependencyRow, MigrationRow
from airflow_provider_mzshare.control.catalog.renames import rename_item
from airflow_provider_mzshare.control.executing.showing import create_sql
from airflow_provider_mzshare.control.migration.choosing import Wanted
from airflow_provider_mzshare.control.migration.executor import Run, run
from airflow_provider_mzshare.control.migration.plan import Action
from airflow_provider_mzshare.control.migration.report import Report
from airflow_provider_mzshare.control.views.relations import find_relation
from airflow_provider_mzshare.control.views.resolving import print_current
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.types.ids import ItemId
from tests.support.catalog import Log, wrote_all
from tests.support.legacy import (
    AUCTION,
    BIDS,
    JSON,
    SHAPES,
    USERS,
    add_multi,
    add_single,
    add_view,
    data,
    definitions,
)

ORDERS = ("public", "orders")
on_one = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""What asks the database nothing that other tests do not ask on both."""
ALL = Wanted(everything=True)


def do(catalog: Catalog, action: Action = "migrate", wanted: Wanted = ALL, **how: Any) -> Report:
    report = run(catalog, wanted, Run(action, apply=True, **how))
    assert not report.failed, report
    return report


def item(catalog: Catalog, name: Name) -> lookup.Item:
    with catalog.read() as session:
        found = lookup.find(session, name)
    assert found is not None, name
    return found


def name_of(catalog: Catalog, item_id: ItemId) -> Name:
    with catalog.read() as session:
        return lookup.get_item(session, item_id).name


def view_text(catalog: Catalog, view_id: ItemId) -> str:
    with catalog.read() as session:
        view = lookup.get_item(session, view_id)
        assert isinstance(view, lookup.ViewItem)
        return print_current(session, view.query)


def reads(catalog: Catalog, view_id: ItemId) -> set[str]:
    with catalog.read() as session:
        return set(session.scalars(select(DependencyRow.referenced_id).where(DependencyRow.object_id == view_id)))


def ingest(catalog: Catalog, source_id: ItemId) -> Log:
    """Two ticks with rows and errors, by a holder that stays."""
    log = Log(catalog, source_id)
    log.tick()
    for version in (1, 2):
        tick = log.mint()
        log.commit(tick, wrote_all(log.store.members(), version))
    return log


# ── one output ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_table_takes_name_and_rows_and_the_source_keeps_its_id(catalog: Catalog) -> None:
    made = {shape: add_single(catalog, ("public", shape), spec) for shape, spec in SHAPES.items()}
    for source_id, _ in made.values():
        ingest(catalog, source_id)
    before = data(catalog)
    do(catalog)
    assert data(catalog) == before
    for shape, (source_id, output) in made.items():
        table, source = item(catalog, ("public", shape)), item(catalog, ("public", f"{shape}_source"))
        assert isinstance(table, lookup.TableItem)
        assert (table.id, table.kind, table.spec) == (output, "table", SHAPES[shape])
        assert isinstance(source, lookup.SourceItem)
        assert (source.id, source.kind, source.spec.legacy) == (source_id, "source", None)
    with catalog.read() as session:
        assert not legacy.legacy_objects(session)
        assert all(lookup.output_of(session, source_id) is None for source_id, _ in made.values())
        assert find_relation(session, ("public", "json_source")).kind == "progress"
        assert find_relation(session, ("public", "json")).kind == "table"


def test_the_app_goes_on_as_if_nothing_had_happened(catalog: Catalog) -> None:
    source_id, output = add_single(catalog, ORDERS)
    log = ingest(catalog, source_id)
    pending = log.mint()
    do(catalog)
    log.commit(pending, wrote_all(log.store.members(), 3))
    log.tick()
    table = item(catalog, ORDERS)
    assert isinstance(table, lookup.TableItem)
    assert (table.id, table.status, table.rows, table.errors) == (output, "live", 9, 3)


def test_dependents_read_the_same_rows_under_the_same_text(catalog: Catalog) -> None:
    source_id, output = add_single(catalog, ORDERS)
    other, _ = add_single(catalog, ("public", "clicks"))
    view = add_view(catalog, ("public", "v"), "SELECT o.id, c.amount FROM orders AS o JOIN clicks AS c ON o.id = c.id")
    on_view = add_view(catalog, ("public", "vv"), "SELECT id FROM v WHERE id > 1")
    nested = add_view(catalog, ("public", "n"), "WITH w AS (SELECT id FROM orders) SELECT orders.id FROM w AS orders")
    texts = {one: view_text(catalog, one) for one in (view, on_view, nested)}
    assert reads(catalog, view) == {source_id, other}
    do(catalog, wanted=Wanted("orders"))
    assert reads(catalog, view) == {output, other}
    assert reads(catalog, on_view) == {view}
    assert reads(catalog, nested) == {output}
    assert {one: view_text(catalog, one) for one in texts} == texts
    do(catalog)
    assert source_id not in reads(catalog, view)
    assert other not in reads(catalog, view)
    assert {one: view_text(catalog, one) for one in texts} == texts


@on_one
def test_tables_beside_the_output_stay_and_name_the_source_anew(catalog: Catalog) -> None:
    source_id, _ = add_single(catalog, ORDERS)
    with catalog.write() as session:
        beside = items.create_table(session, name=("public", "beside"), source_id=source_id, spec=JSON)
    report = do(catalog)
    (told,) = [one for one in report.sources[0].objects if one.id == beside]
    assert told.before is not None
    assert told.after is not None
    assert "FROM SOURCE public.orders " in told.before
    assert "FROM SOURCE public.orders_source " in told.after
    assert told.terraform == f"the arguments of beside change; the id {beside} stays"


@on_one
def test_comments_on_columns_move_with_the_columns(catalog: Catalog) -> None:
    source_id, output = add_single(catalog, ORDERS)
    with catalog.write() as session:
        comments.set_comment(session, source_id, "from the shop")
        comments.set_comment(session, source_id, "in euros", "amount")
    before = definitions(catalog)
    do(catalog)
    with catalog.read() as session:
        assert comments.comments_of(session, source_id) == {"": "from the shop"}
        assert comments.comments_of(session, output) == {"amount": "in euros"}
    do(catalog, "rollback")
    assert definitions(catalog) == before


@on_one
def test_errors_of_the_source_stay_with_it_and_decode_errors_with_the_table(catalog: Catalog) -> None:
    source_id, output = add_single(catalog, ORDERS)
    ingest(catalog, source_id)
    with catalog.write() as session:
        stalled = "UPDATE sources SET status = 'stalled', reason = 'history_gone', message = 'gone' WHERE id = :id"
        session.execute(text(stalled), {"id": source_id})
    do(catalog)
    with catalog.read() as session:
        source, table = lookup.get_source_item(session, source_id), lookup.get_table_item(session, output)
        roles = text("SELECT role, rows FROM collections JOIN commits ON id = collection_id WHERE table_id = :id")
        commits = {(row.role, row.rows) for row in session.execute(roles, {"id": output})}
    assert (source.status, source.reason, source.message) == ("stalled", "history_gone", "gone")
    assert table.errors == 2
    assert commits == {("data", 3), ("errors", 1)}


# ── several outputs ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_subsources_become_tables_of_the_same_name_and_id(catalog: Catalog) -> None:
    source_id, (bids, users) = add_multi(catalog, ("public", "auction"))
    view = add_view(catalog, ("public", "v"), "SELECT amount FROM bids")
    ingest(catalog, source_id)
    before, query = data(catalog), view_text(catalog, view)
    report = do(catalog)
    assert data(catalog) == before
    for name, item_id, spec in (("bids", bids, BIDS), ("users", users, USERS)):
        table = item(catalog, ("public", name))
        assert isinstance(table, lookup.TableItem)
        assert (table.id, table.kind, table.spec) == (item_id, "table", spec)
    source = item(catalog, ("public", "auction"))
    assert isinstance(source, lookup.SourceItem)
    assert source.id == source_id
    assert source.spec == AUCTION.model_copy(update={"legacy": None})
    assert (reads(catalog, view), view_text(catalog, view)) == ({bids}, query)
    assert "no collection of the source itself" in report.sources[0].notes[0]


@on_one
def test_a_source_of_several_outputs_has_no_collection_of_its_own(catalog: Catalog) -> None:
    source_id, subsources = add_multi(catalog, ("public", "auction"))
    with catalog.read() as session:
        owners = set(session.scalars(text("SELECT table_id FROM collections")))
    assert owners == set(subsources)
    assert source_id not in owners


def test_options_of_columns_are_copied_to_subsources_before_they_leave_the_source(catalog: Catalog) -> None:
    bare = BIDS.model_copy(update={"text_columns": (), "exclude_columns": ()})
    source_id, (bids, users) = add_multi(
        catalog, ("public", "auction"), {("public", "bids"): bare, ("public", "users"): USERS}
    )
    before = definitions(catalog)
    report = do(catalog)
    with catalog.read() as session:
        assert lookup.get_table_item(session, bids).spec == BIDS
        assert lookup.get_table_item(session, users).spec == USERS
        assert lookup.get_source_item(session, source_id).spec.legacy is None
    (told,) = [one for one in report.sources[0].objects if one.id == bids]
    assert "TEXT COLUMNS (amount)" in (told.after or "")
    do(catalog, "rollback")
    assert definitions(catalog) == before


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

ODD = [
    "🦊", "a.b", 'say "hi"', "it's", "$(rm -rf ~)", "--conf", "{{ params }}", "`ls`", "Größe", "select", "a b",
    "u1", "%s:x",
]  # fmt: skip


@on_one
def test_odd_names_are_kept_as_they_are(catalog: Catalog) -> None:
    made = {name: add_single(catalog, ("Shop 1", name)) for name in ODD}
    quoted = {name: '"Shop 1"."{}"'.format(name.replace('"', '""')) for name in ODD}
    views = {name: add_view(catalog, ("public", name), f"SELECT id FROM {quoted[name]}") for name in ODD}
    before, texts = definitions(catalog), {name: view_text(catalog, view) for name, view in views.items()}
    for name, (source_id, output) in made.items():
        do(catalog, wanted=Wanted(quoted[name]))
        assert name_of(catalog, source_id) == ("Shop 1", f"{name}_source")
        assert name_of(catalog, output) == ("Shop 1", name)
    assert {name: view_text(catalog, view) for name, view in views.items()} == texts
    for name in ODD:
        do(catalog, "rollback", Wanted(quoted[name]))
    assert definitions(catalog) == before


@on_one
def test_the_next_free_name_is_taken(catalog: Catalog) -> None:
    first, table = add_single(catalog, ORDERS)
    taken, taken_table = add_single(catalog, ("public", "orders_source"))
    add_view(catalog, ("public", "orders_source_1"), "SELECT 1 AS one FROM orders")
    elsewhere, _ = add_single(catalog, ("other", "orders"))
    planned = run(catalog, ALL, Run())
    do(catalog)
    names = [name_of(catalog, one) for one in (first, taken, elsewhere)]
    assert names == [
        ("public", "orders_source_2"), ("public", "orders_source_source"), ("other", "orders_source"),
    ]  # fmt: skip
    assert name_of(catalog, table) == ORDERS
    assert name_of(catalog, taken_table) == ("public", "orders_source")
    assert [o.name for one in planned.sources for o in one.objects if o.kind == "source"] == [
        "orders_source_2", "orders_source_source", "other.orders_source",
    ]  # fmt: skip


@on_one
def test_a_plan_of_several_gives_no_name_twice(catalog: Catalog) -> None:
    long = "n" * 255
    first, _ = add_single(catalog, ("public", long), progress=("public", "p1"))
    second, _ = add_single(catalog, ("public", long[:-1] + "x"), progress=("public", "p2"))
    planned = run(catalog, ALL, Run())
    do(catalog)
    names = [name_of(catalog, one)[1] for one in (first, second)]
    assert names == ["n" * 248 + "_source", "n" * 246 + "_source_1"]
    assert [o.name for one in planned.sources for o in one.objects if o.kind == "source"] == names


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
    assert planned.next == "--apply does it"
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
    assert report.notes == (f"subsource users ({users.id}) was dropped since: it does not come back",)
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
        "bids": "'bids' is a subsource: it is migrated with its source. Try: mzshare migrate auction",
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
    assert "what is done is not done twice" in report.next
    report = run(everything, ALL, Run("rollback", apply=True, stop_on_first_failure=False))
    assert [one.state for one in report.sources] == ["failed", "done", "done"]


@on_one
def test_batches_start_while_the_window_is_open(everything: Catalog) -> None:
    opened = iter([True, False])
    report = do(everything, batch_size=2, may_start=lambda: next(opened))
    assert [one.state for one in report.sources] == ["done", "done", "pending"]
    assert report.next == "the same again goes on with what is pending"
    assert [one.state for one in do(everything).sources] == ["already", "already", "done"]
