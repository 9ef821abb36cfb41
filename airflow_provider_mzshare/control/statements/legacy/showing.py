"""Old-style definitions as statements, and the parts of old-style sources as rows. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import ProgressRow
from airflow_provider_mzshare.control.catalog.objects import items, legacy_sources
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import full_name
from airflow_provider_mzshare.control.statements.legacy.outputs import clauses_of, reference_parts
from airflow_provider_mzshare.control.statements.purification import stored_reference
from airflow_provider_mzshare.control.views.readable import PROGRESS_COLUMNS
from airflow_provider_mzshare.core.specs import ColumnSpec

Rows = list[dict[str, Any]]


def source_statement(
    session: Session, source: items.SourceItem, settings: Mapping[str, int | float]
) -> sql.CreateSource:
    """Of either syntax: with the clauses of its output where it has the rows itself."""
    output = legacy_sources.output_of(session, source.id) if source.spec.legacy is not None else None
    spec = source.spec
    return sql.CreateSource(
        name=QualifiedName(*source.name),
        if_not_exists=False,
        connection=kind_of(spec).connection_name(spec),
        spec=spec,
        settings=settings,
        output=None if output is None else clauses_of(output.spec),
    )


def subsource_statement(session: Session, item: items.TableItem) -> sql.CreateSubsource:
    source, spec = items.get_source_item(session, item.source_id), item.spec
    return sql.CreateSubsource(
        name=QualifiedName(*item.name),
        columns=spec.columns,
        source=QualifiedName(*source.name),
        reference=reference_parts(stored_reference(spec)),
        text_columns=spec.text_columns,
        exclude_columns=spec.exclude_columns,
    )


def progress_statement(session: Session, item: items.ProgressItem) -> sql.CreateSubsource:
    """Of the old-style name of a source's progress."""
    source = items.get_source_item(session, item.source_id)
    columns = tuple(ColumnSpec(name=column.name, type=column.type) for column in PROGRESS_COLUMNS)
    return sql.CreateSubsource(QualifiedName(*item.name), columns, QualifiedName(*source.name), ())


def progress_items(session: Session) -> list[items.ProgressItem]:
    """All that are not dropped, oldest first."""
    query = select(ItemRow, ProgressRow.source_id).join(ProgressRow, ProgressRow.id == ItemRow.id)
    rows = session.execute(query.where(ItemRow.dropped_at.is_(None)).order_by(ItemRow.number))
    return [items.ProgressItem(i.id, (i.schema_name, i.name), source_id, i.created_at) for i, source_id in rows]


def part_rows(session: Session, schema: str | None) -> Rows:
    """Subsources and progress names, oldest first, with their source."""
    sources = {source.id: source for source in items.list_sources(session)}
    parts: list[items.TableItem | items.ProgressItem] = [
        table for table in items.list_tables(session) if table.kind == "subsource"
    ]
    parts += progress_items(session)
    return [
        {
            "id": part.id,
            "name": full_name(part.name),
            "kind": part.kind,
            "source": full_name(sources[part.source_id].name),
            "status": part.status if isinstance(part, items.TableItem) else sources[part.source_id].status,
            "rows": part.rows if isinstance(part, items.TableItem) else None,
            "errors": part.errors if isinstance(part, items.TableItem) else None,
        }
        for part in sorted(parts, key=lambda part: int(part.id[1:]))
        if schema in (None, part.name[0])
    ]
