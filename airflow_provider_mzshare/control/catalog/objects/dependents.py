"""What depends on an item: a view on what it reads, a table on its source, a part on the whole. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.models import ItemRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow, ProgressRow
from airflow_provider_mzshare.control.catalog.objects.schemas import Bearer
from airflow_provider_mzshare.core.ids import ItemId

PARTS = ("subsource", "output", "progress")
"""Kinds that belong to an old-style source: they are dropped with it, without CASCADE."""


@dataclass(frozen=True)
class Leaving:
    """One item that is dropped when the items are dropped that a user named.

    :param why: ``asked``: the user named it. ``part`` of an item that is dropped. ``dependent`` on one: needs CASCADE.
    """

    item: Bearer
    why: Literal["asked", "part", "dependent"]


def leaving_with(session: Session, roots: Sequence[Bearer]) -> Sequence[Leaving]:
    """The roots and everything that cannot exist without them, in the order to drop them: dependents come first."""
    asked = {root.id for root in roots}
    hanging = _hanging_on(session, asked)
    ordered: list[Leaving] = []
    seen: set[ItemId] = set()

    def visit(item: Bearer) -> None:
        if item.id in seen:
            return
        seen.add(item.id)
        for dependent in hanging[item.id]:
            visit(dependent)
        why = "asked" if item.id in asked else "part" if item.kind in PARTS else "dependent"
        ordered.append(Leaving(item, cast("Any", why)))

    for root in roots:
        visit(root)
    return ordered


def _hanging_on(session: Session, roots: Iterable[ItemId]) -> dict[ItemId, Sequence[Bearer]]:
    """The direct dependents of the roots and of all their dependents: one query for each step away from the roots."""
    found: dict[ItemId, Sequence[Bearer]] = {}
    asked = set(roots)
    while asked:
        found |= direct(session, asked)
        asked = {one.id for item_id in asked for one in found[item_id]} - found.keys()
    return found


def direct(session: Session, item_ids: Collection[ItemId]) -> dict[ItemId, Sequence[Bearer]]:
    """The direct dependents of each of these items: views, then tables, then parts, each oldest first."""
    found: dict[ItemId, list[Any]] = {item_id: [] for item_id in item_ids}
    for some in batches(item_ids):
        for on, hanging in (
            (DependencyRow.referenced_id, DependencyRow.object_id),
            (TableRow.source_id, TableRow.id),
            (ProgressRow.source_id, ProgressRow.id),
        ):
            names = select(on.label("on"), ItemRow.id, ItemRow.kind, ItemRow.schema_name, ItemRow.name, ItemRow.number)
            present = names.join(ItemRow, ItemRow.id == hanging).where(on.in_(some), ItemRow.dropped_at.is_(None))
            for row in session.execute(present):
                found[row.on].append(row)
    return {item_id: _in_order(rows) for item_id, rows in found.items()}


def _in_order(rows: Iterable[Any]) -> list[Bearer]:
    order = ("view", "table", *PARTS)
    ordered = sorted(rows, key=lambda row: (order.index(row.kind), row.number))
    return [Bearer(row.id, row.kind, (row.schema_name, row.name)) for row in ordered]
