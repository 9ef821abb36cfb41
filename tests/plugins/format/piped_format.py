"""A format of the tests' own, as another package would bring one: ``1|ann|2.5``, fields by their place.

An empty field is NULL. What is no text is written as in JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from airflow_provider_mzshare.formats.base import (
    Batch,
    Column,
    Errors,
    Field,
    Format,
    ReadBatch,
    Reading,
    TableColumns,
)
from airflow_provider_mzshare.formats.columns import convert
from airflow_provider_mzshare.formats.jsontext import JsonParser


class Piped(Format):
    name = "piped"
    takes_columns = True
    key_type = "bytea"

    def refuses(self, type_name: str) -> str | None:
        return "a line has no bytea; take text" if type_name == "bytea" else None

    def fields(self, columns: Sequence[tuple[str, str]]) -> Sequence[Field]:
        return range(1, len(columns) + 1)

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return PipedReading


class PipedReading(Reading):
    def __init__(self, records: Batch) -> None:
        self._records, self._parser = records, JsonParser(exact=True)

    @cached_property
    def _lines(self) -> list[list[str]]:
        return [[] if text is None else text.split("|") for text in self._records.texts.values.to_pylist()]

    @cached_property
    def _errors(self) -> Errors:
        missing = {row: "value is NULL" for row, value in enumerate(self._records.values) if not value.is_valid}
        return {**self._records.texts.errors, **missing}

    def record_errors(self, table: TableColumns) -> Errors:
        wanted = len(table.columns)
        counts = {row: len(line) for row, line in enumerate(self._lines) if len(line) != wanted}
        return {**{row: f"{found} fields, not {wanted}" for row, found in counts.items()}, **self._errors}

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        number = int(field)
        cells = [line[number - 1] or None if len(line) >= number else None for line in self._lines]
        if type_name == "text":
            return Column(pa.array(cells, pa.string()), {})
        written = {row: cell for row, cell in enumerate(cells) if cell is not None}
        parsed, bad = self._parser.parse_all(list(written.values()))
        values = dict(zip(written, parsed, strict=True))
        column, errors = convert([values.get(row) for row in range(len(cells))], type_name)
        wrong = {row: bad[place] for place, row in enumerate(written) if place in bad}
        return Column(column, {row: f"field {number}: {text}" for row, text in {**errors, **wrong}.items()})

    def plain(self) -> Column:
        return Column(self._records.texts.values, self._errors)


PIPED = Piped()
