"""Statements about tables as nodes."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.printing_parts import (
    add_decoding,
    column_definitions,
    options,
    path,
    table_name,
)
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS


def create_table(statement: values.CreateTable) -> exp.Expr:
    node = nodes.CreateTable(
        this=table_name(statement.name),
        exists=statement.if_not_exists,
        expressions=column_definitions(statement.columns),
        source=table_name(statement.source),
        reference=path(statement.reference) if statement.reference else None,
        settings=options(TABLE_OPTIONS, statement.options),
    )
    add_decoding(node, values.Output.of(statement))
    return node


def alter_table(statement: values.AlterTable) -> exp.Expr:
    action = statement.action.upper()
    return nodes.AlterTable(this=table_name(statement.name), action=action, force=statement.force)


def alter_table_set(statement: values.AlterTableSet) -> exp.Expr:
    words = {known.field: name for name, known in TABLE_OPTIONS.items()}
    return nodes.AlterOptions(
        this=table_name(statement.name),
        kind="TABLE",
        settings=options(TABLE_OPTIONS, statement.settings),
        reset=[exp.Var(this=words[field]) for field in statement.reset],
    )
