"""Items as values, many at once: a few statements for any number of them. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.models import ItemRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import ProgressRow, ViewRow
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.objects.lookup import (
    Item,
    ProgressItem,
    SourceItem,
    ViewItem,
    source_item,
    sources,
    table_item,
    tables,
)
from airflow_provider_mzshare.core.ids import ItemId


def find_all(session: Session, names: Collection[Name]) -> dict[Name, Item]:
    """The items that have these names now; names that no item has are left out."""
    bearers: dict[ItemId, Name] = {}
    for some in batches(names):
        here = select(ItemRow.id, ItemRow.schema_name, ItemRow.name).where(
            tuple_(ItemRow.schema_name, ItemRow.name).in_(some),
            ItemRow.dropped_at.is_(None),
            ItemRow.kind != "output",
        )
        bearers |= {row.id: (row.schema_name, row.name) for row in session.execute(here)}
    found = get_items(session, bearers)
    return {name: found[item_id] for item_id, name in bearers.items()}


def get_items(session: Session, item_ids: Collection[ItemId]) -> dict[ItemId, Item]:
    """By id; dropped ones too. Ids that never were are left out."""
    found: dict[ItemId, Item] = {}
    for some in batches(item_ids):
        wanted = select(ItemRow).where(ItemRow.id.in_(some)).execution_options(populate_existing=True)
        by_kind: dict[str, list[ItemRow]] = {}
        for row in session.scalars(wanted):
            by_kind.setdefault(row.kind, []).append(row)
        found |= get_source_items(session, [row.id for row in by_kind.pop("source", [])])
        found |= _views(session, by_kind.pop("view", []))
        found |= _progress(session, by_kind.pop("progress", []))
        found |= _tables(session, [row.id for rows in by_kind.values() for row in rows])
    return found


def get_source_items(session: Session, source_ids: Collection[ItemId]) -> dict[ItemId, SourceItem]:
    """By id; dropped ones too."""
    found: dict[ItemId, SourceItem] = {}
    for some in batches(source_ids):
        items = (source_item(*row) for row in session.execute(sources().where(SourceRow.id.in_(some))))
        found |= {item.id: item for item in items}
    return found


def _tables(session: Session, table_ids: Collection[ItemId]) -> dict[ItemId, Item]:
    if not table_ids:
        return {}
    return {row[1].id: table_item(*row) for row in session.execute(tables().where(TableRow.id.in_(table_ids)))}


def _views(session: Session, rows: Collection[ItemRow]) -> dict[ItemId, Item]:
    if not rows:
        return {}
    query = select(ViewRow.id, ViewRow.query).where(ViewRow.id.in_([row.id for row in rows]))
    texts = {found.id: found.query for found in session.execute(query)}
    return {r.id: ViewItem(r.id, (r.schema_name, r.name), texts.get(r.id, ""), r.created_at) for r in rows}


def _progress(session: Session, rows: Collection[ItemRow]) -> dict[ItemId, Item]:
    if not rows:
        return {}
    query = select(ProgressRow.id, ProgressRow.source_id).where(ProgressRow.id.in_([row.id for row in rows]))
    owners = {found.id: found.source_id for found in session.execute(query)}
    return {r.id: ProgressItem(r.id, (r.schema_name, r.name), owners[r.id], r.created_at) for r in rows}
