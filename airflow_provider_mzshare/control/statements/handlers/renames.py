"""RENAME, inside the caller's transaction: names change, ids and all that hangs on them do not."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items, renames
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import Result, done, name_pair
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing
from airflow_provider_mzshare.control.statements.handlers import schemas
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
