"""The collections of a table, two for each generation: named here, made in the warehouse by the app that writes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow
from airflow_provider_mzshare.core.ids import ItemId, new_collection_id
from airflow_provider_mzshare.core.schema import HASH_VERSION

ROLES = ("data", "errors")


def add_collections(session: Session, table_ids: Sequence[ItemId], generation: int) -> None:
    now = wall_ms()
    named = [
        (table_id, role, new_collection_id(table_id, generation, role)) for table_id in table_ids for role in ROLES
    ]
    session.execute(
        insert(CollectionRow),
        [
            {
                "id": collection_id,
                "table_id": table_id,
                "generation": generation,
                "role": role,
                "path": str(collection_id),
                "created_at": now,
                "hash_version": HASH_VERSION,
            }
            for table_id, role, collection_id in named
        ],
    )
