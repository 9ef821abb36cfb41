"""Schemas as rows: made, listed, renamed, swapped, dropped. The caller owns the transaction, and has locked the names.

A schema's name is its key, which items refer to. So a new name is a row of its own that takes the id over, and the
items move to it; whoever looks by id finds the same schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind, SchemaId, SchemaRow
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, ensure_schema
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.core.ids import ItemId

RESERVED_PREFIXES = ("mz_", "pg_")
NOBODYS_NAME = "\x01"
"""A temporary name during a swap. Users cannot take it: no name may hold a control character."""
_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


@dataclass(frozen=True)
class Schema:
    id: SchemaId
    name: str

    @property
    def display(self) -> str:
        return quote(self.name)


@dataclass(frozen=True)
class Bearer:
    """An item as far as names go."""

    id: ItemId
    kind: ItemKind
    name: Name


def is_reserved(name: str) -> bool:
    return name.lower().startswith(RESERVED_PREFIXES)


def find_schema(session: Session, name: str) -> Schema | None:
    row = session.get(SchemaRow, name, populate_existing=True)
    return None if row is None or row.dropped_at is not None else Schema(row.id, row.name)


def list_schemas(session: Session) -> Sequence[Schema]:
    """Those of users, oldest first."""
    rows = session.execute(select(SchemaRow.id, SchemaRow.name).where(SchemaRow.dropped_at.is_(None)))
    found = [Schema(row.id, row.name) for row in rows if not is_reserved(row.name)]
    return sorted(found, key=lambda schema: int(schema.id[1:]))


def items_in(session: Session, name: str) -> Sequence[Bearer]:
    """All that is not dropped in a schema, oldest first."""
    here = select(ItemRow.id, ItemRow.kind, ItemRow.name).where(
        ItemRow.schema_name == name, ItemRow.dropped_at.is_(None)
    )
    return [Bearer(row.id, row.kind, (name, row.name)) for row in session.execute(here.order_by(ItemRow.number))]


def create_schema(session: Session, name: str) -> SchemaId:
    return ensure_schema(session, name)


def drop_schema(session: Session, name: str) -> None:
    """The schema must be empty, except for dropped items. The default schema is created again at once."""
    gone = update(SchemaRow).where(SchemaRow.name == name).values(dropped_at=wall_ms())
    session.execute(gone, execution_options=_NO_SYNC)
    if name == DEFAULT_SCHEMA:
        ensure_schema(session, name)


def rename_schema(session: Session, name: str, new_name: str) -> None:
    """``new_name`` must be free."""
    schema = session.get_one(SchemaRow, name, populate_existing=True)
    schema_id = schema.id
    session.expunge(schema)
    earlier = session.get(SchemaRow, new_name, populate_existing=True)
    if earlier is None:
        session.execute(insert(SchemaRow).values(name=new_name, id=schema_id))
    else:
        revived = update(SchemaRow).where(SchemaRow.name == new_name).values(id=schema_id, dropped_at=None)
        session.execute(revived, execution_options=_NO_SYNC)
    _move_items(session, name, new_name)
    session.execute(delete(SchemaRow).where(SchemaRow.name == name), execution_options=_NO_SYNC)


def swap_schemas(session: Session, one: str, other: str) -> None:
    session.execute(insert(SchemaRow).values(name=NOBODYS_NAME, id=""))
    for old, new in ((one, NOBODYS_NAME), (other, one), (NOBODYS_NAME, other)):
        _move_items(session, old, new)
    ids = dict(session.execute(select(SchemaRow.name, SchemaRow.id).where(SchemaRow.name.in_((one, other)))).all())
    for name, schema_id in ((one, ids[other]), (other, ids[one])):
        session.execute(
            update(SchemaRow).where(SchemaRow.name == name).values(id=schema_id), execution_options=_NO_SYNC
        )
    session.execute(delete(SchemaRow).where(SchemaRow.name == NOBODYS_NAME), execution_options=_NO_SYNC)


def _move_items(session: Session, old: str, new: str) -> None:
    """Move all items of a schema to its new name. Dropped items move too, because they belong to the same schema."""
    session.execute(
        update(ItemRow).where(ItemRow.schema_name == old).values(schema_name=new), execution_options=_NO_SYNC
    )
