"""Items as values: find one by name or id, list them. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.connectors.registry import kind_of, parse_source_spec
from airflow_provider_mzshare.control.catalog.damages import current_damage
from airflow_provider_mzshare.control.catalog.database.models import ItemRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind, OutputRow, ProgressRow, ViewRow
from airflow_provider_mzshare.control.catalog.database.source_states import lease_of
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import kind_known_as, known_as
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings, SourceSpec, TableSpec
from airflow_provider_mzshare.core.ticklog.state import Lease, SourceStatus, TableStatus
from airflow_provider_mzshare.errors import UnknownItem


class _Named:
    name: Name

    @property
    def display(self) -> str:
        return display_name(self.name)


@dataclass(frozen=True)
class SourceItem(_Named):
    id: ItemId
    name: Name
    spec: SourceSpec
    settings: SourceSettings
    incarnation: str
    start: Position
    status: SourceStatus
    reason: str | None
    message: str | None
    desired: str
    lease: Lease
    created_at: int
    kind: Literal["source"] = "source"

    @property
    def place(self) -> Place:
        """Of its records."""
        return kind_of(self.spec).place


@dataclass(frozen=True)
class TableItem(_Named):
    """Whatever a source fills: a table, an old-style subsource, or the hidden output of an old-style source.

    ``name`` is the one it is known by: the output has its source's.
    """

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
    kind: ItemKind = "table"
    damage: str | None = None
    """What is damaged in its current generation, if anything."""


@dataclass(frozen=True)
class ViewItem(_Named):
    id: ItemId
    name: Name
    query: str
    """The query; it names what it reads by id."""
    created_at: int
    kind: Literal["view"] = "view"


@dataclass(frozen=True)
class ProgressItem(_Named):
    """An old-style name of a source's progress."""

    id: ItemId
    name: Name
    source_id: ItemId
    created_at: int
    kind: Literal["progress"] = "progress"


Item = SourceItem | TableItem | ViewItem | ProgressItem


@lru_cache(maxsize=1024)
def parse_table_spec(text: str) -> TableSpec:
    return TableSpec.model_validate_json(text)


def find(session: Session, name: Name) -> Item | None:
    """The item that has this name now, or None. A hidden output has no name that a user can write."""
    schema, plain = name
    bearer = select(ItemRow.id).where(
        ItemRow.schema_name == schema, ItemRow.name == plain, ItemRow.dropped_at.is_(None), ItemRow.kind != "output"
    )
    item_id = session.scalar(bearer)
    return None if item_id is None else get_item(session, item_id)


def find_source(session: Session, name: Name) -> SourceItem:
    return as_source(name, find(session, name))


def as_source(name: Name, item: Item | None) -> SourceItem:
    """What was found under the name, if it is a source."""
    if not isinstance(item, SourceItem):
        raise UnknownItem("source", display_name(name), item.kind if item else None)
    return item


def find_table(session: Session, name: Name) -> TableItem:
    """What a source fills under this name; of an old-style source that has the rows itself, its output."""
    item = find(session, name)
    if isinstance(item, SourceItem):
        item = output_of(session, item.id) or item
    return as_table(name, item)


def as_table(name: Name, item: Item | None) -> TableItem:
    """What was found under the name, if a source fills it."""
    if not isinstance(item, TableItem):
        raise UnknownItem("table", display_name(name), item.kind if item else None)
    return item


def output_of(session: Session, source_id: ItemId) -> TableItem | None:
    """The output that an old-style source has as its own relation."""
    table_id = session.scalar(select(OutputRow.table_id).where(OutputRow.source_id == source_id))
    return None if table_id is None else get_table_item(session, table_id)


def get_item(session: Session, item_id: ItemId) -> Item:
    """By id; dropped ones too."""
    row = session.scalar(select(ItemRow).where(ItemRow.id == item_id).execution_options(populate_existing=True))
    if row is None:
        raise UnknownItem(None, item_id)
    name = (row.schema_name, row.name)
    if row.kind == "source":
        return get_source_item(session, item_id)
    if row.kind == "view":
        query = session.scalar(select(ViewRow.query).where(ViewRow.id == item_id)) or ""
        return ViewItem(item_id, name, query, row.created_at)
    if row.kind == "progress":
        of = select(ProgressRow.source_id).where(ProgressRow.id == item_id)
        return ProgressItem(item_id, name, session.execute(of).scalar_one(), row.created_at)
    return get_table_item(session, item_id)


def get_live_item(session: Session, item_id: ItemId) -> Item | None:
    """By id; None for one that was dropped or never was."""
    here = session.scalar(select(ItemRow.id).where(ItemRow.id == item_id, ItemRow.dropped_at.is_(None)))
    return None if here is None else get_item(session, item_id)


def get_source_item(session: Session, source_id: ItemId) -> SourceItem:
    """By id; dropped ones too."""
    row = session.execute(sources().where(SourceRow.id == source_id)).one_or_none()
    if row is None:
        raise UnknownItem("source", source_id)
    return source_item(*row)


def source_place(session: Session, source_id: ItemId) -> Place:
    """Of a source's records; a dropped one's too."""
    spec = session.scalars(select(SourceRow.spec).where(SourceRow.id == source_id)).one()
    return kind_of(parse_source_spec(spec)).place


def get_table_item(session: Session, table_id: ItemId) -> TableItem:
    """By id; dropped ones too."""
    row = session.execute(tables().where(TableRow.id == table_id)).one_or_none()
    if row is None:
        raise UnknownItem("table", table_id)
    return table_item(*row)


def list_sources(session: Session) -> Sequence[SourceItem]:
    """All that are not dropped, oldest first."""
    rows = session.execute(sources().where(ItemRow.dropped_at.is_(None)).order_by(ItemRow.number))
    return [source_item(*row) for row in rows]


def list_tables(session: Session, source_id: ItemId | None = None) -> Sequence[TableItem]:
    """All that are not dropped, oldest first; of one source or of all."""
    # An output is known by its source's name, whose row may be marked as dropped a moment later than the output's.
    present = tables().where(ItemRow.dropped_at.is_(None), TableRow.status != "dropped")
    query = present.order_by(ItemRow.number)
    if source_id is not None:
        query = query.where(TableRow.source_id == source_id)
    return [table_item(*row) for row in session.execute(query)]


def sources() -> Select[ItemRow, SourceRow]:
    joined = select(ItemRow, SourceRow).join(SourceRow, SourceRow.id == ItemRow.id)
    return joined.execution_options(populate_existing=True)


def tables() -> Select[ItemRow, TableRow, str | None]:
    joined = select(ItemRow, TableRow, current_damage()).select_from(TableRow).join(ItemRow, known_as())
    return joined.execution_options(populate_existing=True)


def source_item(item: ItemRow, row: SourceRow) -> SourceItem:
    return SourceItem(
        id=row.id,
        name=(item.schema_name, item.name),
        spec=parse_source_spec(row.spec),
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


def table_item(item: ItemRow, row: TableRow, damage: str | None) -> TableItem:
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
        kind=kind_known_as(item),
        damage=damage,
    )
