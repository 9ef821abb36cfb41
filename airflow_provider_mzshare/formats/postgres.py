"""Rows of Postgres and changes of rows, where each column is the text that Postgres writes of a value.

No statement says it: the kind of source does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from airflow_provider_mzshare.formats.base import (
    Batch,
    Changes,
    Column,
    Field,
    Format,
    ReadBatch,
    Reading,
    TableColumns,
    utf8,
)
from airflow_provider_mzshare.formats.jsontext import field_error
from airflow_provider_mzshare.formats.postgres_values import typed


class Postgres(Format):
    name = "postgres"
    takes_columns = True
    own_columns = True
    takes_changes = True

    @property
    def modules(self) -> Sequence[str]:
        return (*super().modules, typed.__module__)

    def changes(self, records: Batch) -> Changes:
        rows = _rows_of(records)
        before, after = rows.field("before"), rows.field("after")
        # A row that goes away has its key in the row before.
        return Changes(rows.field("op").to_pylist(), before, before, after, [False] * len(rows), {}, _unsent(rows))

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return PostgresReading


class PostgresReading(Reading):
    def __init__(self, records: Batch) -> None:
        self._rows = _rows_of(records)

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        texts = utf8(self._rows.field(field))
        column = typed(texts.values, type_name)
        errors = {**column.errors, **texts.errors}
        return Column(column.values, {row: field_error(field, text) for row, text in errors.items()})

    def plain(self) -> Column:
        raise TypeError("a row has columns")


def _rows_of(records: Batch) -> pa.StructArray:
    if records.rows is None:
        raise TypeError("records without columns need a format")
    return records.rows


def _unsent(rows: pa.StructArray) -> dict[int, frozenset[Field]]:
    unsent, names = rows.field("unsent"), [each.name for each in rows.field("after").type]
    if unsent.null_count == len(unsent):
        return {}
    some = np.flatnonzero(unsent.is_valid()).tolist()
    return {row: frozenset(names[number] for number in unsent[row].as_py()) for row in some}


POSTGRES = Postgres()
