"""Prints our statements in their one canonical form; options without ``=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.postgres import PostgresGenerator

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.core.ids import is_item_id
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, TABLE_OPTIONS

_BEFORE_VALUE = {
    words: f"{option.preposition} "
    for words, option in {**TABLE_OPTIONS, **SOURCE_SETTINGS}.items()
    if option.preposition
}
_KINDS_TO_SHOW = ("source", "view")
"""Names that need quotes after SHOW CREATE, or they would be read as the kind. TABLE is reserved and always quoted."""


# ── parts of statements ───────────────────────────────────────────────────────────────────────────────────────────────


def _csv(generator: Generator, items: list[exp.Expr]) -> str:
    return ", ".join(generator.sql(item) for item in items)


def _list(generator: Generator, items: list[exp.Expr] | None) -> str:
    """The items in brackets after a blank; an empty text if there are none."""
    return f" ({_csv(generator, items)})" if items else ""


def _columns(generator: Generator, node: exp.Expr, clause: str) -> str:
    """The column list, with the key that is named in it."""
    columns = [generator.sql(column) for column in node.args.get(clause) or ()]
    if key := node.args.get("primary_key"):
        columns.append(f"PRIMARY KEY ({_csv(generator, key.expressions)}) NOT ENFORCED")
    return f" ({', '.join(columns)})" if columns else ""


def _with(generator: Generator, node: exp.Expr) -> str:
    settings = node.args.get("settings")
    return f" WITH ({_csv(generator, settings)})" if settings else ""


def _head(verb: str, generator: Generator, node: exp.Expr) -> str:
    exists = "IF NOT EXISTS " if node.args.get("exists") else ""
    return f"{verb} {exists}{generator.sql(node, 'this')}"


def _option(generator: Generator, node: nodes.Option) -> str:
    value = generator.sql(node, "expression")
    return f"{node.name} {_BEFORE_VALUE.get(node.name, '')}{value}" if value else node.name


def _aliased(generator: Generator, node: exp.Expr) -> str:
    alias = generator.sql(node, "alias")
    return f"{generator.sql(node, 'this')} AS {alias}" if alias else generator.sql(node, "this")


def _include(generator: Generator, node: nodes.Include) -> str:
    return f"{_aliased(generator, node)}{_list(generator, node.expressions)}"


def _inline(generator: Generator, node: nodes.Inline) -> str:
    alias = generator.sql(node, "alias")
    return f"(VALUE DECODING ERRORS INLINE AS {alias})" if alias else "(VALUE DECODING ERRORS INLINE)"


def _decoding(generator: Generator, node: exp.Expr) -> str:
    parts = ""
    if written_format := node.text("format"):
        key_format = node.text("key_format")
        parts += f" KEY FORMAT {key_format} VALUE" if key_format else ""
        parts += f" FORMAT {written_format}"
    if include := node.args.get("include"):
        parts += f" INCLUDE {_csv(generator, include)}"
    if envelope := node.text("envelope"):
        parts += f" ENVELOPE {envelope}"
    if inline := node.args.get("inline"):
        parts += f" {generator.sql(inline)}"
    return parts


# ── CREATE ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _create_source(generator: Generator, node: nodes.CreateSource) -> str:
    text = f"{_head('CREATE SOURCE', generator, node)}{_columns(generator, node, 'columns')}"
    text += f" FROM {node.text('kind')}"
    if connection := generator.sql(node, "connection"):
        text += f" CONNECTION {connection}"
    if variant := node.text("variant"):
        text += f" {variant}"
    text += _list(generator, node.expressions) + _decoding(generator, node)
    if outputs := node.args.get("outputs"):
        text += f" FOR {outputs.name}{_list(generator, outputs.expressions)}"
    if progress := generator.sql(node, "progress"):
        text += f" EXPOSE PROGRESS AS {progress}"
    return text + _with(generator, node)


def _create_table(generator: Generator, node: nodes.CreateTable) -> str:
    text = f"{_head('CREATE TABLE', generator, node)}{_columns(generator, node, 'expressions')}"
    text += f" FROM SOURCE {generator.sql(node, 'source')}"
    if reference := generator.sql(node, "reference"):
        text += f" (REFERENCE {reference})"
    return text + _decoding(generator, node) + _with(generator, node)


def _create_subsource(generator: Generator, node: nodes.CreateSubsource) -> str:
    text = f"{_head('CREATE SUBSOURCE', generator, node)}{_list(generator, node.expressions)}"
    return f"{text} OF SOURCE {generator.sql(node, 'source')}{_with(generator, node)}"


def _create_view(generator: Generator, node: nodes.CreateView) -> str:
    return f"{_head('CREATE VIEW', generator, node)} AS {generator.sql(node, 'expression')}"


# ── ALTER ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _alter_options(generator: Generator, node: nodes.AlterOptions) -> str:
    word = "SET" if node.args.get("settings") else "RESET"
    options = _csv(generator, node.args.get("settings") or node.args["reset"])
    return f"ALTER {node.text('kind')} {generator.sql(node, 'this')} {word} ({options})"


def _add_subsources(generator: Generator, node: nodes.AddSubsources) -> str:
    added = _csv(generator, node.expressions)
    return f"ALTER SOURCE {generator.sql(node, 'this')} ADD SUBSOURCE {added}{_with(generator, node)}"


def _drop_subsources(generator: Generator, node: nodes.DropSubsources) -> str:
    exists = "IF EXISTS " if node.args.get("exists") else ""
    names = _csv(generator, node.expressions)
    return f"ALTER SOURCE {generator.sql(node, 'this')} DROP SUBSOURCE {exists}{names}{_cascade(node)}"


def _refresh(generator: Generator, node: nodes.RefreshReferences) -> str:
    name = generator.sql(node, "this")
    if is_item_id(name) and not node.args.get("id"):
        name = f'"{name}"'  # without quotes it would be read as an id
    return f"ALTER SOURCE {name} REFRESH REFERENCES"


def _alter_table(generator: Generator, node: nodes.AlterTable) -> str:
    force = " FORCE" if node.args.get("force") else ""
    return f"ALTER TABLE {generator.sql(node, 'this')} {node.text('action')}{force}"


def _renamed(words: str) -> Callable[[Generator, exp.Expr], str]:
    def written(generator: Generator, node: exp.Expr) -> str:
        names = generator.sql(node, "this"), generator.sql(node, "expression")
        force = " FORCE" if node.args.get("force") else ""
        return f"ALTER {node.text('kind')} {names[0]} {words} {names[1]}{force}"

    return written


def _alter_system(generator: Generator, node: nodes.AlterSystem) -> str:
    name, value = generator.sql(node, "this"), generator.sql(node, "expression")
    return f"ALTER SYSTEM SET {name} = {value}" if value else f"ALTER SYSTEM RESET {name}"


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _comment(generator: Generator, node: nodes.CommentOn) -> str:
    name, column = generator.sql(node, "this"), generator.sql(node, "column")
    comment = generator.sql(node, "expression") or "NULL"
    return f"COMMENT ON {node.text('kind')} {f'{name}.{column}' if column else name} IS {comment}"


def _cascade(node: exp.Expr) -> str:
    return " CASCADE" if node.args.get("cascade") else ""


def _drop_item(generator: Generator, node: nodes.DropItem) -> str:
    exists = "IF EXISTS " if node.args.get("exists") else ""
    return f"DROP {node.text('kind')} {exists}{generator.sql(node, 'this')}{_cascade(node)}"


def _show_items(generator: Generator, node: nodes.ShowItems) -> str:
    schema = generator.sql(node, "schema")
    return f"SHOW {node.name} FROM {schema}" if schema else f"SHOW {node.name}"


def _show_create(generator: Generator, node: nodes.ShowCreate) -> str:
    kind, name = node.text("kind"), generator.sql(node, "this")
    first, dot, rest = name.partition(".")
    if not kind and first in _KINDS_TO_SHOW:
        name = f'"{first}"{dot}{rest}'
    return f"SHOW CREATE {kind} {name}" if kind else f"SHOW CREATE {name}"


def _write(generator: Generator, node: nodes.Write) -> str:
    words = {"INSERT": "INSERT INTO", "UPDATE": "UPDATE", "DELETE": "DELETE FROM"}
    return f"{words[node.text('verb')]} {generator.sql(node, 'this')}"


class MzShareGenerator(PostgresGenerator):
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **PostgresGenerator.TRANSFORMS,
        nodes.Option: _option,
        nodes.Include: _include,
        nodes.Inline: _inline,
        nodes.Subsource: _aliased,
        nodes.Path: lambda generator, node: ".".join(generator.sql(part) for part in node.expressions),
        nodes.CreateSource: _create_source,
        nodes.CreateTable: _create_table,
        nodes.CreateSubsource: _create_subsource,
        nodes.CreateView: _create_view,
        nodes.CreateSchema: lambda generator, node: _head("CREATE SCHEMA", generator, node),
        nodes.AlterOptions: _alter_options,
        nodes.AddSubsources: _add_subsources,
        nodes.DropSubsources: _drop_subsources,
        nodes.RefreshReferences: _refresh,
        nodes.AlterTable: _alter_table,
        nodes.Rename: _renamed("RENAME TO"),
        nodes.Swap: _renamed("SWAP WITH"),
        nodes.AlterSystem: _alter_system,
        nodes.CommentOn: _comment,
        nodes.DropItem: _drop_item,
        nodes.ShowItems: _show_items,
        nodes.ShowCreate: _show_create,
        nodes.Write: _write,
        nodes.Explain: lambda generator, node: f"EXPLAIN {generator.sql(node, 'this')}",
    }
