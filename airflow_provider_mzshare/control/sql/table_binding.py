"""Binding of statements about tables: columns, how they are decoded, and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sqlglot import exp

from airflow_provider_mzshare.connectors.registry import own_place_names
from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.binding_parts import Binding, parts, qualified_name
from airflow_provider_mzshare.control.sql.column_types import from_sql
from airflow_provider_mzshare.control.sql.durations import parse_duration
from airflow_provider_mzshare.control.sql.options import TABLE_SETTINGS
from airflow_provider_mzshare.control.sql.scanning import shown
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE, PLAIN_COLUMN, RESERVED, TICK
from airflow_provider_mzshare.core.specs import ColumnSpec, Include
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.formats.registry import NATIVE, any_of, format_named, sql_word, words_with_columns

_NOT_IN_DELTA = frozenset(" ,;{}()\n\t=")
MAX_COLUMNS = 1_000


def _include_name(item: nodes.Include) -> str:
    alias = item.args.get("alias")
    return alias.name if alias else item.name.lower()


class TableBinding(Binding):
    def _create_table(self, node: nodes.CreateTable) -> values.CreateTable:
        reference = node.args.get("reference")
        output = self._output(node, node.expressions)
        return values.CreateTable(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            source=qualified_name(node.args["source"]),
            reference=parts(reference) if reference else None,
            format=output.format,
            columns=output.columns,
            include=output.include,
            envelope=output.envelope,
            **self._table_options(node),
            **self._column_options(node, lambda column: column.name),
        )

    # ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _output(self, node: exp.Expr, columns: Sequence[exp.Expr]) -> values.Output:
        """Of a table, or of an old-style source with one output."""
        include = node.args.get("include") or ()
        written = node.text("format").lower() or NATIVE
        if include and format_named(written).own_columns:
            self.refuse(include[0], "INCLUDE needs FORMAT: without it the columns are the upstream's own")
        specs = self._columns(columns, written)
        self._check_columns(node, columns, include)
        return values.Output(
            format=written,
            columns=specs,
            include=tuple(Include(what=cast("Any", i.name.lower()), name=_include_name(i)) for i in include),
            envelope=self._envelope(node, written, include),
        )

    def _envelope(self, node: exp.Expr, written: str, include: Sequence[nodes.Include]) -> str:
        if not (word := node.text("envelope")):
            return DEFAULT_ENVELOPE
        envelope = envelope_named(word.lower())
        if missing := envelope.lacks(format=written, include=[item.name.lower() for item in include]):
            self.refuse(node.args["envelope"], f"ENVELOPE {word} needs {missing}")
        return envelope.name

    def _columns(self, columns: Sequence[exp.Expr], written: str = NATIVE) -> tuple[ColumnSpec, ...]:
        decoder = format_named(written)
        if columns and not decoder.takes_columns:
            wanted = f"a column list needs FORMAT {any_of(words_with_columns())}"
            self.refuse(columns[0].this, f"{wanted}; FORMAT {sql_word(written)} has the one column {PLAIN_COLUMN}")
        for column in columns:
            if why := decoder.refuses(column.args["kind"].name):
                self.refuse(column.args["kind"], f"column {column.name}: {why}")
        return tuple(ColumnSpec(name=c.name, type=from_sql(c.args["kind"].name)) for c in columns)

    def _check_columns(
        self, node: exp.Expr, columns: Sequence[exp.Expr], include: Sequence[nodes.Include] = ()
    ) -> None:
        """Every name once, whatever its case (Delta's are case-insensitive), and none of ours."""
        named = [(column.name, column.this) for column in columns]
        if not named and node.text("format"):
            named = [(PLAIN_COLUMN, node)]
        named += [(_include_name(item), item.args.get("alias") or item) for item in include]
        if len(named) > MAX_COLUMNS:
            self.refuse(named[MAX_COLUMNS][1], f"{len(named):,} columns are too many: the limit is {MAX_COLUMNS:,}")
        seen: dict[str, str] = {}
        for name, place in named:
            if name.lower().startswith(RESERVED):
                system = ", ".join((TICK, *own_place_names()))
                self.refuse(place, f"column {name}: names that begin with {RESERVED} are reserved ({system})")
            if not _NOT_IN_DELTA.isdisjoint(name):
                self.refuse(place, f'column "{name}": Delta allows no blank and none of ,;{{}}()= in a column name')
            if other := seen.get(name.lower()):
                case = "" if other == name else f", the other time as {other}: case makes no difference"
                self.refuse(place, f"column {name} occurs twice{case}")
            seen[name.lower()] = name

    # ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _table_options(self, node: exp.Expr) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, option in self._options(node).items():
            if name == "RETAIN HISTORY":
                fields["retain_history_seconds"] = self._retain(option.expression)
            elif name == "SNAPSHOT":
                fields["snapshot"] = bool(option.expression.this)
            elif name == "ON DECODE ERROR":
                fields["on_decode_error"] = self._on_decode_error(option.expression)
        return fields

    def _on_decode_error(self, literal: exp.Expr) -> str:
        if literal.name.upper() not in ("RECORD", "STOP"):
            self.refuse(literal, f"ON DECODE ERROR is 'RECORD' or 'STOP', not '{shown(literal.name)}'")
        return literal.name.lower()

    def _retain(self, literal: exp.Expr) -> int:
        try:
            milliseconds = parse_duration(literal.name)
        except ValueError as error:
            self.refuse(literal, f"RETAIN HISTORY FOR '{shown(literal.name)}' {error}")
        if milliseconds % 1_000:
            self.refuse(literal, f"RETAIN HISTORY FOR '{shown(literal.name)}' is not a whole number of seconds")
        return milliseconds // 1_000

    def _alter_table(self, node: nodes.AlterTable) -> values.AlterTable:
        return values.AlterTable(qualified_name(node.this), cast("Any", node.text("action").lower()))

    def _alter_table_options(self, node: nodes.AlterOptions) -> values.AlterTableSet:
        reset = tuple(TABLE_SETTINGS[option.name] for option in node.args.get("reset") or ())
        return values.AlterTableSet(qualified_name(node.this), self._table_options(node), reset)
