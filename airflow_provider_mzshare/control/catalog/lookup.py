"""Items as values: find one by name or id, list them. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.models import ItemRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.naming import Name, display_name
from airflow_provider_mzshare.control.catalog.states import lease_of
from airflow_provider_mzshare.errors import UnknownItem
from airflow_provider_mzshare.storage.ticks.state import Lease, SourceStatus, TableStatus
from airflow_provider_mzshare.types.ids import BackfillId, ItemId
from airflow_provider_mzshare.types.positions import Position
from airflow_provider_mzshare.types.specs import KafkaSourceSpec, SourceSettings, TableSpec


@dataclass(frozen=True)
class SourceItem:
    id: ItemId
    name: Name
    spec: KafkaSourceSpec
    settings: SourceSettings
    incarnation: str
    start: Position
    status: SourceStatus
    reason: str | None
    message: str | None
    desired: str
    lease: Lease
    created_at: int

    @property
    def display(self) -> str:
        return display_name(self.name)


@dataclass(frozen=True)
class TableItem:
    id: ItemId
    name: Name
    source_id: ItemId
    spec: TableSpec
    spec_version: int
    generation: int
    status: TableStatus
    reason: str | None
    start: Position
    start_tick: int
    position: Position
    next_tick: int
    backfill_id: BackfillId | None
    upper: int
    since: int
    rows: int
    errors: int
    created_at: int

    @property
    def display(self) -> str:
        return display_name(self.name)


@lru_cache(maxsize=1024)
def parse_table_spec(text: str) -> TableSpec:
    return TableSpec.model_validate_json(text)


def find(session: Session, name: Name) -> SourceItem | TableItem | None:
    """What bears this name now, or None."""
    schema, plain = name
    bearer = select(ItemRow.id, ItemRow.kind).where(
        ItemRow.schema_name == schema, ItemRow.name == plain, ItemRow.dropped_at.is_(None)
    )
    row = session.execute(bearer).one_or_none()
    if row is None:
        return None
    return get_source_item(session, row.id) if row.kind == "source" else get_table_item(session, row.id)


def find_source(session: Session, name: Name) -> SourceItem:
    item = find(session, name)
    if not isinstance(item, SourceItem):
        raise UnknownItem("source", display_name(name), "table" if item else None)
    return item


def find_table(session: Session, name: Name) -> TableItem:
    item = find(session, name)
    if not isinstance(item, TableItem):
        raise UnknownItem("table", display_name(name), "source" if item else None)
    return item


def get_source_item(session: Session, source_id: ItemId) -> SourceItem:
    """By id; dropped ones too."""
    row = session.execute(_sources().where(SourceRow.id == source_id)).one_or_none()
    if row is None:
        raise UnknownItem("source", source_id)
    return _source_item(*row)


def get_table_item(session: Session, table_id: ItemId) -> TableItem:
    """By id; dropped ones too."""
    row = session.execute(_tables().where(TableRow.id == table_id)).one_or_none()
    if row is None:
        raise UnknownItem("table", table_id)
    return _table_item(*row)


def list_sources(session: Session) -> Sequence[SourceItem]:
    """All that are not dropped, oldest first."""
    rows = session.execute(_sources().where(ItemRow.dropped_at.is_(None)).order_by(ItemRow.number))
    return [_source_item(*row) for row in rows]


def list_tables(session: Session, source_id: ItemId | None = None) -> Sequence[TableItem]:
    """All that are not dropped, oldest first; of one source or of all."""
    query = _tables().where(ItemRow.dropped_at.is_(None)).order_by(ItemRow.number)
    if source_id is not None:
        query = query.where(TableRow.source_id == source_id)
    return [_table_item(*row) for row in session.execute(query)]


def _sources() -> Select[ItemRow, SourceRow]:
    joined = select(ItemRow, SourceRow).join(SourceRow, SourceRow.id == ItemRow.id)
    return joined.execution_options(populate_existing=True)


def _tables() -> Select[ItemRow, TableRow]:
    joined = select(ItemRow, TableRow).join(TableRow, TableRow.id == ItemRow.id)
    return joined.execution_options(populate_existing=True)


def _source_item(item: ItemRow, row: SourceRow) -> SourceItem:
    return SourceItem(
        id=row.id,
        name=(item.schema_name, item.name),
        spec=KafkaSourceSpec.model_validate_json(row.spec),
        settings=SourceSettings.model_validate_json(row.settings),
        incarnation=row.incarnation,
        start=row.start,
        status=row.status,
        reason=row.reason,
        message=row.message,
        desired=row.desired,
        lease=lease_of(row),
        created_at=item.created_at,
    )


def _table_item(item: ItemRow, row: TableRow) -> TableItem:
    return TableItem(
        id=row.id,
        name=(item.schema_name, item.name),
        source_id=row.source_id,
        spec=parse_table_spec(row.spec),
        spec_version=row.spec_version,
        generation=row.generation,
        status=row.status,
        reason=row.reason,
        start=row.start,
        start_tick=row.start_tick,
        position=row.position,
        next_tick=row.next_tick,
        backfill_id=row.backfill_id,
        upper=row.upper,
        since=row.since,
        rows=row.rows,
        errors=row.errors,
        created_at=item.created_at,
    )
