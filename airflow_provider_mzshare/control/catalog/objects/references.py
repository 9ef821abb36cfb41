"""What sources could export when they were asked last: at their creation and at REFRESH REFERENCES, and only then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.object_models import ReferenceRow
from airflow_provider_mzshare.core.ids import ItemId

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


@dataclass(frozen=True)
class StoredReference:
    """``columns`` is None where the upstream knows none."""

    namespace: str | None
    name: str
    columns: tuple[str, ...] | None
    updated_at: int


def store_references(session: Session, source_id: ItemId, found: Sequence[ReferenceInfo]) -> None:
    """All that there is now, in the place of what there was."""
    session.execute(delete(ReferenceRow).where(ReferenceRow.source_id == source_id), execution_options=_NO_SYNC)
    now = wall_ms()
    rows = [
        {
            "source_id": source_id,
            "number": number,
            "namespace": reference.namespace,
            "name": reference.name,
            "columns": None if reference.columns is None else json.dumps([c.name for c in reference.columns]),
            "updated_at": now,
        }
        for number, reference in enumerate(found, start=1)
    ]
    if rows:
        session.execute(insert(ReferenceRow), rows)


def list_references(session: Session, source_id: ItemId) -> Sequence[StoredReference]:
    query = select(ReferenceRow).where(ReferenceRow.source_id == source_id).order_by(ReferenceRow.number)
    return [
        StoredReference(
            row.namespace, row.name, None if row.columns is None else tuple(json.loads(row.columns)), row.updated_at
        )
        for row in session.scalars(query.execution_options(populate_existing=True))
    ]
