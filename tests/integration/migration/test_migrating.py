"""Legacy sources become sources with tables: names keep their rows, ids are as promised, and data is not touched."""

from __future__ import annotations

from sqlalchemy import text

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import comments, items, legacy_sources, lookup
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.views.readable import find_relation
from tests.support.catalog import wrote_all
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
from tests.support.migrating import ALL, ORDERS, do, ingest, item, name_of, on_one, reads, view_text

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
        assert not legacy_sources.legacy_objects(session)
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
    assert "the source itself has no collection" in report.sources[0].notes[0]


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
