"""Definitions of a source read from the catalog's rows and written back to them, and the rows of migrations.

Only definitions: no tick, membership, lease or collection is touched. The caller owns the transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Update, delete, exists, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import (
    HIDDEN_SCHEMA,
    CommentRow,
    DependencyRow,
    MigrationRow,
    OutputRow,
    ViewRow,
)
from airflow_provider_mzshare.control.catalog.objects import comments, legacy_sources, lookup, renames
from airflow_provider_mzshare.control.catalog.objects.definitions import (
    Comment,
    Definitions,
    Item,
    Progress,
    Source,
    Table,
    View,
)
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, ensure_schema, retire_item
from airflow_provider_mzshare.control.catalog.objects.schemas import NOBODYS_NAME
from airflow_provider_mzshare.control.catalog.objects.table_specs import restate_spec
from airflow_provider_mzshare.core.ids import ItemId

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


# ── read ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def load_definitions(session: Session, source_id: ItemId) -> Definitions:
    """The source with its tables and its progress name, and the views that read any of these."""
    source = lookup.get_source_item(session, source_id)
    output = lookup.output_of(session, source_id)
    progress = legacy_sources.progress_of(session, source_id)
    tables = tuple(_table(session, table) for table in lookup.list_tables(session, source_id))
    ours = [source_id, *(table.id for table in tables), *((progress.id,) if progress else ())]
    views = tuple(_views(session, ours))
    known = {*ours, *(view.id for view in views)}
    return Definitions(
        source=Source(id=source.id, name=source.name, spec=source.spec, settings=source.settings),
        tables=tables,
        output=output.id if output else None,
        progress=Progress(id=progress.id, name=progress.name) if progress else None,
        views=views,
        comments=tuple(_comments(session, ours)),
        others=_names(session, {one for view in views for one in view.reads} - known),
    )


def _table(session: Session, table: lookup.TableItem) -> Table:
    name = (HIDDEN_SCHEMA, str(table.source_id)) if table.kind == "output" else table.name
    return Table(id=table.id, kind=table.kind, name=name, spec=table.spec)


def _views(session: Session, read: Collection[str]) -> Iterable[View]:
    reading = select(DependencyRow.object_id).where(DependencyRow.referenced_id.in_(read))
    query = (
        select(ItemRow, ViewRow.query)
        .join(ViewRow, ViewRow.id == ItemRow.id)
        .where(ItemRow.id.in_(reading), ItemRow.dropped_at.is_(None))
        .order_by(ItemRow.number)
        .execution_options(populate_existing=True)
    )
    for item, text in session.execute(query).all():
        reads = select(DependencyRow.referenced_id).where(DependencyRow.object_id == item.id)
        found = sorted(session.scalars(reads), key=lambda one: int(one[1:]))
        yield View(id=item.id, name=(item.schema_name, item.name), query=text, reads=tuple(found))


def _comments(session: Session, ids: Collection[str]) -> Iterable[Comment]:
    query = select(CommentRow).where(CommentRow.object_id.in_(ids), CommentRow.column_name != "")
    order = query.order_by(CommentRow.object_id, CommentRow.column_name)
    for row in session.scalars(order.execution_options(populate_existing=True)):
        yield Comment(object_id=row.object_id, column=row.column_name, comment=row.comment)


def _names(session: Session, ids: Collection[str]) -> dict[str, Name]:
    query = select(ItemRow.id, ItemRow.schema_name, ItemRow.name).where(ItemRow.id.in_(ids))
    return {row.id: (row.schema_name, row.name) for row in session.execute(query)}


def is_taken(session: Session, name: Name) -> bool:
    """Whether something bears this name now."""
    schema, plain = name
    bearer = select(ItemRow.id).where(
        ItemRow.schema_name == schema, ItemRow.name == plain, ItemRow.dropped_at.is_(None)
    )
    return bool(session.scalar(select(exists(bearer))))


# ── write ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_definitions(session: Session, before: Definitions, after: Definitions) -> None:
    """What differs. The caller holds the locks of the namespace and of the source, and has just read ``before``."""
    _write_items(session, before, after)
    if after.source.spec != before.source.spec:
        legacy_sources.set_spec(session, ItemId(after.source.id), after.source.spec)
    _write_output(session, before, after)
    for table in after.tables:
        if table.spec != _same(before.tables, table).spec:
            restate_spec(session, ItemId(table.id), table.spec)
    for view in after.views:
        if view != _same(before.views, view):
            _write_view(session, view)
    _write_comments(session, before.comments, after.comments)


def _same(items: Iterable[Any], wanted: Item) -> Any:
    return next(item for item in items if item.id == wanted.id)


def _write_items(session: Session, before: Definitions, after: Definitions) -> None:
    kept = {item.id: item for item in after.items()}
    for item in before.items():
        if item.id not in kept:
            retire_item(session, ItemId(item.id))
    moved = [i for i in before.items() if i.id in kept and kept[i.id].name != i.name]
    if len(moved) > 1:
        # Items may swap names. The unique index of names is checked row by row, so all get a temporary name first.
        for item in moved:
            renames.rename_item(session, ItemId(item.id), (item.name[0], f"{NOBODYS_NAME}{item.id}"))
    for item in moved:
        ensure_schema(session, kept[item.id].name[0])
        renames.rename_item(session, ItemId(item.id), kept[item.id].name)
    for item in before.items():
        if item.id in kept and kept[item.id].kind != item.kind:
            change(session, _item(item).values(kind=kept[item.id].kind), 1, f"item {item.id}")


def _item(item: Item) -> Update:
    return update(ItemRow).where(ItemRow.id == item.id, ItemRow.kind == item.kind, ItemRow.dropped_at.is_(None))


def _write_output(session: Session, before: Definitions, after: Definitions) -> None:
    if before.output == after.output:
        return
    source_id = after.source.id
    if before.output is not None:
        session.execute(delete(OutputRow).where(OutputRow.source_id == source_id), execution_options=_NO_SYNC)
    if after.output is not None:
        session.execute(insert(OutputRow).values(source_id=source_id, table_id=after.output))


def _write_view(session: Session, view: View) -> None:
    change(session, update(ViewRow).where(ViewRow.id == view.id).values(query=view.query), 1, f"view {view.id}")
    session.execute(delete(DependencyRow).where(DependencyRow.object_id == view.id), execution_options=_NO_SYNC)
    rows = [{"object_id": view.id, "referenced_id": one} for one in view.reads]
    session.execute(insert(DependencyRow), rows)


def _write_comments(session: Session, before: Collection[Comment], after: Collection[Comment]) -> None:
    for gone in before:
        if gone not in after:
            comments.set_comment(session, gone.object_id, None, gone.column)
    for new in after:
        if new not in before:
            comments.set_comment(session, new.object_id, new.comment, new.column)


# ── migrations ────────────────────────────────────────────────────────────────────────────────────────────────────────


def last_migration(session: Session, source_id: ItemId) -> MigrationRow | None:
    """The newest of a source; its state says where the source stands."""
    query = select(MigrationRow).where(MigrationRow.source_id == source_id).order_by(MigrationRow.number.desc())
    return session.scalar(query.limit(1).execution_options(populate_existing=True))


def note_migration(
    session: Session, source_id: ItemId, before: Definitions, left: Definitions, report: dict[str, Any]
) -> None:
    """``before`` is enough to go back, ``left`` to see what was changed since."""
    kept = json.dumps({"before": before.model_dump(mode="json"), "left": left.model_dump(mode="json")})
    told = json.dumps(report, ensure_ascii=False)
    session.execute(
        insert(MigrationRow).values(
            source_id=source_id, state="migrated", before=kept, report=told, created_at=wall_ms()
        )
    )


def end_migration(session: Session, number: int, state: str) -> None:
    ended = update(MigrationRow).where(MigrationRow.number == number, MigrationRow.state == "migrated")
    change(session, ended.values(state=state, ended_at=wall_ms()), 1, f"migration {number}")


def kept_definitions(row: MigrationRow) -> tuple[Definitions, Definitions]:
    """What a migration found, and what it left."""
    kept = json.loads(row.before)
    return Definitions.model_validate(kept["before"]), Definitions.model_validate(kept["left"])


def stored_report(row: MigrationRow) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(row.report)
    return report
