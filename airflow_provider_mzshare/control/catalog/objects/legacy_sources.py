"""Old-style sources on the rows of new ones: their outputs, subsources and progress names.

All outputs are tables underneath, with the same ticks and collections. What makes them old-style is how they are named:

* a subsource is an item of kind ``subsource``, which a migration makes a ``table``: same id, name and collections;
* the one output of a source that has the rows itself is a hidden item of kind ``output``. A row in ``outputs`` says
  which, and as long as it is there the source's name means this output (``shown.known_as``); a migration takes that
  row away and gives the item the source's name;
* a progress name is an item of kind ``progress``; a row in ``progress_names`` says of which source.

The caller owns the transaction; no upstream is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import ItemRow, SourceRow
from airflow_provider_mzshare.control.catalog.database.object_models import (
    HIDDEN_SCHEMA,
    ItemKind,
    OutputRow,
    ProgressRow,
)
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, add_item, lock_namespace
from airflow_provider_mzshare.control.catalog.objects.lookup import (
    ProgressItem,
    SourceItem,
    TableItem,
    get_item,
    list_sources,
    list_tables,
    output_of,
)
from airflow_provider_mzshare.control.catalog.objects.table_rows import NewTable, add_tables
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.specs import SourceSpec, TableSpec
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.state import SourceState

__all__ = [
    "LegacyObject",
    "add_output",
    "add_progress",
    "add_subsource",
    "legacy_objects",
    "legacy_sources",
    "output_of",
    "progress_of",
    "set_spec",
    "subsources",
]

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


@dataclass(frozen=True)
class LegacyObject:
    """Something that a migration would change. ``name`` is written as in SQL."""

    id: ItemId
    kind: ItemKind
    name: str
    source_id: ItemId


# ── make ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_output(session: Session, state: SourceState, spec: TableSpec, arrival: Arrival) -> ItemId:
    """The one output of a source that has the rows itself, under a name that nobody can use.

    The caller has the locks of the namespace and of the source, whose ``state`` it has read.
    """
    table_id = add_item(session, "output", (HIDDEN_SCHEMA, state.source_id))
    add_tables(session, state, [NewTable(table_id, spec, arrival)])
    session.execute(insert(OutputRow).values(source_id=state.source_id, table_id=table_id))
    return table_id


def add_subsource(
    session: Session, state: SourceState, name: Name, spec: TableSpec, arrival: Arrival
) -> tuple[ItemId, BackfillId | None]:
    """The same for a subsource, under a name that must be free; with its backfill, where the plan has one."""
    table_id = add_item(session, "subsource", name)
    return table_id, add_tables(session, state, [NewTable(table_id, spec, arrival)])


def add_progress(session: Session, source_id: ItemId, name: Name) -> ItemId:
    """Under a name that must be free."""
    lock_namespace(session)
    item_id = add_item(session, "progress", name)
    session.execute(insert(ProgressRow).values(id=item_id, source_id=source_id))
    return item_id


def set_spec(session: Session, source_id: ItemId, spec: SourceSpec) -> None:
    """What its statement says; the caller has the lock of the source."""
    changed = update(SourceRow).where(SourceRow.id == source_id).values(spec=spec.model_dump_json())
    session.execute(changed, execution_options=_NO_SYNC)


# ── find ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def subsources(session: Session, source_id: ItemId) -> Sequence[TableItem]:
    """Those that are not dropped, oldest first."""
    return [table for table in list_tables(session, source_id) if table.kind == "subsource"]


def progress_of(session: Session, source_id: ItemId) -> ProgressItem | None:
    """The old-style name of a source's progress, if it has one that is not dropped."""
    query = select(ItemRow.id).join(ProgressRow, ProgressRow.id == ItemRow.id)
    item_id = session.scalar(query.where(ProgressRow.source_id == source_id, ItemRow.dropped_at.is_(None)))
    found = None if item_id is None else get_item(session, item_id)
    return found if isinstance(found, ProgressItem) else None


def legacy_sources(session: Session) -> Sequence[SourceItem]:
    return [source for source in list_sources(session) if source.spec.legacy is not None]


def legacy_objects(session: Session) -> Sequence[LegacyObject]:
    """All that is not migrated: each old-style source, followed by its subsources."""
    found: list[LegacyObject] = []
    for source in legacy_sources(session):
        found.append(LegacyObject(source.id, "source", source.display, source.id))
        found += [LegacyObject(s.id, "subsource", s.display, source.id) for s in subsources(session, source.id)]
    return found
