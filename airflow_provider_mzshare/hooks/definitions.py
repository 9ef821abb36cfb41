"""Arguments of operators and forms as statements: values that are checked by the same rules as SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from airflow_provider_mzshare.connectors.kind import ConnectorKind, Written
from airflow_provider_mzshare.connectors.registry import find_kind
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.sql import checks
from airflow_provider_mzshare.control.sql import script as sql
from airflow_provider_mzshare.control.sql.column_lists import parse_columns, parse_type
from airflow_provider_mzshare.control.sql.grammar import listing
from airflow_provider_mzshare.control.sql.names import check_name
from airflow_provider_mzshare.control.sql.options import given_names, is_given, read_given
from airflow_provider_mzshare.control.sql.values import INLINE_COLUMN
from airflow_provider_mzshare.core.options import Option, OptionValue
from airflow_provider_mzshare.core.schema import DEFAULT_ENVELOPE
from airflow_provider_mzshare.core.specs import (
    SOURCE_SETTINGS,
    TABLE_OPTIONS,
    ColumnSpec,
    Include,
    SourceSettings,
    TableSpec,
)
from airflow_provider_mzshare.envelopes import registry as envelopes
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.formats import registry as formats

Columns = str | Sequence[Mapping[str, str]]
Includes = str | Sequence[str | Mapping[str, str]]

DEFAULT_KIND = "kafka"
"""The kind if none is given: operators once had no other."""
TABLE_FIELDS = (
    "name", "columns", "format", "include", "reference", "snapshot", "options", "key_format", "key_columns", "envelope",
    "inline_errors", "primary_key",
)  # fmt: skip
SOURCE_ARGUMENTS = {option.name: option for option in SOURCE_SETTINGS.values()}
TABLE_ARGUMENTS = {option.name: option for option in TABLE_OPTIONS.values()}


def source_statement(
    name: str,
    *,
    kind: str = DEFAULT_KIND,
    connection: str | None = None,
    options: Mapping[str, Any] | None = None,
    **upstream: Any,
) -> sql.CreateSource:
    """:param options: settings of the source, as ``{"trigger_interval": "500ms", "backfill_rate": 1000}``.
    :param upstream: the options of its kind, by their words: ``topic="t"``, ``start_offsets=[3, 4]``.
    """
    check_upstream(kind, connection, upstream)
    found = find_kind(kind)
    written = Written(
        _connection(found, connection),
        _variant(found, upstream),
        {option.words: value for option, value in _values(found.options, upstream, found.spec)},
    )
    with _told():
        spec = found.read(written)
    settings = _by_fields(SOURCE_ARGUMENTS, options or {}, SourceSettings, "source option")
    return sql.CreateSource(
        typed_name(name), True, found.connection_name(spec), spec, cast("Mapping[str, int | float]", settings)
    )


def check_upstream(kind: str, connection: str | None, upstream: Mapping[str, Any]) -> None:
    """Check that no option is missing or unknown. The values may still be templates."""
    found = find_kind(kind)
    known = [*([found.variant_field] if found.variants else []), *(option.name for option in found.options)]
    _check_known(f"argument of a {found.title} source", upstream, known)
    if found.takes_connection and not connection:
        raise StatementError(f"a {found.title} source needs a connection")
    variant = _variant(found, upstream)
    if found.variants and variant is None:
        raise StatementError(f"a {found.title} source needs {found.variant_field}")
    given = {
        option.words: str(upstream[option.name]) for option in found.options if is_given(upstream.get(option.name))
    }
    rendered = [words for words, value in given.items() if "{{" not in value and "{%" not in value]
    if variant is not None and variant not in found.variants:
        if "{{" in variant:
            return  # checked after it is rendered, before the source is created
        raise StatementError(f"expected {listing(found.variants)}, found {variant}", argument=found.variant_field)
    with _told():
        checks.check_upstream(found, variant, rendered, perhaps=given)


def _variant(kind: ConnectorKind[Any], upstream: Mapping[str, Any]) -> str | None:
    given = upstream.get(kind.variant_field)
    return str(given).upper().replace("_", " ") if given else None


def _connection(kind: ConnectorKind[Any], connection: str | None) -> str | None:
    if not kind.takes_connection:
        return None
    with _told("connection"):
        check_name(connection or "", "a connection name")
    return connection


def table_statement(source: str, table: Mapping[str, Any]) -> sql.CreateTable:
    """:param table: what ``TABLE_FIELDS`` lists, as the arguments of ``CreateTableFromSourceOperator``.

    A reference that is a text is one name, dots included, like a topic's. One with a schema is a list of parts, which
    may be written as JSON.
    """
    _check_known("table", table, TABLE_FIELDS)
    if not table.get("name"):
        raise StatementError("a table needs a name")
    options = {**(table.get("options") or {})}
    if is_given(table.get("snapshot")):
        options["snapshot"] = table["snapshot"]
    statement = sql.CreateTable(
        name=typed_name(str(table["name"])),
        if_not_exists=True,
        source=typed_name(source),
        reference=_reference(table.get("reference")),
        format=_one_of("format", table.get("format") or "json", formats.choices()),
        columns=column_specs(table.get("columns") or ()),
        include=_includes(table.get("include") or ()),
        options=_by_fields(TABLE_ARGUMENTS, options, TableSpec, "table option"),
        envelope=_one_of("envelope", table.get("envelope") or DEFAULT_ENVELOPE, envelopes.choices()),
        key_format=_key_format(table.get("key_format")),
        key_columns=column_specs(table.get("key_columns") or (), "key_columns"),
        inline_errors=_inline_errors(table.get("inline_errors")),
        primary_key=_key_names(table.get("primary_key")),
    )
    with _told():
        checks.check_table(statement)
    return statement


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_fields(
    known: Mapping[str, Option], given: Mapping[str, Any], model: type[BaseModel], what: str
) -> dict[str, OptionValue]:
    _check_known(what, given, tuple(known))
    return {option.field: value for option, value in _values(known.values(), given, model)}


def _values(
    options: Iterable[Option], given: Mapping[str, Any], model: type[BaseModel]
) -> Iterator[tuple[Option, OptionValue]]:
    for option in options:
        if is_given(given.get(option.name)):
            with _told(option.name):
                value = read_given(option, given[option.name], model)
            yield option, value


@contextmanager
def _told(argument: str | None = None) -> Iterator[None]:
    """Report errors of a statement with the argument, as SQL reports them with the place in its text."""
    try:
        yield
    except checks.Misfit as error:
        raise StatementError(str(error), argument=str(error.clause) or None) from None
    except ValueError as error:
        raise StatementError(str(error), argument=argument) from None


def _reference(given: Any) -> tuple[str, ...] | None:
    """A name, or a list of parts, also as JSON: a topic's name cannot begin with a bracket."""
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


