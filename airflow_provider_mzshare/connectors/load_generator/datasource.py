"""The load generator as a Python data source of Spark: a stream, and exact ranges. Runs in Spark's Python processes.

Spark 4.0 has no admission control for Python sources, so the stream's reader itself says where a batch ends. It may:
each end that it names becomes a batch, unless it is the last one again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from airflow_provider_mzshare.connectors.load_generator.generators import records
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan, Range, ranges_of
from airflow_provider_mzshare.connectors.records import CHUNK_DDL, chunks
from airflow_provider_mzshare.connectors.spans import offsets_of, split

NAME = "mzshare_load_generator"


class LoadGeneratorSource(DataSource):
    """Options: ``plan``; of a stream ``start`` and ``max_records``, of a range ``lower``, ``upper`` and ``tasks``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return CHUNK_DDL

    def reader(self, schema: StructType) -> RangeReader:
        lower, upper = (offsets_of(json.loads(self.options[name])) for name in ("lower", "upper"))
        return RangeReader(self._plan(), split(ranges_of(lower, upper), int(self.options["tasks"])))

    def streamReader(self, schema: StructType) -> StreamReader:
        start = offsets_of(json.loads(self.options["start"]))
        return StreamReader(self._plan(), start, int(self.options["max_records"]))

    def _plan(self) -> GeneratorPlan:
        return GeneratorPlan.from_json(self.options["plan"])


class Part(InputPartition):
    """What one task makes."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


class RangeReader(DataSourceReader):
    def __init__(self, plan: GeneratorPlan, parts: Sequence[Sequence[Range]]) -> None:
        self._plan, self._parts = plan, parts

    def partitions(self) -> Sequence[InputPartition]:
        return [Part(ranges) for ranges in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._plan, partition)


class StreamReader(DataSourceStreamReader):
    """Offsets are those of each partition, ``{"0": 120, "1": 87}``: a position of ours with its zeros."""

    def __init__(self, plan: GeneratorPlan, start: dict[int, int], max_records: int) -> None:
        self._plan, self._start, self._max_records = plan, start, max_records
        self._at = start

    def initialOffset(self) -> dict[str, int]:
        return self._named(self._start)

    def latestOffset(self) -> dict[str, int]:
        self._at = self._plan.next_end(self._at, time.time_ns() // 1_000_000, self._max_records)
        return self._named(self._at)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Part(ranges) for ranges in split(ranges_of(offsets_of(start), offsets_of(end)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._plan, partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept upstream."""

    def _named(self, offsets: dict[int, int]) -> dict[str, int]:
        return {str(p): offsets.get(p, 0) for p in self._plan.partitions}


def _read(plan: GeneratorPlan, part: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(part, Part):
        for span in part.ranges:
            yield from chunks(records(plan, span))
