"""Schemas, names, comments, settings and references as rows, below any statement."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow, ViewRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.comments import comments_of, set_comment
from airflow_provider_mzshare.control.catalog.objects.dependents import leaving_with
from airflow_provider_mzshare.control.catalog.objects.drops import drop_items
from airflow_provider_mzshare.control.catalog.objects.item_names import add_item, ensure_schema
from airflow_provider_mzshare.control.catalog.objects.renames import rename_item, swap_items
from airflow_provider_mzshare.control.catalog.objects.schemas import (
    Bearer,
    find_schema,
    items_in,
    list_schemas,
    rename_schema,
    swap_schemas,
)
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import LogConflict

SPEC = TableSpec(namespace="counter", reference="counter", format="none")


def add_source(catalog: Catalog, name: str = "s") -> ItemId:
    with catalog.write() as session:
        spec = LoadGeneratorSpec(generator="counter")
        return items.create_source(session, name=("public", name), spec=spec, incarnation="i", start=Position())


def add_view(catalog: Catalog, name: str, *reads: ItemId) -> ItemId:
    with catalog.write() as session:
        view_id = add_item(session, "view", ("public", name))
        session.execute(insert(ViewRow).values(id=view_id, query=f'SELECT * FROM "{reads[0]}"'))
        for read in reads:
            session.execute(insert(DependencyRow).values(object_id=view_id, referenced_id=read))
    return view_id


def add_table(catalog: Catalog, source_id: ItemId, name: str) -> ItemId:
    with catalog.write() as session:
        return items.create_table(session, name=("public", name), source_id=source_id, spec=SPEC)


def test_a_source_of_any_kind_is_read_back_as_it_was(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    with catalog.read() as session:
        found = items.get_item(session, source_id)
    assert isinstance(found, items.SourceItem)
    assert found.spec == LoadGeneratorSpec(generator="counter")


def test_items_are_found_as_what_they_are(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    table_id = add_table(catalog, source_id, "t")
    view_id = add_view(catalog, "v", table_id)
    with catalog.read() as session:
        view = items.find(session, ("public", "v"))
        assert isinstance(view, items.ViewItem)
        assert (view.id, view.query, view.kind) == (view_id, f'SELECT * FROM "{table_id}"', "view")
        assert items.get_live_item(session, ItemId("u99")) is None
    with catalog.write() as session:
        drop_items(session, [Bearer(view_id, "view", ("public", "v"))])
    with catalog.read() as session:
        assert items.get_live_item(session, view_id) is None
        assert items.get_item(session, view_id) == view, "by id, dropped ones too"


def test_names_move_and_ids_stay(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    one, other = (add_table(catalog, source_id, name) for name in ("one", "other"))
    with catalog.write() as session:
        swap_items(session, (one, ("public", "one")), (other, ("public", "other")))
        ensure_schema(session, "next")
        rename_item(session, one, ("next", "one"))
    with catalog.read() as session:
        assert items.find_table(session, ("public", "one")).id == other
        assert items.find_table(session, ("next", "one")).id == one
        assert items.find(session, ("public", "other")) is None
    with pytest.raises(LogConflict), catalog.write() as session:
        rename_item(session, ItemId("u99"), ("public", "x"))


def test_schemas_move_with_their_items_and_ids(catalog: Catalog) -> None:
    with catalog.write() as session:
        ensure_schema(session, "a")
        ensure_schema(session, "b")
    source_id = add_source(catalog)
    with catalog.write() as session:
        rename_item(session, source_id, ("a", "s"))
        swap_schemas(session, "a", "b")
        assert [item.id for item in items_in(session, "b")] == [source_id]
        assert [(s.name, s.id) for s in list_schemas(session)] == [("public", "s1"), ("b", "s2"), ("a", "s3")]
        rename_schema(session, "b", "c")
        assert find_schema(session, "b") is None
        assert find_schema(session, "c") is not None
        rename_schema(session, "a", "b")
    with catalog.read() as session:
        assert [(s.name, s.id) for s in list_schemas(session)] == [("public", "s1"), ("c", "s2"), ("b", "s3")]
        assert items.get_source_item(session, source_id).name == ("c", "s")


def test_who_depends_leaves_first_whatever_the_shape(catalog: Catalog) -> None:
    """A diamond: both sides of it before its foot, its tip before both."""
    source_id = add_source(catalog)
    table_id = add_table(catalog, source_id, "t")
    left, right = (add_view(catalog, name, table_id) for name in ("left", "right"))
    tip = add_view(catalog, "tip", right, left, table_id)
    with catalog.read() as session:
        leaving = leaving_with(session, [Bearer(source_id, "source", ("public", "s"))])
    order = [one.item.id for one in leaving]
    assert sorted(order) == sorted((source_id, table_id, left, right, tip))
    assert order.index(tip) < min(order.index(left), order.index(right))
    assert max(order.index(left), order.index(right)) < order.index(table_id) < order.index(source_id)
    assert [one.why for one in leaving][-1] == "asked"
    with catalog.write() as session:
        for one in leaving:
            drop_items(session, [one.item])
    with catalog.read() as session:
        assert items.list_sources(session) == []


def test_comments_are_set_replaced_and_taken_away(catalog: Catalog) -> None:
    with catalog.write() as session:
        set_comment(session, "s1", "one")
        set_comment(session, "s1", "two")
        set_comment(session, "s1", "col", "c")
        assert comments_of(session, "s1") == {"": "two", "c": "col"}
        set_comment(session, "s1", None)
        assert comments_of(session, "s1") == {"c": "col"}
