"""Helpers of all printing: names, literals, options and columns as nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.column_types import to_sql
from airflow_provider_mzshare.control.sql.grammar import identifier
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import COLUMN_OPTIONS, write_option
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import ColumnSpec, Include
from airflow_provider_mzshare.envelopes.registry import UNWRITTEN
from airflow_provider_mzshare.envelopes.registry import sql_word as envelope_word
from airflow_provider_mzshare.formats.registry import sql_word as format_word


def table_name(name: QualifiedName) -> exp.Table:
    return exp.Table(this=identifier(name.name), db=identifier(name.schema))


def item_name(name: QualifiedName | str) -> exp.Expr:
    """A schema's name is one identifier."""
    return table_name(name) if isinstance(name, QualifiedName) else identifier(name)


def path(parts: values.Reference) -> nodes.Path:
    return nodes.Path(expressions=[identifier(part) for part in parts])


def option(name: str, value: exp.Expr | None) -> nodes.Option:
    return nodes.Option(this=name, expression=value)


def options(known: Mapping[str, Option], given: Mapping[str, Any]) -> list[nodes.Option]:
    """:param given: values by the option's field."""
    return [option(one.words, write_option(one, given[one.field])) for one in known.values() if one.field in given]


def column_definitions(columns: Sequence[ColumnSpec]) -> list[exp.Expr]:
    return [exp.ColumnDef(this=identifier(c.name), kind=exp.Var(this=to_sql(c.type))) for c in columns]


def add_decoding(node: exp.Expr, output: values.Output, *, marked: bool = False) -> None:
    """The clauses FORMAT, INCLUDE and ENVELOPE, and the key of the column list.

    :param marked: print ENVELOPE also where it is the default and there is no FORMAT.
    """
    word = format_word(output.format)
    node.set("key_format", format_word(output.key_format) if output.key_format else None)
    node.set("format", word)
    node.set("include", [*_key_columns(output.key_columns), *map(_include, output.include)])
    is_usual = output.envelope == DEFAULT_ENVELOPE and not (marked and word is None)
    if not is_usual and output.envelope not in UNWRITTEN:
        node.set("envelope", envelope_word(output.envelope))
    if output.primary_key:
        node.set("primary_key", exp.Tuple(expressions=[identifier(name) for name in output.primary_key]))
    if output.inline_errors is not None:
        node.set("inline", nodes.Inline(alias=_alias(output.inline_errors, values.INLINE_COLUMN)))


def _key_columns(columns: Sequence[ColumnSpec]) -> list[nodes.Include]:
    return [nodes.Include(this="KEY", expressions=column_definitions(columns))] if columns else []


def _include(included: Include) -> nodes.Include:
    return nodes.Include(this=included.what.upper(), alias=_alias(included.name, included.what))


def _alias(name: str, usual: str) -> exp.Identifier | None:
    return identifier(name) if name != usual else None


def names_option(name: str, columns: Iterable[exp.Expr]) -> list[nodes.Option]:
    """``TEXT COLUMNS (a, b)``, if there are any."""
    listed = list(columns)
    return [option(name, exp.Tuple(expressions=listed))] if listed else []


def column_names(text: Iterable[str], excluded: Iterable[str]) -> list[nodes.Option]:
    given = {"text_columns": tuple(text), "exclude_columns": tuple(excluded)}
    return options(COLUMN_OPTIONS, {field: names for field, names in given.items() if names})


def column_paths(text: Iterable[str], excluded: Iterable[str]) -> list[nodes.Option]:
    """The columns are SQL already, so they are not quoted again."""
    return [
        *names_option("TEXT COLUMNS", (exp.Var(this=column) for column in text)),
        *names_option("EXCLUDE COLUMNS", (exp.Var(this=column) for column in excluded)),
    ]
