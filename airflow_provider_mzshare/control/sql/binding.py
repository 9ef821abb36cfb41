"""From syntax tree to statement: values read and checked, every refusal at its place; nothing is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

from sqlglot import exp

from airflow_provider_mzshare.control.sql import items, nodes
from airflow_provider_mzshare.control.sql.column_types import from_sql
from airflow_provider_mzshare.control.sql.durations import parse_duration
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, QualifiedName, check_name
from airflow_provider_mzshare.control.sql.options import SOURCE_SETTINGS
from airflow_provider_mzshare.control.sql.scanning import refuse, shown
from airflow_provider_mzshare.types.schema import SYSTEM_COLUMNS
from airflow_provider_mzshare.types.specs import ColumnSpec, Include, KafkaSourceSpec, Start

_RESERVED_PREFIX = "_mz_"
_DATA = "data"
_NOT_IN_DELTA = frozenset(" ,;{}()\n\t=")
MAX_COLUMNS = 1_000


def qualified_name(table: exp.Expr) -> QualifiedName:
    return QualifiedName(table.text("db") or DEFAULT_SCHEMA, table.name)


def _include_name(item: nodes.Include) -> str:
    alias = item.args.get("alias")
    return alias.name if alias else item.name.lower()


class Binder:
    """``text`` is what the nodes were parsed from; their positions point into it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_node: dict[type[exp.Expr], Callable[[Any], items.Statement]] = {
            nodes.CreateSource: self._create_source,
            nodes.CreateTable: self._create_table,
            nodes.AlterSource: self._alter_source,
            nodes.AlterTable: self._alter_table,
            nodes.DropItem: self._drop_item,
            nodes.ShowItems: lambda node: items.Show(node.name.lower()),
            nodes.ShowCreate: self._show_create,
        }

    def bind(self, node: exp.Expr) -> items.Statement:
        return self._by_node[type(node)](node)

    def refuse(self, node: exp.Expr, message: str) -> NoReturn:
        refuse(self._text, node.meta["start"], message)

    # ── sources ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_source(self, node: nodes.CreateSource) -> items.CreateSource:
        options = {option.name: option for option in node.expressions}
        if "TOPIC" not in options:
            self.refuse(node, "a KAFKA source needs TOPIC '…'")
        topic, connection = options["TOPIC"].expression, node.args["connection"].name
        self._checked(topic, lambda: check_name(topic.name, "a topic"))
        return items.CreateSource(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            connection=connection,
            spec=KafkaSourceSpec(connection=connection, topic=topic.name, start=self._start(options)),
            settings=self._settings(node),
        )

    def _start(self, options: dict[str, nodes.Option]) -> Start:
        offsets, timestamp = options.get("START OFFSET"), options.get("START TIMESTAMP")
        if offsets and timestamp:
            self.refuse(timestamp, "START OFFSET and START TIMESTAMP exclude each other")
        if offsets:
            asked = {str(number): int(offset.name) for number, offset in enumerate(offsets.expression.expressions)}
            return Start(mode="offset", asked=asked)
        if timestamp:
            return Start(mode="timestamp", timestamp=int(timestamp.expression.name))
        return Start()

    def _alter_source(self, node: nodes.AlterSource) -> items.AlterSourceSet:
        reset = tuple(SOURCE_SETTINGS[name.name].field for name in node.args.get("reset") or ())
        return items.AlterSourceSet(name=qualified_name(node.this), settings=self._settings(node), reset=reset)

    def _settings(self, node: exp.Expr) -> dict[str, int | float]:
        settings = {}
        for option in node.args.get("settings") or ():
            setting, literal = SOURCE_SETTINGS[option.name], option.expression
            settings[setting.field] = self._checked(literal, lambda: setting.read(option.name, literal.name))  # noqa: B023
        return settings

    def _checked(self, node: exp.Expr, check: Callable[[], Any]) -> Any:
        try:
            return check()
        except ValueError as error:
            self.refuse(node, str(error))

    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_table(self, node: nodes.CreateTable) -> items.CreateTable:
        reference = node.args.get("reference")
        columns = self._columns(node)
        include = node.args.get("include") or ()
        self._check_columns(node, include)
        return items.CreateTable(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            source=qualified_name(node.args["source"]),
            reference=reference.name if reference else None,
            format=cast("Any", node.text("format").lower()),
            columns=columns,
            include=tuple(Include(what=cast("Any", i.name.lower()), name=_include_name(i)) for i in include),
            **self._table_options(node),
        )

    def _columns(self, node: nodes.CreateTable) -> tuple[ColumnSpec, ...]:
        written_format = node.text("format")
        if node.expressions and written_format != "JSON":
            message = f"a column list needs FORMAT JSON; FORMAT {written_format} has the one column {_DATA}"
            self.refuse(node.expressions[0].this, message)
        for column in node.expressions:
            if column.args["kind"].name == "bytea":
                self.refuse(column.args["kind"], f"column {column.name}: JSON has no bytea; take text")
        return tuple(ColumnSpec(name=c.name, type=from_sql(c.args["kind"].name)) for c in node.expressions)

    def _check_columns(self, node: nodes.CreateTable, include: Sequence[nodes.Include]) -> None:
        """Every name once, whatever its case (Delta's are case-insensitive), and none of ours."""
        named = [(column.name, column.this) for column in node.expressions] or [(_DATA, node)]
        named += [(_include_name(item), item.args.get("alias") or item) for item in include]
        if len(named) > MAX_COLUMNS:
            self.refuse(named[MAX_COLUMNS][1], f"{len(named):,} columns are too many: the limit is {MAX_COLUMNS:,}")
        seen: dict[str, str] = {}
        for name, place in named:
            if name.lower().startswith(_RESERVED_PREFIX):
                system = ", ".join(column for column, _ in SYSTEM_COLUMNS)
                self.refuse(place, f"column {name}: names that begin with {_RESERVED_PREFIX} are reserved ({system})")
            if not _NOT_IN_DELTA.isdisjoint(name):
                self.refuse(place, f'column "{name}": Delta allows no blank and none of ,;{{}}()= in a column name')
            if other := seen.get(name.lower()):
                case = "" if other == name else f", the other time as {other}: case makes no difference"
                self.refuse(place, f"column {name} occurs twice{case}")
            seen[name.lower()] = name

    def _table_options(self, node: nodes.CreateTable) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for option in node.args.get("settings") or ():
            literal = option.expression
            if option.name == "RETAIN HISTORY":
                options["retain_history_seconds"] = self._retain(literal)
            elif option.name == "SNAPSHOT":
                options["snapshot"] = bool(literal.this)
            elif literal.name.upper() in ("RECORD", "STOP"):
                options["on_decode_error"] = literal.name.lower()
            else:
                self.refuse(literal, f"ON DECODE ERROR is 'RECORD' or 'STOP', not '{shown(literal.name)}'")
        return options

    def _retain(self, literal: exp.Expr) -> int:
        try:
            milliseconds = parse_duration(literal.name)
        except ValueError as error:
            self.refuse(literal, f"RETAIN HISTORY FOR '{shown(literal.name)}' {error}")
        if milliseconds % 1_000:
            self.refuse(literal, f"RETAIN HISTORY FOR '{shown(literal.name)}' is not a whole number of seconds")
        return milliseconds // 1_000

    def _alter_table(self, node: nodes.AlterTable) -> items.AlterTable:
        return items.AlterTable(qualified_name(node.this), cast("Any", node.text("action").lower()))

    # ── DROP and SHOW CREATE ──────────────────────────────────────────────────────────────────────────────────────────

    def _drop_item(self, node: nodes.DropItem) -> items.DropItem:
        return items.DropItem(
            kind=cast("items.Kind", node.text("kind").lower()),
            name=qualified_name(node.this),
            if_exists=bool(node.args.get("exists")),
            cascade=bool(node.args.get("cascade")),
        )

    def _show_create(self, node: nodes.ShowCreate) -> items.ShowCreate:
        kind = cast("items.Kind", node.text("kind").lower()) if node.args.get("kind") else None
        return items.ShowCreate(kind, qualified_name(node.this))
