"""Structured arguments as statements: values go into a syntax tree and are printed, never pasted into SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from airflow_provider_mzshare.connectors.kind import ConnectorKind, Written
from airflow_provider_mzshare.connectors.registry import find_kind
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.sql import script as sql
from airflow_provider_mzshare.control.sql.column_lists import parse_columns, parse_type
from airflow_provider_mzshare.control.sql.durations import parse_duration
from airflow_provider_mzshare.control.sql.options import SOURCE_SETTINGS, read_number
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.specs import DAY_SECONDS, ColumnSpec, Include, SourceSettings
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.formats.registry import FORMATS

Columns = str | Sequence[Mapping[str, str]]
Includes = str | Sequence[str | Mapping[str, str]]

DEFAULT_KIND = "kafka"
"""Of those who say nothing of a kind: operators had no other."""
TABLE_FIELDS = ("name", "columns", "format", "include", "reference", "snapshot", "options")
TABLE_OPTIONS = ("on_decode_error", "retain_history", "text_columns", "exclude_columns")
SOURCE_OPTIONS = {setting.name: setting for setting in SOURCE_SETTINGS.values()}


def source_statement(
    name: str,
    *,
    kind: str = DEFAULT_KIND,
    connection: str | None = None,
    options: Mapping[str, Any] | None = None,
    **upstream: Any,
) -> str:
    """:param options: settings of the source, as ``{"trigger_interval": "500ms", "backfill_rate": 1000}``.
    :param upstream: what its kind needs to know, by the words of its options: ``topic="t"``, ``start_offsets=[3, 4]``.
    """
    check_upstream(kind, connection, upstream)
    found = find_kind(kind)
    variant = upstream.get(found.variant_field)
    spec = found.read(
        Written(
            connection if found.takes_connection else None,
            str(variant).upper().replace("_", " ") if variant else None,
            {o.words: _upstream_value(found, o, upstream[o.name]) for o in found.options if _given(upstream, o.name)},
        )
    )
    return sql.print_statement(
        sql.CreateSource(typed_name(name), True, found.connection_name(spec), spec, _source_settings(options or {}))
    )


def check_upstream(kind: str, connection: str | None, upstream: Mapping[str, Any]) -> None:
    """That nothing is missing and all is known; the values may be templates still."""
    found = find_kind(kind)
    required = [option.name for option in found.options if option.required]
    required += [found.variant_field] if found.variants else []
    _check_known(f"argument of a {found.title} source", upstream, [*required, *(o.name for o in found.options)])
    needed = {**upstream, "connection": connection} if found.takes_connection else upstream
    for name in (["connection"] if found.takes_connection else []) + required:
        if not _given(needed, name):
            raise StatementError(f"a {found.title} source needs {name}")
    for option in found.options:
        other = next((o.name for o in found.options if o.words == option.excludes), "")
        if _given(upstream, option.name) and _given(upstream, other):
            raise StatementError(f"{other} and {option.name} exclude each other")


def _given(upstream: Mapping[str, Any], name: str) -> bool:
    """No offsets at all are none asked for."""
    return upstream.get(name) is not None and upstream[name] not in ((), [])


def _upstream_value(kind: ConnectorKind[Any], option: Option, value: Any) -> OptionValue:
    if option.type == "wholes":
        return tuple(_whole(option.name, number) for number in value)
    if option.type in ("name", "text"):
        return str(value)
    if option.type != "duration":
        return _whole(option.name, value)
    try:
        return read_number(option, str(value), kind.spec, option.name)
    except ValueError as error:
        raise StatementError(str(error)) from None


def table_statement(source: str, table: Mapping[str, Any]) -> str:
    """:param table: ``name``, ``columns``, ``format``, ``include``, ``reference``, ``snapshot``, ``options``.

    A reference that is a text is one name, dots and all, as a topic's; one with a schema is a list of its parts, which
    may be written as JSON.
    """
    _check_known("table", table, TABLE_FIELDS)
    if not table.get("name"):
        raise StatementError("a table needs a name")
    options = table.get("options") or {}
    _check_known("table option", options, TABLE_OPTIONS)
    return sql.print_statement(
        sql.CreateTable(
            name=typed_name(str(table["name"])),
            if_not_exists=True,
            source=typed_name(source),
            reference=_reference(table.get("reference")),
            format=_one_of("format", table.get("format") or "json", tuple(FORMATS)),
            columns=column_specs(table.get("columns") or ()),
            include=_includes(table.get("include") or ()),
            on_decode_error=_one_of("on_decode_error", options.get("on_decode_error") or "record", ("record", "stop")),
            retain_history_seconds=_seconds(options.get("retain_history")),
            snapshot=_boolean("snapshot", table.get("snapshot", True)),
            text_columns=_names(options.get("text_columns")),
            exclude_columns=_names(options.get("exclude_columns")),
        )
    )


def _reference(given: Any) -> tuple[str, ...] | None:
    """A name, or a list of parts, which may be JSON: no topic's name begins as one does."""
    text = given.strip() if isinstance(given, str) else None
    if not given or text == "":
        return None
    if text is not None and not text.startswith("["):
        return (text,)
    try:
        parts = json.loads(text) if text is not None else list(given)
    except ValueError:
        parts = []
    if not parts or not all(isinstance(part, str) for part in parts):
        raise StatementError(f'reference {given!r} is not a list of names: ["schema", "name"]')
    return tuple(parts)


