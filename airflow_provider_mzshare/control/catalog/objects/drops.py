"""Takes items out of the catalog, whatever their kind, many at once. The caller owns the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow, ReferenceRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.comments import forget_comments
from airflow_provider_mzshare.control.catalog.objects.item_names import retire_items
from airflow_provider_mzshare.control.catalog.objects.schemas import Bearer
from airflow_provider_mzshare.core.ids import ItemId

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def drop_items(session: Session, leaving: Sequence[Bearer]) -> None:
    """Everything that depends on these items must be dropped already, or be among them."""
    by_kind: dict[str, list[ItemId]] = {"names": [], "tables": [], "source": []}
    for item in leaving:
        kind = "source" if item.kind == "source" else "names" if item.kind in ("view", "progress") else "tables"
        by_kind[kind].append(item.id)
    _drop_names(session, by_kind["names"])
    if by_kind["tables"]:
        items.drop_tables(session, by_kind["tables"])
    for source_id in by_kind["source"]:
        items.drop_source(session, source_id)
        session.execute(delete(ReferenceRow).where(ReferenceRow.source_id == source_id), execution_options=_NO_SYNC)
    forget_comments(session, [item.id for item in leaving])


def _drop_names(session: Session, item_ids: Sequence[ItemId]) -> None:
    """Drop views and progress names. Only the dependencies of views are rows to delete; nothing else is stored."""
    for some in batches(item_ids):
        session.execute(delete(DependencyRow).where(DependencyRow.object_id.in_(some)), execution_options=_NO_SYNC)
    retire_items(session, item_ids)
