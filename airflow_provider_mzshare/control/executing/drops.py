"""DROP, inside the caller's transaction: refuses what is still used, or takes all of it along in the right order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.answers import Result, done, full_name, name_pair
from airflow_provider_mzshare.control.catalog import drops, items, schemas
from airflow_provider_mzshare.control.catalog.comments import forget_comments
from airflow_provider_mzshare.control.catalog.dependents import Leaving, leaving_with
from airflow_provider_mzshare.control.catalog.schemas import Bearer
from airflow_provider_mzshare.control.definition_errors import NotPossible, SchemaNotEmpty, StillUsed
from airflow_provider_mzshare.control.executing.context import Context
from airflow_provider_mzshare.control.executing.finding import bearer_of, existing, existing_schema, told
from airflow_provider_mzshare.control.executing.reserving import check_schema
from airflow_provider_mzshare.control.legacy.settling import check_progress_may_go, settle
from airflow_provider_mzshare.control.sql import items as sql
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.control.statement_checks import Checked


def drop_item(session: Session, checked: Checked[sql.DropItem], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    command = f"DROP {statement.kind.upper()}"
    if statement.if_exists and items.find(session, name_pair(statement.name)) is None:
        return done(command, statement.name, None, context.dry_run, "it does not exist")
    item = existing(session, statement.kind, statement.name)
    if isinstance(item, items.ProgressItem):
        check_progress_may_go(session, item)
    leaving = leaving_with(session, [bearer_of(item)])
    dependents = [one.item for one in leaving if one.why == "dependent"]
    if dependents and not statement.cascade:
        raise StillUsed(statement.kind, item.display, told(dependents))
    drop_all(session, leaving, context)
    return done(command, statement.name, item.id, context.dry_run, with_others(leaving))


def drop_schema(session: Session, checked: Checked[sql.DropSchema], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    check_schema(statement.name)
    shown = quote(statement.name)
    if statement.if_exists and schemas.find_schema(session, statement.name) is None:
        return done("DROP SCHEMA", shown, None, context.dry_run, "it does not exist")
    schema = existing_schema(session, statement.name)
    if statement.name == DEFAULT_SCHEMA:
        raise NotPossible(
            f"schema {shown!r} cannot be dropped: names without a schema are in it", hint="DROP its items"
        )
    held = schemas.items_in(session, statement.name)
    if held and not statement.cascade:
        raise SchemaNotEmpty(shown, told(held))
    leaving = leaving_with(session, held)
    drop_all(session, leaving, context)
    schemas.drop_schema(session, statement.name)
    forget_comments(session, schema.id)
    context.does("drop schema", shown)
    gone = told([one.item for one in leaving])
    return done("DROP SCHEMA", shown, schema.id, context.dry_run, f"with {', '.join(gone)}" if gone else "")


def drop_all(session: Session, leaving: Sequence[Leaving], context: Context) -> None:
    for one in leaving:
        drops.drop(session, one.item)
        if one.item.kind != "output":
            context.does(f"drop {one.item.kind}", full_name(one.item.name), one.item.id)
    subsources = [one.item.id for one in leaving if one.item.kind == "subsource"]
    for source_id in dict.fromkeys(items.get_table_item(session, item_id).source_id for item_id in subsources):
        settle(session, source_id, context, listed=True)


def with_others(leaving: Sequence[Leaving]) -> str:
    """``with table a, views b, c``: what goes beside what was asked for."""
    by_kind: dict[str, list[Bearer]] = {}
    for one in leaving:
        if one.why != "asked" and one.item.kind not in ("output", "progress"):
            by_kind.setdefault(one.item.kind, []).append(one.item)
    told_kinds = [
        f"{kind}{'s' if len(gone) > 1 else ''} {', '.join(full_name(item.name) for item in gone)}"
        for kind, gone in by_kind.items()
    ]
    return f"with {', '.join(told_kinds)}" if told_kinds else ""
