"""What a writer of collections asks the catalog, whichever app it is in. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import (
    CollectionRow,
    CommitRow,
    ItemRow,
    SpecRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.control.catalog.objects.table_specs import valid_at, valid_spec
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import Generation, Snapshot


@dataclass(frozen=True)
class CatalogMember:
    """A table in one generation, with all a writer needs. Paths are relative to the warehouse."""

    table_id: ItemId
    name: str
    spec: TableSpec
    generation: int
    spec_version: int
    data: CollectionId
    errors: CollectionId
    hash_version: int
    data_path: str
    errors_path: str
    left_out: Snapshot | None = None


def members_of(session: Session, which: ColumnElement[bool], tick: int | ColumnElement[int]) -> Sequence[CatalogMember]:
    """Tables in the generations that ``which`` chooses, each with its spec of a tick, oldest first."""
    query = (
        select(TableRow, SpecRow, ItemRow, CollectionRow)
        .select_from(TableRow)
        .join(SpecRow, valid_at(tick))
        .join(ItemRow, known_as())
        .join(CollectionRow, CollectionRow.table_id == TableRow.id)
        .where(which)
    )
    found: dict[Generation, tuple[TableRow, SpecRow, ItemRow, dict[str, CollectionRow]]] = {}
    for table, spec, item, collection in session.execute(query):
        one = table.id, collection.generation
        found.setdefault(one, (table, spec, item, {}))[3][collection.role] = collection
    return [_member(*found[one]) for one in sorted(found, key=lambda one: (int(one[0][1:]), one[1]))]


def _member(table: TableRow, spec: SpecRow, item: ItemRow, collections: Mapping[str, CollectionRow]) -> CatalogMember:
    data, errors = collections["data"], collections["errors"]
    return CatalogMember(
        table_id=table.id,
        name=display_name((item.schema_name, item.name)),
        spec=valid_spec(spec.spec, table.spec),
        generation=data.generation,
        spec_version=spec.version,
        data=data.id,
        errors=errors.id,
        hash_version=data.hash_version,
        data_path=data.path,
        errors_path=errors.path,
    )


def knows_tick(session: Session, source_id: ItemId, mz_timestamp: int) -> bool:
    query = select(TickRow.number).where(TickRow.source_id == source_id, TickRow.mz_timestamp == mz_timestamp)
    return session.scalar(query) is not None


def written_collections(source_id: ItemId) -> Select[CollectionId]:
    """All of a source's tables that are not dropped, in every generation."""
    return (
        select(CollectionRow.id)
        .join(TableRow, TableRow.id == CollectionRow.table_id)
        .where(TableRow.source_id == source_id, TableRow.status != "dropped")
    )


def last_written(session: Session, collections: Select[CollectionId]) -> Mapping[CollectionId, int]:
    """Per collection, the time of its last commit that the catalog knows."""
    last = select(func.max(CommitRow.mz_timestamp)).where(CommitRow.collection_id == CollectionRow.id)
    query = select(CollectionRow.id, last.scalar_subquery()).where(CollectionRow.id.in_(collections))
    return {collection: time for collection, time in session.execute(query) if time is not None}
