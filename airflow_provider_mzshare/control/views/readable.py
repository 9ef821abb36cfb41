"""What a query can read, by name or by id: its columns, its source, and where the rows are. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import HIDDEN_SCHEMA
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.views.view_errors import UnknownRelation
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.schema import Column

PROGRESS_COLUMNS = (
    Column("partition", "integer"),
    Column("offset", "bigint"),
    Column("tick", "bigint"),
    Column("mz_timestamp", "bigint"),
)
"""How far a source has come: per partition the next offset to read, as of its last committed tick."""


@dataclass(frozen=True)
class Relation:
    """:param id: what a view stores. For an old-style source that has rows of its own it is the source's id: its name
    means its output, until a migration makes that output a table and rewrites the view.
    """

    id: ItemId
    name: Name
    kind: Literal["table", "progress", "view"]
    item: lookup.Item
    """The table, the view, or the source whose progress it is."""

    @property
    def display(self) -> str:
        return display_name(self.name)


def find_relation(session: Session, name: Name) -> Relation:
    item = lookup.find(session, name) if name[0] != HIDDEN_SCHEMA else None
    if item is None:
        raise UnknownRelation(display_name(name), _known(session))
    return _relation(session, item)


def get_relation(session: Session, item_id: ItemId) -> Relation:
    return _relation(session, lookup.get_item(session, item_id))


def _relation(session: Session, item: lookup.Item) -> Relation:
    if isinstance(item, lookup.SourceItem):
        output = lookup.output_of(session, item.id)
        if output is not None:
            return Relation(item.id, item.name, "table", output)
        return Relation(item.id, item.name, "progress", item)
    if isinstance(item, lookup.ProgressItem):
        return Relation(item.id, item.name, "progress", lookup.get_source_item(session, item.source_id))
    return Relation(item.id, item.name, "view" if isinstance(item, lookup.ViewItem) else "table", item)


def _known(session: Session) -> list[str]:
    rows = session.execute(
        select(ItemRow.schema_name, ItemRow.name).where(
            ItemRow.dropped_at.is_(None), ItemRow.schema_name != HIDDEN_SCHEMA
        )
    )
    return [display_name((row.schema_name, row.name)) for row in rows]
