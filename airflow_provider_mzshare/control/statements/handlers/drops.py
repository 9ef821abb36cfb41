"""DROP, inside the caller's transaction. It refuses what is still used; CASCADE drops all of it, in the right order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import absence, kind_of
from airflow_provider_mzshare.control.catalog.objects import drops, items, schemas
from airflow_provider_mzshare.control.catalog.objects.comments import forget_comments
from airflow_provider_mzshare.control.catalog.objects.dependents import Leaving, direct, leaving_with
from airflow_provider_mzshare.control.catalog.objects.lookup_many import find_all, get_items
from airflow_provider_mzshare.control.catalog.objects.schemas import Bearer
from airflow_provider_mzshare.control.definition_errors import NotPossible, SchemaNotEmpty, StillUsed
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.control.statements.answers import Result, done, full_name, name_pair
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import bearer_of, existing, existing_schema, expected, told
from airflow_provider_mzshare.control.statements.legacy.settling import check_progress_may_go, settle
from airflow_provider_mzshare.control.statements.reserved_names import check_schema
from airflow_provider_mzshare.control.statements.upstream_checks import Checked


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
    left = kind_left(item)
    note = ", ".join(filter(None, (with_others(leaving), left)))
    return done(command, statement.name, item.id, context.dry_run, note)


def kind_left(item: items.Item) -> str:
    """What a source leaves upstream, for now: as long as its app runs, it may be in use."""
    if not isinstance(item, items.SourceItem) or absence(item.spec) is not None:
        return ""
    leaves = kind_of(item.spec).leaves
    return f"{leaves} goes once its app has ended, with mzshare reconcile" if leaves else ""


def drop_tables(
    session: Session, run: Sequence[Checked[sql.DropItem]], contexts: Sequence[Context]
) -> Sequence[Result]:
    """Several DROP TABLE without CASCADE, with different names. Results are as one by one; the drops are one write."""
    items.lock_namespace(session)
    found = find_all(session, [name_pair(checked.statement.name) for checked in run])
    hanging = direct(session, [item.id for item in found.values()])
    leaving: list[Bearer] = []
    results: list[Result] = []
    for checked, context in zip(run, contexts, strict=True):
        statement, item = checked.statement, found.get(name_pair(checked.statement.name))
        if statement.if_exists and item is None:
            results.append(done("DROP TABLE", statement.name, None, context.dry_run, "it does not exist"))
            continue
        item = expected(statement.kind, statement.name, item)
        if hanging[item.id]:
            dependents = [one.item for one in leaving_with(session, [bearer_of(item)]) if one.why == "dependent"]
            raise StillUsed(statement.kind, item.display, told(dependents))
        leaving.append(bearer_of(item))
        context.does("drop table", full_name(item.name), item.id)
        results.append(done("DROP TABLE", statement.name, item.id, context.dry_run))
    drops.drop_items(session, leaving)
    return results


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
            f"schema {shown!r} cannot be dropped: names without a schema belong to it", hint="DROP its items"
        )
    held = schemas.items_in(session, statement.name)
    if held and not statement.cascade:
        raise SchemaNotEmpty(shown, told(held))
    leaving = leaving_with(session, held)
    drop_all(session, leaving, context)
    schemas.drop_schema(session, statement.name)
    forget_comments(session, [schema.id])
    context.does("drop schema", shown)
    gone = told([one.item for one in leaving])
    return done("DROP SCHEMA", shown, schema.id, context.dry_run, f"with {', '.join(gone)}" if gone else "")


def drop_all(session: Session, leaving: Sequence[Leaving], context: Context) -> None:
    drops.drop_items(session, [one.item for one in leaving])
    for one in leaving:
        if one.item.kind != "output":
            context.does(f"drop {one.item.kind}", full_name(one.item.name), one.item.id)
    subsources = get_items(session, [one.item.id for one in leaving if one.item.kind == "subsource"])
    gone = [subsources[one.item.id] for one in leaving if one.item.id in subsources]
    for source_id in dict.fromkeys(item.source_id for item in gone if isinstance(item, items.TableItem)):
        settle(session, source_id, context, listed=True)


def with_others(leaving: Sequence[Leaving]) -> str:
    """``with table a, views b, c``: what CASCADE drops besides the object of the statement."""
    by_kind: dict[str, list[Bearer]] = {}
    for one in leaving:
        if one.why != "asked" and one.item.kind not in ("output", "progress"):
            by_kind.setdefault(one.item.kind, []).append(one.item)
    told_kinds = [
        f"{kind}{'s' if len(gone) > 1 else ''} {', '.join(full_name(item.name) for item in gone)}"
        for kind, gone in by_kind.items()
    ]
    return f"with {', '.join(told_kinds)}" if told_kinds else ""
