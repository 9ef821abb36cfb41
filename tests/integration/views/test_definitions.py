"""Views in the catalog: names become ids and come back as names, what is not there is told, nothing reaches outside."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import ViewRow
from airflow_provider_mzshare.control.catalog.objects import legacy_sources, lookup
from airflow_provider_mzshare.control.catalog.objects.renames import rename_item, swap_items
from airflow_provider_mzshare.control.definition_errors import ReservedSchema
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.values import CreateView
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.handlers.views import (
    create_view,
    definition_of,
    list_views,
    view_columns,
)
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.control.views.read_view import plan_view
from airflow_provider_mzshare.control.views.view_errors import BadQuery, UnknownColumn, UnknownRelation
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import MzShareError, NameTaken, SpecConflict
from tests.integration.views.conftest import Make, reads, stored
from tests.support.filled import Filled
from tests.support.legacy import add_output


@pytest.fixture
def tables(filled: Filled) -> tuple[ItemId, ItemId, ItemId]:
    """A source ``s`` (u1) with ``orders`` (u2) and ``"Odd ""Name"` .`` (u3)."""
    source = filled.source()
    return (
        source,
        filled.table(source, "orders", "id bigint, amount numeric(12,2), note text, customerId text"),
        filled.table(source, 'Odd "Na`me', "id bigint, n integer"),
    )


def shown(catalog: Catalog, name: str) -> str:
    with catalog.read() as session:
        item = lookup.find(session, ("public", name))
        assert isinstance(item, lookup.ViewItem)
        return definition_of(session, item).query


KEPT = [
    ("SELECT ID FROM Orders", 'SELECT "id" FROM "u2" AS "orders"', "SELECT id FROM orders"),
    (
        "SELECT public.orders.id FROM public.orders",
        'SELECT "orders"."id" FROM "u2" AS "orders"',
        "SELECT orders.id FROM orders",
    ),
    (
        'SELECT o."customerId" FROM orders AS o -- a remark',
        'SELECT "o"."customerId" FROM "u2" AS "o"',
        'SELECT o."customerId" FROM orders AS o',
    ),
    (
        'SELECT n FROM "Odd ""Na`me"',
        'SELECT "n" FROM "u3" AS "Odd ""Na`me"',
        'SELECT n FROM "Odd ""Na`me"',
    ),
    (
        "WITH orders AS (SELECT id FROM orders) SELECT id FROM orders",
        'WITH "orders" AS (SELECT "id" FROM "u2" AS "orders") SELECT "id" FROM "orders"',
        "WITH orders AS (SELECT id FROM public.orders) SELECT id FROM orders",
    ),
    ("SELECT offset FROM s", 'SELECT "offset" FROM "u1" AS "s"', 'SELECT "offset" FROM s'),
    (
        'SELECT id FROM orders WHERE id IN (SELECT x.id FROM "Odd ""Na`me" AS x) UNION SELECT 1 ORDER BY 1',
        'SELECT "id" FROM "u2" AS "orders" WHERE "id" IN (SELECT "x"."id" FROM "u3" AS "x") UNION SELECT 1 ORDER BY 1',
        'SELECT id FROM orders WHERE id IN (SELECT x.id FROM "Odd ""Na`me" AS x) UNION SELECT 1 ORDER BY 1',
    ),
]


def test_what_a_view_reads_is_kept_by_id(catalog: Catalog, tables: object, make: Make) -> None:
    for number, (query, by_id, by_name) in enumerate(KEPT):
        view = make(f"v{number}", query)
        assert stored(catalog, f"v{number}") == by_id
        assert shown(catalog, f"v{number}") == by_name
        # What is shown makes the same view again.
        make(f"again{number}", by_name)
        assert stored(catalog, f"again{number}") == by_id
        assert make(f"v{number}", by_name, if_not_exists=True) == view
        assert reads(catalog, view) == {one for one in ("u1", "u2", "u3") if f'"{one}"' in by_id}


