"""CREATE SOURCE and ALTER SOURCE … SET, inside the caller's transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.references import store_references
from airflow_provider_mzshare.control.definition_errors import ChangedMeanwhile
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.printing import print_settings, print_statement
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, SourceSettings, SourceSpec
from airflow_provider_mzshare.errors import SpecConflict, StatementError


def create_source(session: Session, checked: Checked[sql.CreateSource], context: Context) -> Result:
    """CREATE SOURCE of the new syntax: one object. Its tables are created by their own statements."""
    statement = checked.statement
    source_id, existed = add_source(session, statement, checked)
    shown = source_id if existed or not context.dry_run else None  # an id that was given in a dry run does not exist
    return done("CREATE SOURCE", statement.name, shown, context.dry_run, "it exists" if existed else "")


def add_source(session: Session, statement: sql.CreateSource, checked: Checked[Any]) -> tuple[ItemId, bool]:
    """The source with what it offers, and whether it was there before with the same definition."""
    items.lock_namespace(session)
    check_settings(statement, statement.spec)
    present = items.find(session, name_pair(statement.name))
    existed = present is not None
    if not existed:
        check_name(statement.name)
        if checked.start is None:
            raise ChangedMeanwhile(f"source {statement.name}", "dropped")
    elif isinstance(present, items.SourceItem) and present.spec.legacy and not statement.spec.legacy:
        raise SpecConflict(str(statement.name), "it was made with old syntax, and has outputs of its own")
    source_id = items.create_source(
        session,
        name=name_pair(statement.name),
        spec=statement.spec,
        settings=SourceSettings.model_validate(dict(statement.settings)),
        incarnation=checked.incarnation,
        start=checked.start or Position(),
        if_not_exists=statement.if_not_exists,
    )
    if existed:
        check_same_settings(statement, items.get_source_item(session, source_id))
    else:
        store_references(session, source_id, checked.references or ())
    return source_id, existed


def check_settings(statement: sql.CreateSource | sql.AlterSourceSet, spec: SourceSpec) -> None:
    """Raise StatementError where a setting is given that only sources with a journal can have."""
    if kind_of(spec).is_journal or kind_of(spec).is_recorded:
        return
    for words, option in SOURCE_SETTINGS.items():
        if option.of_journals and statement.settings.get(option.field) is not None:
            raise StatementError(
                f"{words} is only for sources that are read from a journal; {statement.name} is a "
                f"{kind_of(spec).title} source"
            )


def check_same_settings(statement: sql.CreateSource, present: items.SourceItem) -> None:
    """Raise SpecConflict unless the existing source has the settings that the statement gives."""
    is_now = present.settings.model_dump()
    asked = {field: value for field, value in statement.settings.items() if is_now[field] != value}
    if asked:
        found = print_settings({field: is_now[field] for field in asked})
        remedy = print_statement(sql.AlterSourceSet(statement.name, asked))
        raise SpecConflict(str(statement.name), f"it has {found}, not {print_settings(asked)}", remedy=remedy)


def alter_source(session: Session, checked: Checked[sql.AlterSourceSet], context: Context) -> Result:
    statement = checked.statement
    # Locked before it is read: two users who change different settings must not undo each other's change.
    items.lock_namespace(session)
    source = items.find_source(session, name_pair(statement.name))
    lock_source(session, source.id)
    source = items.get_source_item(session, source.id)
    kept = {k: v for k, v in source.settings.model_dump().items() if k not in statement.reset}
    settings = SourceSettings.model_validate({**kept, **statement.settings})
    check_settings(statement, source.spec)
    items.set_settings(session, source.id, settings)
    return done("ALTER SOURCE", statement.name, source.id, context.dry_run)
