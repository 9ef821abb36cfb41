"""Bytes: a record as it was sent, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mzshare.formats.base import Batch, Column, Format, ReadBatch, Reading, TableColumns


class Bytes(Format):
    name = "bytes"
    plain_type = "bytea"
    key_type = "bytea"

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return BytesReading


class BytesReading(Reading):
    def __init__(self, records: Batch) -> None:
        self._records = records

    def plain(self) -> Column:
        return Column(self._records.values, {})


BYTES = Bytes()