def test_renames_and_swaps_change_what_is_shown_and_not_what_is_read(
    catalog: Catalog, tables: tuple[ItemId, ...], make: Make, filled: Filled
) -> None:
    source, orders, _ = tables
    make("v", "SELECT id FROM orders")
    make("w", "SELECT v.id FROM v")
    with catalog.write() as session:
        rename_item(session, orders, ("public", "Alt"))
    assert shown(catalog, "v") == 'SELECT id FROM "Alt" AS orders'
    next_one = filled.table(source, "orders", "id bigint")
    with catalog.write() as session:
        swap_items(session, (orders, ("public", "Alt")), (next_one, ("public", "orders")))
    assert shown(catalog, "v") == "SELECT id FROM orders"
    assert stored(catalog, "v") == 'SELECT "id" FROM "u2" AS "orders"'
    assert reads(catalog, ItemId("u4")) == {"u2"}
    with catalog.read() as session:
        assert [view.name[1] for view in list_views(session)] == ["v", "w"]


def test_the_same_definition_is_no_change_and_another_one_is_told(catalog: Catalog, tables: object, make: Make) -> None:
    view = make("v", "SELECT id FROM orders")
    assert make("v", 'select "id"\nfrom public."orders"', if_not_exists=True) == view
    with pytest.raises(SpecConflict, match="it is SELECT id FROM orders"):
        make("v", "SELECT note FROM orders", if_not_exists=True)
    with pytest.raises(NameTaken):
        make("v", "SELECT id FROM orders")
    with pytest.raises(NameTaken, match="it is a table"):
        make("orders", "SELECT 1 AS one", if_not_exists=True)


REFUSED: list[tuple[str, type[MzShareError], str]] = [
    ("SELECT id FROM ordres", UnknownRelation, "there is no source, table or view 'ordres'; there is orders"),
    ("SELECT id FROM nowhere.orders", UnknownRelation, "nowhere.orders"),
    ('SELECT id FROM mz_internal."u1"', UnknownRelation, "mz_internal.u1"),
    ("SELECT amont FROM orders", UnknownColumn, "there is no column 'amont' here; there is amount"),
    ("SELECT o.zzz FROM orders o", UnknownColumn, "there are: id, amount, note, customerId"),
    ("SELECT customerId FROM orders", UnknownColumn, "there is customerId"),
    ("SELECT x.id FROM orders", UnknownColumn, "x"),
    ("SELECT orders FROM orders", UnknownColumn, "'orders'"),
    ("SELECT _mz_tick FROM orders", UnknownColumn, "_mz_tick"),
    ("SELECT id FROM orders, s WHERE zzz = 1", UnknownColumn, "zzz"),
    ('SELECT id FROM orders a, "Odd ""Na`me" b', BadQuery, "column 'id' is in more than one relation"),
    ("SELECT id, note AS ID FROM orders", BadQuery, "more than one column 'id'"),
    ("SELECT 1, 2", BadQuery, "column"),
    ("SELECT o.id FROM orders o, orders o", BadQuery, "two relations are called 'o'"),
    ("DELETE FROM orders", BadQuery, "expected a query, SELECT …, found DELETE"),
    ("SELECT 1; SELECT 2", BadQuery, "expected the end of the statement, found ;"),
    ("SELECT id INTO x FROM orders", BadQuery, "INTO"),
    ("SELECT id FROM orders FOR UPDATE", BadQuery, "FOR UPDATE"),
    ("SELECT reflect('java.lang.System', 'getenv')", BadQuery, "function reflect"),
    ("SELECT java_method('java.lang.Runtime', 'x')", BadQuery, "function java_method"),
    ("SELECT try_reflect('a', 'b')", BadQuery, "function try_reflect"),
    ("SELECT input_file_name() FROM orders", BadQuery, "function input_file_name"),
    ("SELECT * FROM read_files('/etc/passwd')", BadQuery, "table function read_files"),
    ("SELECT * FROM range(10)", BadQuery, "table function range"),
    ("SELECT pg_read_file('x')", BadQuery, "function pg_read_file"),
    ("SELECT random()", BadQuery, "function rand"),
    ("SELECT current_user", BadQuery, "function current_user"),
    ("SELECT public.reflect('a')", BadQuery, "not supported"),
    ("SELECT id FROM orders TABLESAMPLE SYSTEM (1)", BadQuery, "sample"),
    ("SELECT $1", BadQuery, "no parameters"),
    ("SELECT id FROM a.b.orders", BadQuery, "at most two parts, schema.name"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n) SELECT n FROM r", BadQuery, "WITH RECURSIVE"),
    ("WITH u2 AS (SELECT 1 AS id) SELECT id FROM orders", BadQuery, "names of this form are ids"),
    ("SELECT DISTINCT ON (id) id FROM orders", BadQuery, "DISTINCT ON"),
    ("SELECT string_agg(note, ',' ORDER BY id) FROM orders", BadQuery, "ORDER BY inside"),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM orders", BadQuery, "not"),
    ("SELECT id > ALL (SELECT n FROM s) FROM orders", BadQuery, "not supported"),
    ("SELECT id = ANY (SELECT 1) FROM orders", BadQuery, "ANY takes an array"),
    ("SELECT initcap(note) FROM orders", BadQuery, "function initcap"),
    ("SELECT substring(note from 'a.b') FROM orders", BadQuery, "substring takes positions, not a pattern"),
    ("SELECT extract(dow FROM now())", BadQuery, "EXTRACT takes YEAR"),
    ("SELECT x FROM (ARRAY[2, 1]) AS g(x)", BadQuery, "does not understand"),
    ("SELECT count(*) FILTER (WHERE id > 1) OVER (ORDER BY id) FROM orders", BadQuery, "FILTER with OVER"),
    ("SELECT FROM WHERE", BadQuery, "cannot be read"),
]


