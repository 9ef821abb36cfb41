"""Statements about tables as nodes."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.durations import format_duration
from airflow_provider_mzshare.control.sql.options import TABLE_SETTINGS
from airflow_provider_mzshare.control.sql.printing_parts import (
    column_definitions,
    column_names,
    envelope_word,
    includes,
    option,
    path,
    table_name,
)
from airflow_provider_mzshare.core.specs import DAY_SECONDS
from airflow_provider_mzshare.formats.registry import sql_word


def create_table(statement: values.CreateTable) -> exp.Expr:
    return nodes.CreateTable(
        this=table_name(statement.name),
        exists=statement.if_not_exists,
        expressions=column_definitions(statement.columns),
        source=table_name(statement.source),
        reference=path(statement.reference) if statement.reference else None,
        format=sql_word(statement.format),
        include=includes(statement.include),
        envelope=envelope_word(statement.envelope),
        settings=_options(statement),
    )


def _options(statement: values.CreateTable) -> list[nodes.Option]:
    given: dict[str, int | str] = {}
    if statement.on_decode_error != "record":
        given["on_decode_error"] = statement.on_decode_error
    if statement.retain_history_seconds != DAY_SECONDS:
        given["retain_history_seconds"] = statement.retain_history_seconds
    settings = _settings(given)
    if not statement.snapshot:
        settings.append(option("SNAPSHOT", exp.false()))
    return settings + column_names(statement.text_columns, statement.exclude_columns)


def _settings(given: Mapping[str, int | str]) -> list[nodes.Option]:
    settings = []
    if "on_decode_error" in given:
        settings.append(option("ON DECODE ERROR", exp.Literal.string(str(given["on_decode_error"]).upper())))
    if "retain_history_seconds" in given:
        duration = format_duration(int(given["retain_history_seconds"]) * 1_000)
        settings.append(option("RETAIN HISTORY", exp.Literal.string(duration)))
    return settings


def alter_table(statement: values.AlterTable) -> exp.Expr:
    return nodes.AlterTable(this=table_name(statement.name), action=statement.action.upper())


def alter_table_set(statement: values.AlterTableSet) -> exp.Expr:
    words = {field: name for name, field in TABLE_SETTINGS.items()}
    return nodes.AlterOptions(
        this=table_name(statement.name),
        kind="TABLE",
        settings=_settings(statement.settings),
        reset=[exp.Var(this=words[field]) for field in statement.reset],
    )
