"""What hangs on an item: views on what they read, tables on their source, parts on the whole. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.models import ItemRow, TableRow
from airflow_provider_mzshare.control.catalog.object_models import DependencyRow, ProgressRow
from airflow_provider_mzshare.control.catalog.schemas import Bearer
from airflow_provider_mzshare.types.ids import ItemId

PARTS = ("subsource", "output", "progress")
"""Kinds that belong to an old-style source: they go with it, without being asked for."""


@dataclass(frozen=True)
class Leaving:
    """One item that goes when the asked ones go.

    :param why: ``asked``; ``part`` of an item that goes; ``dependent`` on one, which needs CASCADE.
    """

    item: Bearer
    why: Literal["asked", "part", "dependent"]


def leaving_with(session: Session, roots: Sequence[Bearer]) -> Sequence[Leaving]:
    """The roots and all that cannot stay without them, in an order to drop it in: who depends goes first."""
    asked = {root.id for root in roots}
    ordered: list[Leaving] = []
    seen: set[ItemId] = set()

    def visit(item: Bearer) -> None:
        if item.id in seen:
            return
        seen.add(item.id)
        for dependent in direct(session, item.id):
            visit(dependent)
        why = "asked" if item.id in asked else "part" if item.kind in PARTS else "dependent"
        ordered.append(Leaving(item, cast("Any", why)))

    for root in roots:
        visit(root)
    return ordered


def direct(session: Session, item_id: ItemId) -> Sequence[Bearer]:
    """What hangs on one item directly: views, then tables, then parts, each oldest first."""
    names = select(ItemRow.id, ItemRow.kind, ItemRow.schema_name, ItemRow.name).where(ItemRow.dropped_at.is_(None))
    views = select(DependencyRow.object_id).where(DependencyRow.referenced_id == item_id)
    tables = select(TableRow.id).where(TableRow.source_id == item_id)
    progress = select(ProgressRow.id).where(ProgressRow.source_id == item_id)
    query = names.where(or_(ItemRow.id.in_(views), ItemRow.id.in_(tables), ItemRow.id.in_(progress)))
    order = ("view", "table", *PARTS)
    rows = sorted(session.execute(query.order_by(ItemRow.number)), key=lambda row: order.index(row.kind))
    return [Bearer(row.id, row.kind, (row.schema_name, row.name)) for row in rows]
