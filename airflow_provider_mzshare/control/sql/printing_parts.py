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
from airflow_provider_mzshare.envelopes.registry import sql_word


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


def includes(included: Sequence[Include]) -> list[nodes.Include]:
    return [
        nodes.Include(this=i.what.upper(), alias=identifier(i.name) if i.name != i.what else None) for i in included
    ]


def names_option(name: str, columns: Iterable[exp.Expr]) -> list[nodes.Option]:
    """``TEXT COLUMNS (a, b)``, if there are any."""
    listed = list(columns)
    return [option(name, exp.Tuple(expressions=listed))] if listed else []


def envelope_word(name: str, *, always: bool = False) -> str | None:
    """The word after ENVELOPE; None for the default, which is not printed, unless ``always``."""
    return sql_word(name) if always or name != DEFAULT_ENVELOPE else None


def column_names(text: Iterable[str], excluded: Iterable[str]) -> list[nodes.Option]:
    given = {"text_columns": tuple(text), "exclude_columns": tuple(excluded)}
    return options(COLUMN_OPTIONS, {field: names for field, names in given.items() if names})


def column_paths(text: Iterable[str], excluded: Iterable[str]) -> list[nodes.Option]:
    """The columns are SQL already, so they are not quoted again."""
    return [
        *names_option("TEXT COLUMNS", (exp.Var(this=column) for column in text)),
        *names_option("EXCLUDE COLUMNS", (exp.Var(this=column) for column in excluded)),
    ]
