"""Structured arguments as statements: values go into a syntax tree and are printed, never pasted into SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.sql import script as sql
from airflow_provider_mzshare.control.sql.column_lists import parse_columns, parse_type
from airflow_provider_mzshare.control.sql.durations import parse_duration
from airflow_provider_mzshare.control.sql.options import SOURCE_SETTINGS
from airflow_provider_mzshare.core.specs import DAY_SECONDS, ColumnSpec, Include, KafkaSourceSpec, Start
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.formats.registry import FORMATS

Columns = str | Sequence[Mapping[str, str]]
Includes = str | Sequence[str | Mapping[str, str]]

TABLE_FIELDS = ("name", "columns", "format", "include", "reference", "snapshot", "options")
TABLE_OPTIONS = ("on_decode_error", "retain_history", "text_columns", "exclude_columns")
SOURCE_OPTIONS = {name.lower().replace(" ", "_"): setting for name, setting in SOURCE_SETTINGS.items()}


def source_statement(
    name: str,
    *,
    connection: str,
    topic: str,
    start_offsets: Sequence[int] | None = None,
    start_timestamp: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """:param options: as ``{"trigger_interval": "500ms", "backfill_rate": 1000}``."""
    if start_offsets and start_timestamp is not None:
        raise StatementError("start_offsets and start_timestamp exclude each other")
    start = Start()
    if start_offsets:
        asked = {str(number): _whole("start_offsets", offset) for number, offset in enumerate(start_offsets)}
        start = Start(mode="offset", asked=asked)
    elif start_timestamp is not None:
        start = Start(mode="timestamp", timestamp=_whole("start_timestamp", start_timestamp))
    spec = KafkaSourceSpec(connection=connection, topic=topic, start=start)
    return sql.print_statement(
        sql.CreateSource(typed_name(name), True, connection, spec, _source_settings(options or {}))
    )


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
            settings[setting.field] = setting.read(name, str(value))
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
