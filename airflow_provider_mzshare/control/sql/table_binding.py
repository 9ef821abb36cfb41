"""Binding of statements about tables: columns, how they are decoded, and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.binding_parts import Binding, parts, qualified_name
from airflow_provider_mzshare.control.sql.checks import Clause, check_output, check_table
from airflow_provider_mzshare.control.sql.column_types import from_sql
from airflow_provider_mzshare.control.sql.options import read_option
from airflow_provider_mzshare.core.options import OptionValue
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import TABLE_OPTIONS, ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.formats.registry import NATIVE


def _name(item: exp.Expr, usual: str) -> str:
    alias = item.args.get("alias")
    return alias.name if alias else usual.lower()


def column_specs(columns: Sequence[exp.Expr]) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name=c.name, type=from_sql(c.args["kind"].name)) for c in columns)


def place_of(node: exp.Expr, columns: Sequence[exp.Expr], clause: Clause) -> exp.Expr:
    """Where a clause stands in the text."""
    found: exp.Expr = node
    if clause.name in ("columns", "key_columns"):
        column = (columns if clause.name == "columns" else _key_columns(node))[clause.index or 0]
        found = column.args["kind"] if clause.part == "type" else column.this
    elif clause.name == "include":
        item = _whole(node)[clause.index or 0]
        found = (clause.part and item.args.get("alias")) or item
    elif clause.name == "inline_errors":
        item = node.args["inline"]
        found = (clause.part and item.args.get("alias")) or item
    elif clause.name == "primary_key":
        found = node.args["primary_key"] if clause.index is None else _primary_key(node)[clause.index]
    elif clause.name in ("key_format", "envelope"):
        found = node.args[clause.name]
    return found


def _whole(node: exp.Expr) -> list[nodes.Include]:
    """What is included as one column each."""
    return [item for item in node.args.get("include") or () if not item.expressions]


def _key_columns(node: exp.Expr) -> list[exp.Expr]:
    return [column for item in node.args.get("include") or () for column in item.expressions]


def _primary_key(node: exp.Expr) -> list[exp.Expr]:
    key = node.args.get("primary_key")
    return list(key.expressions) if key else []


class TableBinding(Binding):
    def _create_table(self, node: nodes.CreateTable) -> values.CreateTable:
        reference = node.args.get("reference")
        output = self._clauses(node, node.expressions)
        table = values.CreateTable(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            source=qualified_name(node.args["source"]),
            reference=parts(reference) if reference else None,
            **output.by_name(),
            options=self._table_options(node),
        )
        self._fits(lambda clause: self._option_place(node, clause), lambda: check_table(table))
        return table

    def _option_place(self, node: exp.Expr, clause: Clause) -> exp.Expr:
        given = next(
            (one for one in self._options(node).values() if TABLE_OPTIONS[one.name].field == clause.name), None
        )
        if given is None:
            return place_of(node, node.expressions, clause)
        value: exp.Expr = given.expression
        return value if clause.index is None else value.expressions[clause.index]

    # ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _output(self, node: exp.Expr, columns: Sequence[exp.Expr]) -> values.Output:
        """The clauses of an old-style source with one output, checked."""
        output = self._clauses(node, columns)
        self._fits(lambda clause: place_of(node, columns, clause), lambda: check_output(output))
        return output

    def _clauses(self, node: exp.Expr, columns: Sequence[exp.Expr]) -> values.Output:
        """The clauses as they are written. Whether they fit together is checked later, on the whole statement."""
        word, inline = node.text("envelope"), node.args.get("inline")
        for item in (node.args.get("include") or ())[1:]:
            if item.expressions:
                self.refuse(item, "the key's columns come first in INCLUDE, and once")
        return values.Output(
            format=node.text("format").lower() or NATIVE,
            columns=column_specs(columns),
            include=tuple(Include(what=cast("Any", i.name.lower()), name=_name(i, i.name)) for i in _whole(node)),
            envelope=envelope_named(word.lower()).name if word else DEFAULT_ENVELOPE,
            key_format=node.text("key_format").lower() or None,
            key_columns=column_specs(_key_columns(node)),
            inline_errors=_name(inline, values.INLINE_COLUMN) if inline else None,
            primary_key=tuple(name.name for name in _primary_key(node)),
        )

    # ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _table_options(self, node: exp.Expr) -> dict[str, OptionValue]:
        fields: dict[str, OptionValue] = {}
        for words, given in self._options(node).items():
            option, literal = TABLE_OPTIONS[words], given.expression
            fields[option.field] = self._checked(literal, lambda: read_option(option, literal, TableSpec))  # noqa: B023
        return fields

    def _alter_table(self, node: nodes.AlterTable) -> values.AlterTable:
        action, force = cast("Any", node.text("action").lower()), bool(node.args.get("force"))
        return values.AlterTable(qualified_name(node.this), action, force)

    def _alter_table_options(self, node: nodes.AlterOptions) -> values.AlterTableSet:
        reset = tuple(TABLE_OPTIONS[option.name].field for option in node.args.get("reset") or ())
        return values.AlterTableSet(qualified_name(node.this), self._table_options(node), reset)
