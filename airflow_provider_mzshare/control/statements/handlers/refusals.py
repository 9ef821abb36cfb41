"""INSERT, UPDATE and DELETE: always refused, naming what feeds the table."""

from __future__ import annotations

from typing import NoReturn

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import output_of
from airflow_provider_mzshare.control.definition_errors import ReadOnly, run_sql
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing
from airflow_provider_mzshare.control.statements.upstream_checks import Checked

_PREPOSITIONS = {"INSERT": "into", "UPDATE": "of", "DELETE": "from"}


def write(session: Session, checked: Checked[sql.Write], _context: Context) -> NoReturn:
    statement = checked.statement
    item = existing(session, None, statement.name)
    hint = run_sql(f"SHOW CREATE {item.display}")
    if isinstance(item, items.SourceItem) and output_of(session, item.id) is None:
        why = "a source is read-only: its relation is its progress"
    elif isinstance(item, (items.SourceItem, items.ProgressItem)):
        why = "a source is read-only: its upstream feeds it"
    elif isinstance(item, items.ViewItem):
        why = "a view is read-only: it has no rows of its own"
    else:
        why = f"it is read-only: source {items.get_source_item(session, item.source_id).display} feeds it"
    verb = f"{statement.verb} {_PREPOSITIONS[statement.verb]}"
    raise ReadOnly(f"{verb} {item.kind} {item.display} is not possible: {why}", hint=hint)
