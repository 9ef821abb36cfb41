"""From statement to its canonical SQL, through syntax tree and dialect; what it prints parses back to the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from airflow_provider_mzshare.control.sql import items, nodes
from airflow_provider_mzshare.control.sql.column_types import to_sql
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import SOURCE_SETTINGS
from airflow_provider_mzshare.control.sql.reading import identifier
from airflow_provider_mzshare.types.specs import DAY_SECONDS, KafkaSourceSpec, Start, TableSpec


def print_statement(statement: items.Statement) -> str:
    """One line, without a semicolon; names with their schema, defaults left out."""
    return _NODES[type(statement)](statement).sql(dialect=MzShare)


def print_create_source(name: QualifiedName, spec: KafkaSourceSpec, settings: Mapping[str, int | float]) -> str:
    """``settings`` are fields of SourceSettings; those that are there are printed."""
    return print_statement(items.CreateSource(name, False, spec.connection, spec, settings))


def print_create_table(name: QualifiedName, source: QualifiedName, spec: TableSpec) -> str:
    return print_statement(
        items.CreateTable(
            name=name,
            if_not_exists=False,
            source=source,
            reference=spec.reference,
            format=spec.format,
            columns=spec.columns,
            include=spec.include,
            envelope=spec.envelope,
            on_decode_error=spec.on_decode_error,
            retain_history_seconds=spec.retain_history_seconds,
            snapshot=spec.snapshot,
        )
    )


def print_settings(settings: Mapping[str, int | float | None]) -> str:
    """As they are written between the brackets of WITH and SET; one that is not set has no such form."""
    unset = [f"no {name}" for name, known in SOURCE_SETTINGS.items() if settings.get(known.field, 0) is None]
    given = {field: value for field, value in settings.items() if value is not None}
    return ", ".join([option.sql(dialect=MzShare) for option in _settings(given)] + unset)


def _name(name: QualifiedName) -> exp.Table:
    return exp.Table(this=identifier(name.name), db=identifier(name.schema))


def _option(name: str, value: exp.Expr) -> nodes.Option:
    return nodes.Option(this=name, expression=value)


def _number(value: int) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)


def _settings(settings: Mapping[str, int | float]) -> list[nodes.Option]:
    return [
        _option(name, setting.write(settings[setting.field]))
        for name, setting in SOURCE_SETTINGS.items()
        if setting.field in settings
    ]


def _start(start: Start) -> list[nodes.Option]:
    if start.mode == "offset":
        last = max((int(number) for number in start.asked), default=0)
        offsets = [_number(start.asked.get(str(number), 0)) for number in range(last + 1)]
        return [_option("START OFFSET", exp.Tuple(expressions=offsets))]
    if start.timestamp is not None:
        return [_option("START TIMESTAMP", _number(start.timestamp))]
    return []


def _create_source(statement: items.CreateSource) -> exp.Expr:
    spec = statement.spec
    return nodes.CreateSource(
        this=_name(statement.name),
        exists=statement.if_not_exists,
        kind=spec.kind.upper(),
        connection=identifier(statement.connection),
        expressions=[_option("TOPIC", exp.Literal.string(spec.topic)), *_start(spec.start)],
        settings=_settings(statement.settings),
    )


def _create_table(statement: items.CreateTable) -> exp.Expr:
    return nodes.CreateTable(
        this=_name(statement.name),
        exists=statement.if_not_exists,
        expressions=[
            exp.ColumnDef(this=identifier(c.name), kind=exp.Var(this=to_sql(c.type))) for c in statement.columns
        ],
        source=_name(statement.source),
        reference=identifier(statement.reference) if statement.reference is not None else None,
        format=statement.format.upper(),
        include=[
            nodes.Include(this=i.what.upper(), alias=identifier(i.name) if i.name != i.what else None)
            for i in statement.include
        ],
        settings=_table_settings(statement),
    )


def _table_settings(statement: items.CreateTable) -> list[nodes.Option]:
    settings = []
    if statement.on_decode_error != "record":
        settings.append(_option("ON DECODE ERROR", exp.Literal.string(statement.on_decode_error.upper())))
    if (seconds := statement.retain_history_seconds) != DAY_SECONDS:
        settings.append(_option("RETAIN HISTORY", exp.Literal.string(format_duration(seconds * 1_000))))
    if not statement.snapshot:
        settings.append(_option("SNAPSHOT", exp.false()))
    return settings


def _alter_source(statement: items.AlterSourceSet) -> exp.Expr:
    words = {setting.field: name for name, setting in SOURCE_SETTINGS.items()}
    reset = [exp.Var(this=words[field]) for field in statement.reset]
    return nodes.AlterSource(this=_name(statement.name), settings=_settings(statement.settings), reset=reset)


def _alter_table(statement: items.AlterTable) -> exp.Expr:
    return nodes.AlterTable(this=_name(statement.name), action=statement.action.upper())


def _drop_item(statement: items.DropItem) -> exp.Expr:
    return nodes.DropItem(
        this=_name(statement.name),
        kind=statement.kind.upper(),
        exists=statement.if_exists,
        cascade=statement.cascade,
    )


def _show_create(statement: items.ShowCreate) -> exp.Expr:
    return nodes.ShowCreate(this=_name(statement.name), kind=statement.kind.upper() if statement.kind else None)


_NODES: dict[type[items.Statement], Callable[[Any], exp.Expr]] = {
    items.CreateSource: _create_source,
    items.CreateTable: _create_table,
    items.AlterSourceSet: _alter_source,
    items.AlterTable: _alter_table,
    items.DropItem: _drop_item,
    items.Show: lambda statement: nodes.ShowItems(this=statement.what.upper()),
    items.ShowCreate: _show_create,
}
