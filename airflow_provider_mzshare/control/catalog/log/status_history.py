"""The history of statuses as rows: what a tick may add to it, and how old rows are removed."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import CursorResult, delete, func, select, text
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import StatusRow
from airflow_provider_mzshare.core.ids import ItemId

_FLIP = text(
    "INSERT INTO status_history (occurred_at, object_id, status) SELECT :now, :source, :now_is WHERE :was = "
    "(SELECT h.status FROM status_history AS h WHERE h.object_id = :source ORDER BY h.number DESC LIMIT 1)"
)


def note_flow(session: Session, source_id: ItemId, *, idle: bool) -> None:
    """The source became idle, or stopped being idle. Only one statement, because this runs inside ticks.

    Where the last status is neither running nor idle, whoever changes that status writes the history.
    """
    now_is, was = ("idle", "running") if idle else ("running", "idle")
    session.execute(_FLIP, {"now": wall_ms(), "source": source_id, "now_is": now_is, "was": was})


def prune_history(session: Session, before_ms: int) -> int:
    """Remove older changes. The last change of each object that is not dropped stays: it is the present status."""
    newest = (
        select(func.max(StatusRow.number))
        .join(ItemRow, ItemRow.id == StatusRow.object_id)
        .where(ItemRow.dropped_at.is_(None))
        .group_by(StatusRow.object_id)
    )
    old = delete(StatusRow).where(StatusRow.occurred_at < before_ms, StatusRow.number.not_in(newest))
    done = session.execute(old, execution_options={"synchronize_session": False})
    return cast("CursorResult[Any]", done).rowcount
