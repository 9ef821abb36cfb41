"""Prints our statements in their one canonical form; options without ``=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.postgres import PostgresGenerator

from airflow_provider_mzshare.control.sql import nodes

_BEFORE_VALUE = {"RETAIN HISTORY": "FOR "}


def _csv(generator: Generator, items: list[exp.Expr]) -> str:
    return ", ".join(generator.sql(item) for item in items)


def _with(generator: Generator, node: exp.Expr) -> str:
    settings = node.args.get("settings")
    return f" WITH ({_csv(generator, settings)})" if settings else ""


def _if_not_exists(node: exp.Expr) -> str:
    return "IF NOT EXISTS " if node.args.get("exists") else ""


def _option(generator: Generator, node: nodes.Option) -> str:
    return f"{node.name} {_BEFORE_VALUE.get(node.name, '')}{generator.sql(node, 'expression')}"


def _include(generator: Generator, node: nodes.Include) -> str:
    alias = generator.sql(node, "alias")
    return f"{node.name} AS {alias}" if alias else node.name


def _create_source(generator: Generator, node: nodes.CreateSource) -> str:
    name, connection = generator.sql(node, "this"), generator.sql(node, "connection")
    return (
        f"CREATE SOURCE {_if_not_exists(node)}{name} FROM {node.text('kind')} CONNECTION {connection} "
        f"({_csv(generator, node.expressions)}){_with(generator, node)}"
    )


def _create_table(generator: Generator, node: nodes.CreateTable) -> str:
    parts = [f"CREATE TABLE {_if_not_exists(node)}{generator.sql(node, 'this')}"]
    if node.expressions:
        parts.append(f"({_csv(generator, node.expressions)})")
    parts.append(f"FROM SOURCE {generator.sql(node, 'source')}")
    if reference := generator.sql(node, "reference"):
        parts.append(f"(REFERENCE {reference})")
    parts.append(f"FORMAT {node.text('format')}")
    if include := node.args.get("include"):
        parts.append(f"INCLUDE {_csv(generator, include)}")
    if envelope := node.text("envelope"):
        parts.append(f"ENVELOPE {envelope}")
    return " ".join(parts) + _with(generator, node)


def _alter_source(generator: Generator, node: nodes.AlterSource) -> str:
    word = "SET" if node.args.get("settings") else "RESET"
    options = _csv(generator, node.args.get("settings") or node.args["reset"])
    return f"ALTER SOURCE {generator.sql(node, 'this')} {word} ({options})"


def _drop_item(generator: Generator, node: nodes.DropItem) -> str:
    exists = "IF EXISTS " if node.args.get("exists") else ""
    cascade = " CASCADE" if node.args.get("cascade") else ""
    return f"DROP {node.text('kind')} {exists}{generator.sql(node, 'this')}{cascade}"


def _show_create(generator: Generator, node: nodes.ShowCreate) -> str:
    kind, name = node.text("kind"), generator.sql(node, "this")
    if not kind and name.split(".")[0] == "source":
        name = f'"source"{name.removeprefix("source")}'  # bare, it would read as the kind
    return f"SHOW CREATE {kind} {name}" if kind else f"SHOW CREATE {name}"


class MzShareGenerator(PostgresGenerator):
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **PostgresGenerator.TRANSFORMS,
        nodes.Option: _option,
        nodes.Include: _include,
        nodes.CreateSource: _create_source,
        nodes.CreateTable: _create_table,
        nodes.AlterSource: _alter_source,
        nodes.AlterTable: lambda generator, node: f"ALTER TABLE {generator.sql(node, 'this')} {node.text('action')}",
        nodes.DropItem: _drop_item,
        nodes.ShowItems: lambda _, node: f"SHOW {node.name}",
        nodes.ShowCreate: _show_create,
    }
