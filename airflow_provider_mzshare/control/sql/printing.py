"""From statement to its canonical SQL, through syntax tree and dialect; what it prints parses back to the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from airflow_provider_mzshare.control.sql import items, object_printing, source_printing, table_printing
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import SOURCE_SETTINGS
from airflow_provider_mzshare.types.specs import KafkaSourceSpec, LoadGeneratorSpec, TableSpec


def print_statement(statement: items.Statement) -> str:
    """One line, without a semicolon; names with their schema, defaults left out."""
    return _node(statement).sql(dialect=MzShare)


def print_create_source(
    name: QualifiedName,
    spec: KafkaSourceSpec | LoadGeneratorSpec,
    settings: Mapping[str, int | float],
    output: items.Output | None = None,
) -> str:
    """``settings`` are fields of SourceSettings; those that are there are printed."""
    connection = spec.connection if isinstance(spec, KafkaSourceSpec) else None
    return print_statement(items.CreateSource(name, False, connection, spec, settings, output))


def print_create_table(name: QualifiedName, source: QualifiedName, spec: TableSpec) -> str:
    return print_statement(
        items.CreateTable(
            name=name,
            if_not_exists=False,
            source=source,
            reference=reference_parts(spec),
            format=spec.format,
            columns=spec.columns,
            include=spec.include,
            envelope=spec.envelope,
            on_decode_error=spec.on_decode_error,
            retain_history_seconds=spec.retain_history_seconds,
            snapshot=spec.snapshot,
            text_columns=spec.text_columns,
            exclude_columns=spec.exclude_columns,
        )
    )


def reference_parts(spec: TableSpec) -> items.Reference:
    return (spec.reference,) if spec.namespace is None else (spec.namespace, spec.reference)


def print_settings(settings: Mapping[str, int | float | None]) -> str:
    """As they are written between the brackets of WITH and SET; one that is not set has no such form."""
    unset = [f"no {name}" for name, known in SOURCE_SETTINGS.items() if settings.get(known.field, 0) is None]
    given = {field: value for field, value in settings.items() if value is not None}
    return ", ".join([option.sql(dialect=MzShare) for option in source_printing.settings_options(given)] + unset)


def _node(statement: items.Statement) -> exp.Expr:
    if isinstance(statement, items.Explain):
        return object_printing.explain(_node(statement.statement))
    return _NODES[type(statement)](statement)


_NODES: dict[type[items.Statement], Callable[[Any], exp.Expr]] = {
    items.CreateSource: source_printing.create_source,
    items.CreateTable: table_printing.create_table,
    items.CreateSubsource: source_printing.create_subsource,
    items.CreateView: object_printing.create_view,
    items.CreateSchema: object_printing.create_schema,
    items.AlterSourceSet: source_printing.alter_source,
    items.AddSubsources: source_printing.add_subsources,
    items.DropSubsources: source_printing.drop_subsources,
    items.RefreshReferences: source_printing.refresh_references,
    items.AlterTable: table_printing.alter_table,
    items.AlterTableSet: table_printing.alter_table_set,
    items.Rename: object_printing.rename,
    items.Swap: object_printing.swap,
    items.AlterSystem: object_printing.alter_system,
    items.CommentOn: object_printing.comment_on,
    items.DropItem: object_printing.drop_item,
    items.DropSchema: object_printing.drop_schema,
    items.Show: object_printing.show,
    items.ShowCreate: object_printing.show_create,
    items.Query: lambda statement: exp.Var(this=statement.text),
    items.Write: object_printing.write,
}
