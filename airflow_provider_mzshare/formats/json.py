"""JSON: the fields of an object as columns, or any JSON text whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

from airflow_provider_mzshare.formats.base import (
    Batch,
    Changes,
    Column,
    Errors,
    Field,
    Format,
    ReadBatch,
    Reading,
    TableColumns,
)
from airflow_provider_mzshare.formats.columns import convert
from airflow_provider_mzshare.formats.fastjson import fast_reader
from airflow_provider_mzshare.formats.json_changes import take_apart
from airflow_provider_mzshare.formats.jsontext import JsonParser, canonical_json, field_error


class Json(Format):
    name = "json"
    takes_columns = True
    takes_changes = True

    def refuses(self, type_name: str) -> str | None:
        return "JSON has no bytea; take text" if type_name == "bytea" else None

    @property
    def modules(self) -> Sequence[str]:
        return (*super().modules, fast_reader.__module__, take_apart.__module__)

    def changes(self, records: Batch) -> Changes:
        return take_apart(records)

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        """To keep every digit costs time, so it is done only if a column needs it; the rows are the same."""
        types = {type_name for table in tables for _, type_name in table.columns}
        as_text = any(table.text_columns for table in tables)
        exact = as_text or any(name == "jsonb" or name.startswith("numeric") for name in types)
        strict = partial(JsonReading, JsonParser(exact=exact))
        return fast_reader(tables, strict) or strict


class _Documents(NamedTuple):
    values: list[Any]
    errors: Errors


class JsonReading(Reading):
    """Strict, with the standard library only. This reading defines what a record decodes to."""

    def __init__(self, parser: JsonParser, records: Batch) -> None:
        self._parser, self._records = parser, records

    def record_errors(self, table: TableColumns) -> Errors:
        return self._objects.errors

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        objects = self._objects.values
        try:
            values = list(map(itemgetter(field), objects))
        except KeyError:
            values = [each.get(field) for each in objects]
        if as_text:
            values = [v if v is None or type(v) is str else canonical_json(v) for v in values]
        column, errors = convert(values, type_name)
        return Column(column, {row: field_error(field, text) for row, text in errors.items()})

    def plain(self) -> Column:
        return Column(self._records.texts.values, self._documents.errors)

    @cached_property
    def _documents(self) -> _Documents:
        """The value of every record, of whatever JSON kind."""
        texts = self._records.texts
        values, errors = self._parser.parse_all(texts.values.to_pylist())
        return _Documents(values, {**errors, **texts.errors})

    @cached_property
    def _objects(self) -> _Documents:
        """For tables with columns: every value is an object; other values are replaced by an empty object."""
        values, errors = self._documents
        if set(map(type, values)) <= {dict}:
            return self._documents
        wrong = {row: "the JSON value is not an object" for row, each in enumerate(values) if type(each) is not dict}
        return _Documents([each if type(each) is dict else {} for each in values], {**wrong, **errors})


JSON = Json()