def _key_format(given: Any) -> str | None:
    if not is_given(given):
        return None
    known = tuple(name for name in formats.choices() if name != formats.NATIVE)
    return cast("str", _one_of("key_format", given, known))


def _inline_errors(given: Any) -> str | None:
    """The name of the column."""
    if not is_given(given):
        return None
    if not isinstance(given, str):
        raise StatementError(f"inline_errors is the name of a column, as {INLINE_COLUMN!r}, not {given!r}")
    return given


def _key_names(given: Any) -> tuple[str, ...]:
    """``"a, b"`` or ``["a", "b"]``."""
    if not is_given(given):
        return ()
    with _told("primary_key"):
        return given_names(given)


def column_specs(columns: Columns, argument: str = "columns") -> tuple[ColumnSpec, ...]:
    """``"n bigint, s text"``, or ``[{"name": "n", "type": "bigint"}]``."""
    if isinstance(columns, str):
        try:
            return parse_columns(columns) if columns.strip() else ()
        except StatementError as error:
            raise StatementError(f"{argument} {columns!r}: {error}", hint=error.hint) from None
    specs = []
    for column in columns:
        if not isinstance(column, Mapping) or set(column) != {"name", "type"}:
            raise StatementError(f"a column must be {{'name': …, 'type': …}}, not {column!r}")
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


def _one_of(what: str, value: Any, known: Sequence[str]) -> Any:
    if str(value).lower() not in known:
        raise StatementError(f"{what} must be one of {', '.join(known)}, not {value!r}")
    return str(value).lower()


def _check_known(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := [key for key in given if key not in known]:
        raise StatementError(f"there is no {what} {unknown[0]!r}; there are: {', '.join(known)}")
