"""Makes the records of a range once more, for checks: apart from Spark, as another client of the same generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.load_generator.generators import records
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan, Range


class GeneratedRecords:
    def __init__(self, plan: GeneratorPlan) -> None:
        self._plan = plan

    def read(self, lane: int, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        return records(self._plan, Range(lane, lower, upper))

    def excuse(self) -> str | None:
        """Nothing a generator has made is ever gone."""
        return None

    def __enter__(self) -> GeneratedRecords:
        return self

    def __exit__(self, *exc: Any) -> None:
        """Nothing is held open."""
