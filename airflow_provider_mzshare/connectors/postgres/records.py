"""Reads the changes of a range once more, for checks: apart from Spark, from the announced bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.postgres.batches import changes
from airflow_provider_mzshare.connectors.postgres.ranges import Ranges
from airflow_provider_mzshare.connectors.segments import telling_of_damage
from airflow_provider_mzshare.core.positions import Position


class PostgresRecords:
    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def read(self, lane: str, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        yield from telling_of_damage(changes(self._ranges.parts(Position({lane: lower}), Position({lane: upper}))))

    def excuse(self) -> str | None:
        """What is announced stays until nobody needs it."""
        return None

    def __enter__(self) -> PostgresRecords:
        return self

    def __exit__(self, *exc: Any) -> None:
        """Nothing is held open."""
