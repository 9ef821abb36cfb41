"""RENAME and SWAP, inside the caller's transaction: names change, ids and all that hangs on them do not."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items, renames
from airflow_provider_mzshare.control.catalog.queries.standings import standings
from airflow_provider_mzshare.control.definition_errors import NotPossible
from airflow_provider_mzshare.control.lifecycle.swap_rule import Taking
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import Result, done, full_name, name_pair
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing
from airflow_provider_mzshare.control.statements.handlers import schemas
from airflow_provider_mzshare.control.statements.handlers.swaps import take_names
from airflow_provider_mzshare.control.statements.legacy.settling import settle_owners
from airflow_provider_mzshare.control.statements.reserved_names import check_name
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.errors import NameTaken


def rename(session: Session, checked: Checked[sql.Rename], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    if not isinstance(statement.name, QualifiedName):
        return schemas.rename_schema(session, statement.name, statement.new_name, context)
    item = existing(session, statement.kind, statement.name)
    new = QualifiedName(statement.name.schema, statement.new_name)
    check_name(new)
    taken = items.find(session, name_pair(new))
    if taken is not None:
        raise NameTaken(taken.display, taken.kind, f"{item.kind} that is renamed")
    renames.rename_item(session, item.id, name_pair(new))
    settle_owners(session, [item.id], context)
    context.does(f"rename {item.kind}", str(statement.name), f"to {new}")
    return done(f"ALTER {statement.kind.upper()}", statement.name, item.id, context.dry_run, f"now {new}")


def swap(session: Session, checked: Checked[sql.Swap], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    if not isinstance(statement.name, QualifiedName) or not isinstance(statement.other, QualifiedName):
        return schemas.swap_schemas(session, statement, context)
    one = existing(session, statement.kind, statement.name)
    other = existing(session, statement.kind, statement.other)
    if one.id == other.id:
        raise NotPossible(f"table {one.display} cannot change places with itself", hint="the name of another one")
    stand = standings(session, (one.id, other.id))
    takings = [Taking(stand[one.id], stand[other.id]), Taking(stand[other.id], stand[one.id])]
    note = take_names(takings, statement, context)
    renames.swap_items(session, (one.id, one.name), (other.id, other.name))
    context.does("rename table", full_name(one.name), f"to {full_name(other.name)}")
    context.does("rename table", full_name(other.name), f"to {full_name(one.name)}")
    told = f"swapped with {full_name(other.name)} {other.id}{note}"
    return done("ALTER TABLE", statement.name, one.id, context.dry_run, told)
