"""The names tables are known by: their own, or an old-style source's for the output that is its relation."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, func, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from airflow_provider_mzshare.control.catalog.database.models import ItemRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind, OutputRow
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.core.ids import ItemId


def known_as(table_id: InstrumentedAttribute[ItemId] = TableRow.id) -> ColumnElement[bool]:
    """Joins a table's row (or another's ``table_id``) to the item whose name it is known by.

    That of an old-style source for its output, as long as there is a row in ``outputs``; a migration takes it away.
    """
    source = select(OutputRow.source_id).where(OutputRow.table_id == table_id).correlate_except(OutputRow)
    return ItemRow.id == func.coalesce(source.scalar_subquery(), table_id)


def kind_known_as(item: ItemRow) -> ItemKind:
    """What kind of table it is, by the item that ``known_as`` found for it."""
    return "output" if item.kind == "source" else item.kind


def named_tables(names: Collection[Name]) -> Select[ItemId]:
    """Ids of the tables that are known by these names now."""
    return (
        select(func.coalesce(OutputRow.table_id, ItemRow.id))
        .select_from(ItemRow)
        .outerjoin(OutputRow, OutputRow.source_id == ItemRow.id)
        .where(tuple_(ItemRow.schema_name, ItemRow.name).in_(names), ItemRow.dropped_at.is_(None))
    )
