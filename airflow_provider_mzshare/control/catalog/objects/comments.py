"""Comments on objects and columns, by id: they stay with their object under any name. The caller owns transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.object_models import CommentRow

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def set_comment(session: Session, object_id: str, comment: str | None, column: str = "") -> None:
    """:param object_id: an item's or a schema's. :param comment: None takes it away."""
    before = delete(CommentRow).where(CommentRow.object_id == object_id, CommentRow.column_name == column)
    session.execute(before, execution_options=_NO_SYNC)
    if comment is not None:
        session.execute(insert(CommentRow).values(object_id=object_id, column_name=column, comment=comment))


def comments_of(session: Session, object_id: str) -> dict[str, str]:
    """By column; the object's own is under the empty name."""
    query = select(CommentRow.column_name, CommentRow.comment).where(CommentRow.object_id == object_id)
    return {row.column_name: row.comment for row in session.execute(query)}


def forget_comments(session: Session, object_ids: Iterable[str]) -> None:
    """Of objects that are dropped."""
    for some in batches(object_ids):
        session.execute(delete(CommentRow).where(CommentRow.object_id.in_(some)), execution_options=_NO_SYNC)
