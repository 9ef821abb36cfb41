"""Names of items change, ids do not: rename and swap. The caller owns the transaction and has the namespace's lock."""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.objects.schemas import NOBODYS_NAME
from airflow_provider_mzshare.core.ids import ItemId


def rename_item(session: Session, item_id: ItemId, name: Name) -> None:
    """To a name that must be free, in a schema that must be there."""
    schema, plain = name
    renamed = update(ItemRow).where(ItemRow.id == item_id, ItemRow.dropped_at.is_(None))
    change(session, renamed.values(schema_name=schema, name=plain), 1, f"item {item_id}")


def swap_items(session: Session, one: tuple[ItemId, Name], other: tuple[ItemId, Name]) -> None:
    """Two items swap their names in one transaction: no reader sees a moment without either name."""
    (one_id, one_name), (other_id, other_name) = one, other
    # The unique index of names is checked row by row, so one of them gets a temporary name first.
    rename_item(session, one_id, (one_name[0], f"{NOBODYS_NAME}{one_id}"))
    rename_item(session, other_id, one_name)
    rename_item(session, one_id, other_name)
