"""A reader that leaves out what is gone upstream, for tables that are filled with what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_mzshare.connectors.base import Parts, Reader
from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.positions import Position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class WhatIsLeft:
    """``gone`` may change from read to read: what is before it is not asked for."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self.gone = reader, Position()

    @property
    def place(self) -> Place:
        return self._reader.place

    def begin(self, lower: Position, upper: Position) -> Position:
        """Where to begin to read ``[lower, upper)``."""
        return lower.join(self.gone).meet(upper) if self.gone.entries else lower

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        return self._reader.stream(start, partitions, max_records)

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        return self._reader.bounded(self.begin(lower, upper), upper, tasks=tasks)

    def parts(self, lower: Position, upper: Position, tasks: int) -> Parts | None:
        return self._reader.parts(self.begin(lower, upper), upper, tasks)

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        return self._reader.read_thin(self.begin(lower, upper), upper)

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        return self._reader.read_apart(error, self.begin(lower, upper), upper)

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        return self._reader.batch_range(checkpoint, batch_id, start)

    def close(self) -> None:
        self._reader.close()
