"""From statement to its canonical SQL, through syntax tree and dialect; what it prints parses back to the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.sql import (
    object_printing,
    printing_parts,
    source_printing,
    table_printing,
    values,
)
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, TABLE_OPTIONS, SourceSpec, TableSpec


def print_statement(statement: values.Statement) -> str:
    """One line, without a semicolon; names with their schema, defaults left out."""
    return _node(statement).sql(dialect=MzShare)


def print_create_source(
    name: QualifiedName,
    spec: SourceSpec,
    settings: Mapping[str, int | float],
    output: values.Output | None = None,
) -> str:
    """:param settings: by the fields of SourceSettings; only these are printed."""
    connection = kind_of(spec).connection_name(spec)
    return print_statement(values.CreateSource(name, False, connection, spec, settings, output))


def print_create_table(name: QualifiedName, source: QualifiedName, spec: TableSpec) -> str:
    return print_statement(
        values.CreateTable(
            name=name,
            if_not_exists=False,
            source=source,
            reference=reference_parts(spec),
            **values.Output.of(spec).by_name(),
            options={option.field: getattr(spec, option.field) for option in TABLE_OPTIONS.values()},
        )
    )


def reference_parts(spec: TableSpec) -> values.Reference:
    return (spec.reference,) if spec.namespace is None else (spec.namespace, spec.reference)


def print_settings(settings: Mapping[str, int | float | None]) -> str:
    """Settings as WITH and SET write them. SQL has no form for one that is not set: it is printed as ``no NAME``."""
    unset = [f"no {name}" for name, known in SOURCE_SETTINGS.items() if settings.get(known.field, 0) is None]
    given = {field: value for field, value in settings.items() if value is not None}
    return ", ".join([option.sql(dialect=MzShare) for option in printing_parts.options(SOURCE_SETTINGS, given)] + unset)


def _node(statement: values.Statement) -> exp.Expr:
    if isinstance(statement, values.Explain):
        return object_printing.explain(_node(statement.statement))
    return _NODES[type(statement)](statement)


_NODES: dict[type[values.Statement], Callable[[Any], exp.Expr]] = {
    values.CreateSource: source_printing.create_source,
    values.CreateTable: table_printing.create_table,
    values.CreateSubsource: source_printing.create_subsource,
    values.CreateView: object_printing.create_view,
    values.CreateSchema: object_printing.create_schema,
    values.AlterSourceSet: source_printing.alter_source,
    values.AddSubsources: source_printing.add_subsources,
    values.DropSubsources: source_printing.drop_subsources,
    values.RefreshReferences: source_printing.refresh_references,
    values.AlterTable: table_printing.alter_table,
    values.AlterTableSet: table_printing.alter_table_set,
    values.Rename: object_printing.rename,
    values.Swap: object_printing.swap,
    values.AlterSystem: object_printing.alter_system,
    values.CommentOn: object_printing.comment_on,
    values.DropItem: object_printing.drop_item,
    values.DropSchema: object_printing.drop_schema,
    values.Show: object_printing.show,
    values.ShowCreate: object_printing.show_create,
    values.Query: lambda statement: exp.Var(this=statement.text),
    values.Write: object_printing.write,
}
