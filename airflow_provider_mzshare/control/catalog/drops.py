"""Takes items out of the catalog, whatever their kind. The caller says in which order, and owns the transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import items
from airflow_provider_mzshare.control.catalog.comments import forget_comments
from airflow_provider_mzshare.control.catalog.naming import retire_item
from airflow_provider_mzshare.control.catalog.object_models import DependencyRow, ReferenceRow
from airflow_provider_mzshare.control.catalog.schemas import Bearer

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def drop(session: Session, item: Bearer) -> None:
    """What hangs on it must be gone already."""
    if item.kind == "source":
        items.drop_source(session, item.id)
        session.execute(delete(ReferenceRow).where(ReferenceRow.source_id == item.id), execution_options=_NO_SYNC)
    elif item.kind in ("view", "progress"):
        session.execute(delete(DependencyRow).where(DependencyRow.object_id == item.id), execution_options=_NO_SYNC)
        retire_item(session, item.id)
    else:
        items.drop_table(session, item.id)
    forget_comments(session, item.id)