def _names(given: Any) -> tuple[str, ...]:
    """``"a, b"`` or ``["a", "b"]``: names as they are, without quotes."""
    found = given.split(",") if isinstance(given, str) else given or ()
    return tuple(name for one in found if (name := str(one).strip()))


def column_specs(columns: Columns) -> tuple[ColumnSpec, ...]:
    """``"n bigint, s text"``, or ``[{"name": "n", "type": "bigint"}]``."""
    if isinstance(columns, str):
        try:
            return parse_columns(columns) if columns.strip() else ()
        except StatementError as error:
            raise StatementError(f"columns {columns!r}: {error}", hint=error.hint) from None
    specs = []
    for column in columns:
        if not isinstance(column, Mapping) or set(column) != {"name", "type"}:
            raise StatementError(f"a column is {{'name': …, 'type': …}}, not {column!r}")
        specs.append(ColumnSpec(name=str(column["name"]), type=parse_type(str(column["type"]))))
    return tuple(specs)


def _includes(include: Includes) -> tuple[Include, ...]:
    """``"offset, key"``, ``["offset"]``, or ``[{"what": "offset", "name": "o"}]``."""
    given = [word.strip() for word in include.split(",")] if isinstance(include, str) else include
    found = []
    for one in given:
        parts = {"what": one} if isinstance(one, str) else dict(one)
        what = str(parts.get("what")).lower()
        parts = {"name": what, **parts, "what": what}
        try:
            found.append(Include.model_validate(parts))
        except ValidationError:
            wanted = "partition, offset, timestamp or key"
            raise StatementError(f"include takes {wanted}, or {{'what': …, 'name': …}}, not {one!r}") from None
    return tuple(found)


def _source_settings(options: Mapping[str, Any]) -> dict[str, int | float]:
    _check_known("source option", options, tuple(SOURCE_OPTIONS))
    settings = {}
    for name, value in options.items():
        setting = SOURCE_OPTIONS[name]
        try:
            settings[setting.field] = read_number(setting, str(value), SourceSettings, name)
        except ValueError as error:
            raise StatementError(f"source option {name}: {error}") from None
    return settings


def _one_of(what: str, value: Any, known: Sequence[str]) -> Any:
    if str(value).lower() not in known:
        raise StatementError(f"{what} is one of {', '.join(known)}, not {value!r}")
    return str(value).lower()


def _seconds(duration: Any) -> int:
    if duration is None or duration == "":
        return DAY_SECONDS
    try:
        milliseconds = parse_duration(str(duration))
    except ValueError as error:
        raise StatementError(f"retain_history {duration!r} {error}") from None
    if milliseconds % 1_000:
        raise StatementError(f"retain_history {duration!r} is not a whole number of seconds")
    return milliseconds // 1_000


def _whole(what: str, value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise StatementError(f"{what} takes whole numbers, not {value!r}") from None


def _boolean(what: str, value: Any) -> bool:
    """A template renders to text."""
    if isinstance(value, bool):
        return value
    return bool(_one_of(what, value, ("true", "false")) == "true")


def _check_known(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := [key for key in given if key not in known]:
        raise StatementError(f"there is no {what} {unknown[0]!r}; there are: {', '.join(known)}")