def test_what_cannot_be_is_told_in_one_error(catalog: Catalog, tables: object, make: Make) -> None:
    for query, error, words in REFUSED:
        with pytest.raises(error, match=words):
            make("v", query)
    with catalog.read() as session:
        assert lookup.find(session, ("public", "v")) is None


def test_a_view_of_what_is_no_longer_admitted_can_be_shown_and_renamed_but_not_read(
    catalog: Catalog, tables: tuple[ItemId, ItemId, ItemId], make: Make
) -> None:
    view_id = make("v", "SELECT lower(note) AS n FROM orders")
    on_it = make("w", "SELECT n FROM v")
    with catalog.write() as session:
        text = stored(catalog, "v").replace("LOWER(", "INITCAP(")
        session.execute(update(ViewRow).where(ViewRow.id == view_id).values(query=text))
    with catalog.write() as session:
        rename_item(session, tables[1], ("public", "sales"))
    assert shown(catalog, "v") == "SELECT INITCAP(note) AS n FROM sales AS orders"
    with catalog.read() as session:
        with pytest.raises(BadQuery, match=r"^function initcap"):
            plan_view(session, view_id)
        with pytest.raises(BadQuery, match=r"^view v: function initcap"):
            plan_view(session, on_it)


def test_an_error_names_the_next_step(tables: object, make: Make) -> None:
    with pytest.raises(UnknownRelation) as caught:
        make("v", "SELECT 1 AS a FROM ordrs")
    assert caught.value.line == (
        "there is no source, table or view 'ordrs'; there is orders. Try: mzshare sql 'SHOW TABLES'"
    )


def test_columns_of_views_are_known_to_views_on_them(catalog: Catalog, tables: object, make: Make) -> None:
    make("v", "SELECT id AS k, sum(amount), count(*), max(note)::text AS t FROM orders GROUP BY id")
    make("w", "SELECT v.*, sum / 2 AS half FROM v WHERE count > 1")
    with pytest.raises(UnknownColumn, match="'id'"):
        make("x", "SELECT id FROM w")
    with catalog.read() as session:
        view = lookup.find(session, ("public", "w"))
        assert isinstance(view, lookup.ViewItem)
        assert list(view_columns(session, view)) == ["k", "sum", "count", "t", "half"]


def test_reserved_schemas_hold_no_views(catalog: Catalog) -> None:
    statement = CreateView(QualifiedName("mz_catalog", "v"), False, "SELECT 1 AS a")
    with pytest.raises(ReservedSchema), catalog.write() as session:
        create_view(session, Checked(statement), Context(dry_run=False))


def test_an_old_style_source_is_read_as_its_output_and_its_progress_name_as_progress(
    catalog: Catalog, filled: Filled, make: Make
) -> None:
    source = filled.source("old")
    with catalog.write() as session:
        output = add_output(session, source, TableSpec(reference="t", format="text"))
        legacy_sources.add_progress(session, source, ("public", "old_progress"))
    view = make("v", "SELECT data FROM old")
    make("p", "SELECT tick FROM old_progress")
    assert stored(catalog, "v") == f'SELECT "data" FROM "{source}" AS "old"'
    assert reads(catalog, view) == {source}
    with pytest.raises(UnknownColumn):
        make("w", "SELECT tick FROM old")
    with pytest.raises(UnknownRelation, match="mz_internal"):
        make("h", f'SELECT data FROM mz_internal."{source}"')
    with catalog.read() as session:
        assert lookup.get_item(session, output).kind == "output"
