"""What statements answer: their results as values, and the SHOW statements. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import items
from airflow_provider_mzshare.control.sql import statements as sql
from airflow_provider_mzshare.control.table_plans import TablePlan
from airflow_provider_mzshare.errors import UnknownItem
from airflow_provider_mzshare.types.specs import SourceSettings

SOURCE_COLUMNS = ("id", "name", "kind", "connection", "topic", "status", "tables")
TABLE_COLUMNS = ("id", "name", "source", "format", "status", "rows", "errors")
CREATE_COLUMNS = ("name", "create_sql")


@dataclass(frozen=True)
class Result:
    """What one statement did (``message``) or answered (``columns`` and ``rows``)."""

    command: str
    name: str | None = None
    id: str | None = None
    message: str = ""
    columns: tuple[str, ...] = ()
    rows: list[dict[str, Any]] | None = None
    plan: TablePlan | None = None
    """For a table that is made or healed: what happens to it, and to the others of its transaction."""


def done(command: str, name: sql.QualifiedName, item_id: str | None, dry_run: bool, note: str = "") -> Result:
    """The result of a statement that changed something, or would have."""
    remarks = ", ".join(filter(None, (note, "dry run" if dry_run else "")))
    message = " ".join(filter(None, (command, str(name), item_id, f"({remarks})" if remarks else "")))
    return Result(command, str(name), item_id, message)


def show_sources(session: Session) -> Result:
    rows = [
        {
            "id": s.id,
            "name": str(sql.QualifiedName(*s.name)),
            "kind": s.spec.kind,
            "connection": s.spec.connection,
            "topic": s.spec.topic,
            "status": s.status,
            "tables": len(items.list_tables(session, s.id)),
        }
        for s in items.list_sources(session)
    ]
    return Result("SHOW SOURCES", columns=SOURCE_COLUMNS, rows=rows)


def show_tables(session: Session) -> Result:
    sources = {s.id: str(sql.QualifiedName(*s.name)) for s in items.list_sources(session)}
    rows = [
        {
            "id": t.id,
            "name": str(sql.QualifiedName(*t.name)),
            "source": sources[t.source_id],
            "format": t.spec.format,
            "status": t.status,
            "rows": t.rows,
            "errors": t.errors,
        }
        for t in items.list_tables(session)
    ]
    return Result("SHOW TABLES", columns=TABLE_COLUMNS, rows=rows)


def show_create(session: Session, statement: sql.ShowCreate) -> Result:
    item = items.find(session, name_pair(statement.name))
    if item is None or statement.kind not in (None, kind_of(item)):
        raise UnknownItem(statement.kind or "table", str(statement.name))
    if isinstance(item, items.SourceItem):
        usual = SourceSettings().model_dump()
        changed = {k: v for k, v in item.settings.model_dump().items() if v != usual[k]}
        text = sql.print_create_source(statement.name, item.spec, changed)
    else:
        source = items.get_source_item(session, item.source_id)
        text = sql.print_create_table(statement.name, sql.QualifiedName(*source.name), item.spec)
    row = {"name": str(statement.name), "create_sql": f"{text};"}
    return Result("SHOW CREATE", str(statement.name), item.id, columns=CREATE_COLUMNS, rows=[row])


def name_pair(name: sql.QualifiedName) -> items.Name:
    return (name.schema, name.name)


def kind_of(item: items.SourceItem | items.TableItem) -> sql.Kind:
    return "source" if isinstance(item, items.SourceItem) else "table"
