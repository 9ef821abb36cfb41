"""Text: a record is one UTF-8 text, kept as it was sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from airflow_provider_mzshare.formats.base import Batch, Column, Format, ReadBatch, Reading, TableColumns


class Text(Format):
    name = "text"

    def reader(self, tables: Sequence[TableColumns]) -> ReadBatch:
        return TextReading


class TextReading(Reading):
    def __init__(self, records: Batch) -> None:
        self._records = records

    def plain(self) -> Column:
        texts, raw = self._records.texts, self._records.values
        nothing = np.flatnonzero(np.asarray(pc.fill_null(pc.binary_length(raw), 0)) == 0)
        missing = {row: "value is empty" if raw[row].is_valid else "value is NULL" for row in nothing.tolist()}
        return Column(texts.values, {**texts.errors, **missing})


TEXT = Text()
