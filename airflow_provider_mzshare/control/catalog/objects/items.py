"""Define, change and drop sources and tables. The caller owns the transaction; no upstream is asked here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import definitions_change, touch
from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state, lock_source
from airflow_provider_mzshare.control.catalog.objects.differences import differences
from airflow_provider_mzshare.control.catalog.objects.item_names import (
    Name,
    add_item,
    display_name,
    lock_namespace,
    next_item_id,
    retire_item,
)
from airflow_provider_mzshare.control.catalog.objects.journal_rows import fence_writers
from airflow_provider_mzshare.control.catalog.objects.lookup import (
    Item,
    ProgressItem,
    SourceItem,
    TableItem,
    ViewItem,
    as_source,
    as_table,
    find,
    find_source,
    find_table,
    get_item,
    get_live_item,
    get_source_item,
    get_table_item,
    list_sources,
    list_tables,
)
from airflow_provider_mzshare.control.catalog.objects.table_rows import NewTable, add_tables, remove_tables
from airflow_provider_mzshare.control.catalog.objects.table_specs import change_spec
from airflow_provider_mzshare.core.ids import ItemId, journal_of
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings, SourceSpec, Spec, TableSpec
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.errors import HasDependents, NameTaken, SpecConflict, UnknownItem

__all__ = [
    "Item",
    "Name",
    "ProgressItem",
    "SourceItem",
    "TableItem",
    "ViewItem",
    "as_source",
    "as_table",
    "check_same_table",
    "clear_stall",
    "create_source",
    "create_table",
    "drop_source",
    "drop_table",
    "drop_tables",
    "find",
    "find_source",
    "find_table",
    "get_item",
    "get_live_item",
    "get_source_item",
    "get_table_item",
    "list_sources",
    "list_tables",
    "lock_namespace",
    "next_item_id",
    "set_desired",
    "set_settings",
    "set_table_spec",
]

DEFAULT_SETTINGS = SourceSettings()
Desired = Literal["running", "stopped"]

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


# ── create ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def create_source(
    session: Session,
    *,
    name: Name,
    spec: SourceSpec,
    incarnation: str,
    start: Position,
    settings: SourceSettings = DEFAULT_SETTINGS,
    if_not_exists: bool = False,
) -> ItemId:
    """A source with an empty tick log. With ``if_not_exists``, one of the same spec is simply given back."""
    lock_namespace(session)
    present = _present(session, name, "source", if_not_exists)
    if isinstance(present, SourceItem):
        _check_same(name, present.spec, spec)
        return present.id
    source_id = add_item(session, "source", name)
    session.execute(
        insert(SourceRow).values(
            id=source_id,
            spec=spec.model_dump_json(),
            settings=settings.model_dump_json(),
            incarnation=incarnation,
            start=start,
            status="active",
            desired="running",
            lease_epoch=0,
            lease_beat=0,
        )
    )
    return source_id


def create_table(
    session: Session,
    *,
    name: Name,
    source_id: ItemId,
    spec: TableSpec,
    snapshot: bool = True,
    if_not_exists: bool = False,
) -> ItemId:
    """A table with its two collections. It joins at the next tick, or a backfill brings it there first.

    Without ``snapshot`` it begins where the log ends now. All that are created in one transaction share a backfill.
    """
    lock_namespace(session)
    present = _present(session, name, "table", if_not_exists)
    if isinstance(present, TableItem):
        check_same_table(session, present, source_id, spec)
        return present.id
    state = load_state(session, lock_source(session, source_id))
    if state.status == "dropped":
        raise UnknownItem("source", source_id)
    table_id = add_item(session, "table", name)
    arrival = arrival_plans.create(state, display_name(name), snapshot=snapshot)
    add_tables(session, state, [NewTable(table_id, spec, arrival)])
    return table_id


def check_same_table(session: Session, present: TableItem, source_id: ItemId, spec: TableSpec) -> None:
    """Raise SpecConflict unless the existing table is the one that was asked for."""
    if present.source_id != source_id:
        source = get_source_item(session, present.source_id).display
        raise SpecConflict(present.display, f"it comes from source {source!r}")
    _check_same(present.name, present.spec, spec)


def _present(session: Session, name: Name, kind: str, if_not_exists: bool) -> Item | None:
    """The item that already has this name, if IF NOT EXISTS allows it; NameTaken if not."""
    item = find(session, name)
    if item is not None and (item.kind != kind or not if_not_exists):
        raise NameTaken(display_name(name), item.kind, kind)
    return item


def _check_same(name: Name, present: Spec, wanted: Spec) -> None:
    if found := differences(present, wanted):
        raise SpecConflict(display_name(name), "; ".join(found))


# ── change ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def set_settings(session: Session, source_id: ItemId, settings: SourceSettings) -> None:
    """Picked up by the running app at its next tick."""
    definitions_change(session)
    _change_source(session, source_id, settings=settings.model_dump_json())


def set_table_spec(session: Session, table_id: ItemId, spec: TableSpec) -> None:
    """Valid from the next tick that is minted; the caller has the lock of the source."""
    source = get_source(session, get_table_item(session, table_id).source_id)
    change_spec(session, load_state(session, source), table_id, spec)
    definitions_change(session)


def set_desired(session: Session, source_id: ItemId, desired: Desired) -> None:
    """Whether the reconciler should keep an app running for the source."""
    _change_source(session, source_id, desired=desired)


def clear_stall(session: Session, source_id: ItemId, *, expect: str) -> bool:
    """Make a source active again if it is stalled for the reason ``expect``; else return False."""
    source = lock_source(session, source_id)
    if source.status != "stalled" or source.reason != expect:
        return False
    _change_source(session, source_id, status="active", reason=None, message=None)
    return True


def _change_source(session: Session, source_id: ItemId, **values: Any) -> None:
    if lock_source(session, source_id).status == "dropped":
        raise UnknownItem("source", source_id)
    session.execute(update(SourceRow).where(SourceRow.id == source_id).values(**values), execution_options=_NO_SYNC)
    touch(session, source_id)


# ── drop ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_table(session: Session, table_id: ItemId) -> None:
    """The table leaves at once, a pending tick included; its name is free."""
    drop_tables(session, [table_id])


def drop_tables(session: Session, table_ids: Sequence[ItemId]) -> None:
    lock_namespace(session)
    remove_tables(session, table_ids)


def drop_source(session: Session, source_id: ItemId, *, cascade: bool = False) -> Sequence[TableItem]:
    """Its app is fenced at its next step, and so are the writers of its journal. Its tables are dropped too, and
    returned, or the drop is refused."""
    lock_namespace(session)
    if (source := get_source(session, source_id)).status == "dropped":
        raise UnknownItem("source", source_id)
    lock_source(session, source_id)
    tables = list_tables(session, source_id)
    if tables and not cascade:
        raise HasDependents(get_source_item(session, source_id).display, [table.display for table in tables])
    drop_tables(session, [table.id for table in tables])
    session.execute(
        update(SourceRow).where(SourceRow.id == source_id).values(status="dropped", desired="stopped"),
        execution_options=_NO_SYNC,
    )
    if (journal := journal_of(source.incarnation)) is not None:
        fence_writers(session, journal)
    retire_item(session, source_id)
    return tables
