"""Statements that are alike for all kinds of objects, as nodes."""

from __future__ import annotations

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.grammar import identifier
from airflow_provider_mzshare.control.sql.printing_parts import item_name, table_name


def create_view(statement: values.CreateView) -> exp.Expr:
    # The query is SQL already, in its canonical print.
    query = exp.Var(this=statement.query)
    return nodes.CreateView(this=table_name(statement.name), exists=statement.if_not_exists, expression=query)


def create_schema(statement: values.CreateSchema) -> exp.Expr:
    return nodes.CreateSchema(this=identifier(statement.name), exists=statement.if_not_exists)


def rename(statement: values.Rename) -> exp.Expr:
    new_name = identifier(statement.new_name)
    return nodes.Rename(this=item_name(statement.name), kind=statement.kind.upper(), expression=new_name)


def swap(statement: values.Swap) -> exp.Expr:
    other = item_name(statement.other)
    return nodes.Swap(
        this=item_name(statement.name), kind=statement.kind.upper(), expression=other, force=statement.force
    )


def alter_system(statement: values.AlterSystem) -> exp.Expr:
    value: exp.Expr | None = None
    if isinstance(statement.value, bool):
        value = exp.Var(this="true" if statement.value else "false")
    elif statement.value is not None:
        value = exp.Literal.string(statement.value)
    return nodes.AlterSystem(this=identifier(statement.name), expression=value)


def comment_on(statement: values.CommentOn) -> exp.Expr:
    return nodes.CommentOn(
        this=item_name(statement.name),
        kind=statement.kind.upper(),
        column=identifier(statement.column) if statement.column is not None else None,
        expression=exp.Literal.string(statement.comment) if statement.comment is not None else None,
    )


def drop_item(statement: values.DropItem) -> exp.Expr:
    return _drop(table_name(statement.name), statement.kind.upper(), statement.if_exists, statement.cascade)


def drop_schema(statement: values.DropSchema) -> exp.Expr:
    return _drop(identifier(statement.name), "SCHEMA", statement.if_exists, statement.cascade)


def _drop(name: exp.Expr, kind: str, if_exists: bool, cascade: bool) -> exp.Expr:
    return nodes.DropItem(this=name, kind=kind, exists=if_exists, cascade=cascade)


def show(statement: values.Show) -> exp.Expr:
    schema = identifier(statement.schema) if statement.schema is not None else None
    return nodes.ShowItems(this=statement.what.upper(), schema=schema)


def show_create(statement: values.ShowCreate) -> exp.Expr:
    return nodes.ShowCreate(this=table_name(statement.name), kind=statement.kind.upper() if statement.kind else None)


def write(statement: values.Write) -> exp.Expr:
    return nodes.Write(this=table_name(statement.name), verb=statement.verb)


def explain(statement: exp.Expr) -> exp.Expr:
    return nodes.Explain(this=statement)
