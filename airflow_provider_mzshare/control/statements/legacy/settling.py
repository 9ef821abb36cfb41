"""Keeps the stored statement of an old-style source up to date with its outputs and their present names.

It is called in each transaction that adds, drops or renames an output.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects import items, legacy_sources
from airflow_provider_mzshare.control.definition_errors import NotPossible, run_sql
from airflow_provider_mzshare.control.hints import command
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.legacy.outputs import NamedOutput, described
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import LegacySpec


def settle(session: Session, source_id: ItemId, context: Context, *, listed: bool = False) -> None:
    """Write the definition as it is now. Without subsources it becomes a source of the new kind, which only has tables.

    :param listed: subsources were added or dropped, so that each must be named from here on.
    """
    lock_source(session, source_id)
    source = items.get_source_item(session, source_id)
    if source.spec.legacy is None or source.status == "dropped":
        return
    now = current(session, source, source.spec.legacy, listed=listed)
    if now == source.spec.legacy:
        return
    legacy_sources.set_spec(session, source_id, source.spec.model_copy(update={"legacy": now}))
    if now is None:
        context.does("change source", str(QualifiedName(*source.name)), "no subsource is left: it has only tables")


def settle_all(session: Session, context: Context) -> None:
    """Update all old-style sources, after a change of many names."""
    for source in legacy_sources.legacy_sources(session):
        settle(session, source.id, context)


def settle_owners(session: Session, item_ids: Iterable[ItemId], context: Context) -> None:
    """Update the old-style sources that these renamed items are, or are part of."""
    for owner in dict.fromkeys(_owner(items.get_item(session, item_id)) for item_id in item_ids):
        if owner is not None:
            settle(session, owner, context)


def _owner(item: items.Item) -> ItemId | None:
    if isinstance(item, items.SourceItem):
        return item.id
    return item.source_id if item.kind in ("subsource", "progress") else None


def current(
    session: Session, source: items.SourceItem, stored: LegacySpec, *, listed: bool = False
) -> LegacySpec | None:
    """What the statement would say now; None when nothing old-style is left."""
    name, progress = QualifiedName(*source.name), legacy_sources.progress_of(session, source.id)
    if stored.shape == "single":
        output = legacy_sources.output_of(session, source.id)
        outputs = [output] if output is not None else []
    else:
        outputs = list(legacy_sources.subsources(session, source.id))
    if not outputs:
        return None
    named = [NamedOutput(QualifiedName(*table.name), table.spec) for table in outputs]
    shown = QualifiedName(*progress.name) if progress is not None else name
    return described(name, stored, named, shown, listed=listed)


def check_progress_may_go(session: Session, item: items.ProgressItem) -> None:
    """The progress of an old-style source is dropped with it. After a finalized migration it can be dropped alone."""
    source = items.get_source_item(session, item.source_id)
    if source.spec.legacy is not None:
        raise NotPossible(
            f"{item.display} is the progress of source {source.display} and is dropped with it",
            hint=run_sql(f"DROP SOURCE {source.display}"),
        )
    open_ = exists().where(MigrationRow.source_id == source.id, MigrationRow.state == "migrated")
    if session.scalar(select(open_)):
        raise NotPossible(
            f"{item.display} is kept until the migration of source {source.display} is finalized",
            hint=f"{command('migrate', source.display)} --finalize",
        )
