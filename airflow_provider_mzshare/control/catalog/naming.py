"""Names and ids of items: one namespace behind one lock, ids that are never given twice."""

from __future__ import annotations

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.clock import wall_ms
from airflow_provider_mzshare.control.catalog.models import CounterRow, ItemRow, SchemaRow
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.types.ids import ItemId, format_item_id

Name = tuple[str, str]
"""Schema and name."""


def display_name(name: Name) -> str:
    """As it must be written in SQL, and so wherever a command asks for a name."""
    schema, plain = name
    return quote(plain) if schema == DEFAULT_SCHEMA else f"{quote(schema)}.{quote(plain)}"


def lock_namespace(session: Session) -> None:
    """Definitions change one after the other: taken before any source's lock, so that none waits in a circle."""
    session.execute(select(CounterRow.value).where(CounterRow.name == "item").with_for_update())


def next_item_id(session: Session) -> ItemId:
    """The counter only grows, so an id stays with its item even after a drop."""
    return format_item_id(_next_number(session))


def _next_number(session: Session) -> int:
    count = update(CounterRow).where(CounterRow.name == "item").values(value=CounterRow.value + 1)
    # Not synchronised: the counter is never held as an object.
    return session.execute(
        count.returning(CounterRow.value), execution_options={"synchronize_session": False}
    ).scalar_one()


def add_item(session: Session, kind: str, name: Name) -> ItemId:
    """A new item under a name that must be free; its schema comes into being with the first item in it."""
    schema, plain = name
    if session.get(SchemaRow, schema) is None:
        session.execute(insert(SchemaRow).values(name=schema))
    item_id = next_item_id(session)
    session.execute(
        insert(ItemRow).values(
            id=item_id,
            number=int(item_id[1:]),
            kind=kind,
            schema_name=schema,
            name=plain,
            created_at=wall_ms(),
        )
    )
    return item_id


def retire_item(session: Session, item_id: ItemId) -> None:
    """Its name is free from here on."""
    session.execute(
        update(ItemRow).where(ItemRow.id == item_id).values(dropped_at=wall_ms()),
        execution_options={"synchronize_session": False},
    )
