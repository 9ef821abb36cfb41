"""Where the rows of a table are: the Delta tables behind it, in its current generation.

The catalog has paths relative to the warehouse, which may be mounted elsewhere on each machine. The caller says where
it is on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, TableRow
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.storage.collections.uris import collection_uri

Role = Literal["data", "errors"]


@dataclass(frozen=True)
class Location:
    """:param uri: a folder of this machine, or a URI. :param exists: the writer has created the Delta table."""

    table_id: ItemId
    generation: int
    role: Role
    uri: str
    exists: bool


def locate(session: Session, warehouse: str, table: TableItem, role: Role = "data") -> Location:
    from airflow_provider_mzshare.storage.collections.collection import collection_exists

    row = session.scalars(
        select(CollectionRow).where(
            CollectionRow.table_id == table.id,
            CollectionRow.generation == table.generation,
            CollectionRow.role == role,
        )
    ).one()
    exists = collection_exists(warehouse, CollectionId(row.path))
    return Location(table.id, table.generation, role, collection_uri(warehouse, row.path), exists)


def data_paths(session: Session, source_id: ItemId) -> Mapping[ItemId, str]:
    """The paths of all tables of a source, relative to the warehouse."""
    current = (CollectionRow.table_id == TableRow.id) & (CollectionRow.generation == TableRow.generation)
    query = select(CollectionRow.table_id, CollectionRow.path).join(TableRow, current)
    rows = session.execute(query.where(TableRow.source_id == source_id, CollectionRow.role == "data"))
    return {row.table_id: row.path for row in rows}
