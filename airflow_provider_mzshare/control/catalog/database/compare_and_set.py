"""Compare and set: one statement that must change exactly the rows that were read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import CursorResult, Update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.errors import LogConflict


def change(
    session: Session, statement: Update, expected: int, what: str, values: Mapping[str, object] | None = None
) -> None:
    """A row that is no longer as it was read undoes the whole transaction. :param values: of the statement's names."""
    result = session.execute(statement, values, execution_options={"synchronize_session": False})
    if cast("CursorResult[Any]", result).rowcount != expected:
        raise LogConflict(f"{what} changed meanwhile")
