"""Names and ids of items: one namespace behind one lock, ids that are never given twice."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import definitions_change, touch
from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CounterRow, ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import ItemKind, SchemaRow
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.core.ids import ItemId, format_item_id

Name = tuple[str, str]
"""Schema and name."""


def display_name(name: Name) -> str:
    """The name as SQL writes it; commands take names in the same form."""
    schema, plain = name
    return quote(plain) if schema == DEFAULT_SCHEMA else f"{quote(schema)}.{quote(plain)}"


def lock_namespace(session: Session) -> None:
    """The lock for changes of definitions. It is taken before any source's lock, so that there is no deadlock."""
    definitions_change(session)
    session.execute(select(CounterRow.value).where(CounterRow.name == "item").with_for_update())


def last_item_id(session: Session) -> ItemId:
    """The newest id that was given to an item; ``u0`` before the first."""
    value = session.scalar(select(CounterRow.value).where(CounterRow.name == "item"))
    return ItemId(f"u{value or 0}")


def next_item_id(session: Session) -> ItemId:
    """The counter only grows, so an id stays with its item even after a drop."""
    return format_item_id(_next_number(session, "item"))


def _next_number(session: Session, counter: str) -> int:
    return _last_of(session, counter, 1)


def _last_of(session: Session, counter: str, count: int) -> int:
    """Take ``count`` new numbers from a counter, and return the last of them."""
    counted = update(CounterRow).where(CounterRow.name == counter).values(value=CounterRow.value + count)
    # Not synchronised: the counter is never held as an object.
    return session.execute(
        counted.returning(CounterRow.value), execution_options={"synchronize_session": False}
    ).scalar_one()


def ensure_schema(session: Session, name: str) -> str:
    """The id of the schema with this name. It is created if there is none; after a drop it gets a new id."""
    found = session.get(SchemaRow, name, populate_existing=True)
    if found is not None and found.dropped_at is None:
        return found.id
    schema_id = f"s{_next_number(session, 'schema')}"
    if found is None:
        session.execute(insert(SchemaRow).values(name=name, id=schema_id))
    else:
        revived = update(SchemaRow).where(SchemaRow.name == name).values(id=schema_id, dropped_at=None)
        session.execute(revived, execution_options={"synchronize_session": False})
    return schema_id


def add_item(session: Session, kind: ItemKind, name: Name) -> ItemId:
    """A new item under a name that must be free; its schema comes into being with the first item in it."""
    return add_items(session, kind, [name])[0]


def add_items(session: Session, kind: ItemKind, names: Sequence[Name]) -> list[ItemId]:
    """New items of one kind in this order, by as many statements as one item takes."""
    for schema in dict.fromkeys(schema for schema, _plain in names):
        ensure_schema(session, schema)
    last, now = _last_of(session, "item", len(names)), wall_ms()
    numbers = range(last - len(names) + 1, last + 1)
    rows = [
        {
            "id": format_item_id(number),
            "number": number,
            "kind": kind,
            "schema_name": schema,
            "name": plain,
            "created_at": now,
        }
        for number, (schema, plain) in zip(numbers, names, strict=True)
    ]
    session.execute(insert(ItemRow), rows)
    for number in numbers:
        touch(session, format_item_id(number))
    return [format_item_id(number) for number in numbers]


def retire_item(session: Session, item_id: ItemId) -> None:
    """Mark the item as dropped: its name is free from here on."""
    retire_items(session, [item_id])


def retire_items(session: Session, item_ids: Sequence[ItemId]) -> None:
    now = wall_ms()
    for some in batches(item_ids):
        for item_id in some:
            touch(session, item_id)
        session.execute(
            update(ItemRow).where(ItemRow.id.in_(some)).values(dropped_at=now),
            execution_options={"synchronize_session": False},
        )
