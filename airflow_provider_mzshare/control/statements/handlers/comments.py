"""COMMENT ON, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.comments import set_comment
from airflow_provider_mzshare.control.catalog.objects.lookup import output_of
from airflow_provider_mzshare.control.definition_errors import UnknownColumn
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote
from airflow_provider_mzshare.control.statements.answers import Result, done
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing, existing_schema
from airflow_provider_mzshare.control.statements.handlers.views import view_columns
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.storage.table_columns import user_columns

PROGRESS_COLUMNS = ("partition", "offset", "tick", "mz_timestamp")
"""Columns of a source that has no rows of its own: those of its progress."""


def comment_on(session: Session, checked: Checked[sql.CommentOn], context: Context) -> Result:
    statement = checked.statement
    items.lock_namespace(session)
    command = f"COMMENT ON {statement.kind.upper()}"
    if not isinstance(statement.name, QualifiedName):
        schema = existing_schema(session, statement.name)
        set_comment(session, schema.id, statement.comment)
        return done(command, schema.display, schema.id, context.dry_run)
    item = existing(session, None if statement.kind == "column" else statement.kind, statement.name)
    shown = str(statement.name)
    if statement.column is not None:
        _check_column(session, item, statement.column)
        shown = f"{shown}.{quote(statement.column)}"
    set_comment(session, item.id, statement.comment, statement.column or "")
    return done(command, shown, item.id, context.dry_run)


def _check_column(session: Session, item: items.Item, column: str) -> None:
    columns = _columns(session, item)
    if column not in columns:
        raise UnknownColumn(f"{item.kind} {item.display}", column, columns)


def _columns(session: Session, item: items.Item) -> Sequence[str]:
    if isinstance(item, items.SourceItem):
        item = output_of(session, item.id) or item
    if isinstance(item, items.TableItem):
        return [column.name for column in user_columns(item.spec)]
    if isinstance(item, items.ViewItem):
        return list(view_columns(session, item))
    return PROGRESS_COLUMNS
