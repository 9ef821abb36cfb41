"""SHOW: what there is, as rows, and definitions as the statements that would make them again. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import AbsentSpec, kind_of
from airflow_provider_mzshare.control.catalog.objects import items, schemas
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.printing import print_create_table, print_statement
from airflow_provider_mzshare.control.statements.answers import Result, full_name
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.finding import existing, existing_schema
from airflow_provider_mzshare.control.statements.handlers.views import definition_of, list_views
from airflow_provider_mzshare.control.statements.legacy.showing import (
    part_rows,
    progress_statement,
    source_statement,
    subsource_statement,
)
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import SourceSettings, SourceSpec

SOURCE_COLUMNS = ("id", "name", "kind", "connection", "topic", "status", "tables")
TABLE_COLUMNS = ("id", "name", "source", "format", "status", "rows", "errors")
PART_COLUMNS = ("id", "name", "kind", "source", "status", "rows", "errors")
_OF_PART = ("id", "name", "kind", "status")
VIEW_COLUMNS = ("id", "name")
SCHEMA_COLUMNS = ("id", "name")
CREATE_COLUMNS = ("name", "create_sql")

Rows = list[dict[str, Any]]


def show(session: Session, checked: Checked[sql.Show], context: Context) -> Result:
    statement = checked.statement
    if statement.schema is not None:
        existing_schema(session, statement.schema)
    columns, rows = SHOWN[statement.what]
    return Result(f"SHOW {statement.what.upper()}", columns=columns, rows=rows(session, statement.schema))


def _sources(session: Session, schema: str | None) -> Rows:
    """The parts of old-style sources are sources too."""
    parts = [{**dict.fromkeys(SOURCE_COLUMNS), **{k: part[k] for k in _OF_PART}} for part in part_rows(session, schema)]
    return sorted([*_top_level(session, schema), *parts], key=lambda row: int(row["id"][1:]))


def _top_level(session: Session, schema: str | None) -> Rows:
    return [
        {
            "id": s.id,
            "name": full_name(s.name),
            "kind": s.spec.kind,
            **_upstream(s.spec),
            "status": s.status,
            "tables": len([t for t in items.list_tables(session, s.id) if t.kind == "table"]),
        }
        for s in items.list_sources(session)
        if schema in (None, s.name[0])
    ]


def _upstream(spec: SourceSpec) -> dict[str, str | None]:
    """Empty if the kind of the source is not installed here, so that the source can still be listed."""
    if isinstance(spec, AbsentSpec):
        return {"connection": None, "topic": None}
    kind = kind_of(spec)
    return {"connection": kind.connection_name(spec), "topic": kind.topic(spec)}


def _tables(session: Session, schema: str | None) -> Rows:
    return filled(session, schema, ("table",))


def filled(session: Session, schema: str | None, kinds: Sequence[str]) -> Rows:
    """Tables of these kinds, with their sources."""
    sources = {s.id: full_name(s.name) for s in items.list_sources(session)}
    return [
        {
            "id": t.id,
            "name": full_name(t.name),
            "source": sources[t.source_id],
            "format": t.spec.format,
            "status": t.status,
            "rows": t.rows,
            "errors": t.errors,
        }
        for t in items.list_tables(session)
        if t.kind in kinds and schema in (None, t.name[0])
    ]


def _views(session: Session, schema: str | None) -> Rows:
    return [{"id": v.id, "name": full_name(v.name)} for v in list_views(session) if schema in (None, v.name[0])]


def _schemas(session: Session, _schema: str | None) -> Rows:
    return [{"id": s.id, "name": s.display} for s in schemas.list_schemas(session)]


SHOWN: dict[str, tuple[tuple[str, ...], Callable[[Session, str | None], Rows]]] = {
    "sources": (SOURCE_COLUMNS, _sources),
    "tables": (TABLE_COLUMNS, _tables),
    "views": (VIEW_COLUMNS, _views),
    "schemas": (SCHEMA_COLUMNS, _schemas),
    "subsources": (PART_COLUMNS, part_rows),
}


# ── SHOW CREATE ───────────────────────────────────────────────────────────────────────────────────────────────────────


def show_create(session: Session, checked: Checked[sql.ShowCreate], context: Context) -> Result:
    statement = checked.statement
    item = existing(session, statement.kind, statement.name)
    row = {"name": str(statement.name), "create_sql": f"{create_sql(session, item)};"}
    return Result("SHOW CREATE", str(statement.name), item.id, columns=CREATE_COLUMNS, rows=[row])


def create_sql(session: Session, item: items.Item, sources: Mapping[ItemId, items.SourceItem] | None = None) -> str:
    """The statement that would make it again, in its one canonical form, in the names that things have now.

    :param sources: those of the tables, if they were looked up already.
    """
    name = QualifiedName(*item.name)
    if isinstance(item, items.SourceItem):
        usual = SourceSettings().model_dump()
        changed = {k: v for k, v in item.settings.model_dump().items() if v != usual[k]}
        return print_statement(source_statement(session, item, changed))
    if isinstance(item, items.ViewItem):
        return print_statement(definition_of(session, item))
    if isinstance(item, items.TableItem) and item.kind == "table":
        source = (sources or {}).get(item.source_id) or items.get_source_item(session, item.source_id)
        return print_create_table(name, QualifiedName(*source.name), item.spec)
    if isinstance(item, items.ProgressItem):
        return print_statement(progress_statement(session, item))
    return print_statement(subsource_statement(session, item))
