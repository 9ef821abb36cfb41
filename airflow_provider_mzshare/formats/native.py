"""For upstreams that have columns of their own: FORMAT is not written, and there is nothing to decode."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.formats.base import Batch, Column, Field, Format, ReadBatch, Reading, TableColumns


class Native(Format):
    name = "none"
    takes_columns = True
    own_columns = True

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return NativeReading


class NativeReading(Reading):
    def __init__(self, records: Batch) -> None:
        if records.rows is None:
            raise TypeError("records without columns need a format")
        self._rows: pa.StructArray = records.rows

    def field(self, field: Field, type_name: str, *, as_text: bool) -> Column:
        """Raises if a value does not fit the type: then the upstream's columns have changed."""
        return Column(self._rows.field(field).cast(arrow_type(type_name)), {})

    def plain(self) -> Column:
        raise TypeError("a row has columns")


NATIVE = Native()
