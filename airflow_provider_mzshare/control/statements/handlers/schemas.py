"""CREATE SCHEMA, and RENAME of schemas, inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items, schemas
from airflow_provider_mzshare.control.definition_errors import NotPossible, SchemaTaken
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, quote
from airflow_provider_mzshare.control.statements.answers import Result, done
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing_schema
from airflow_provider_mzshare.control.statements.legacy.settling import settle_all
from airflow_provider_mzshare.control.statements.reserved_names import check_schema
from airflow_provider_mzshare.control.statements.upstream_checks import Checked


def create_schema(session: Session, checked: Checked[sql.CreateSchema], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    check_schema(statement.name)
    present = schemas.find_schema(session, statement.name)
    shown = quote(statement.name)
    if present is not None and not statement.if_not_exists:
        raise SchemaTaken(shown)
    if present is not None:
        return done("CREATE SCHEMA", shown, present.id, context.dry_run, "it exists")
    schema_id = schemas.create_schema(session, statement.name)
    return done("CREATE SCHEMA", shown, None if context.dry_run else schema_id, context.dry_run)


def rename_schema(session: Session, name: str, new_name: str, context: Context) -> Result:
    schema = existing_schema(session, name)
    _refuse_default(name, "renamed")
    check_schema(new_name)
    if schemas.find_schema(session, new_name) is not None:
        raise SchemaTaken(quote(new_name), hint="another name, or ALTER SCHEMA … SWAP WITH")
    schemas.rename_schema(session, name, new_name)
    settle_all(session, context)
    context.does("rename schema", schema.display, f"to {quote(new_name)}")
    return done("ALTER SCHEMA", schema.display, schema.id, context.dry_run, f"now {quote(new_name)}")


def _refuse_default(name: str, what: str) -> None:
    if name == DEFAULT_SCHEMA:
        raise NotPossible(
            f"schema {name!r} cannot be {what}: names without a schema belong to it", hint="ALTER SCHEMA … SWAP WITH"
        )
