"""The stream of a folder's lines, as a Python data source of Spark. Runs in Spark's Python processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from numbered_lines.lines import ranges, records

NAME = "numbered_lines"
DDL = "key binary, value binary, partition int, offset bigint, timestamp timestamp"


class LinesSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: StructType) -> LinesStream:
        start = {int(p): int(at) for p, at in json.loads(self.options["start"]).items()}
        return LinesStream(self.options["folder"], start, int(self.options["most"]))


class Span(InputPartition):
    def __init__(self, partition: int, lower: int, upper: int) -> None:
        super().__init__(None)
        self.partition, self.lower, self.upper = partition, lower, upper


class LinesStream(DataSourceStreamReader):
    """:param most: lines of each file at once."""

    def __init__(self, folder: str, start: dict[int, int], most: int) -> None:
        self._folder, self._start, self._at, self._most = folder, start, dict(start), most

    def initialOffset(self) -> dict[str, int]:
        """Spark may ask after it has asked for the latest."""
        return {str(p): self._start.get(p, 0) for p in ranges(self._folder)}

    def latestOffset(self) -> dict[str, int]:
        for partition, (begin, end) in ranges(self._folder).items():
            at = max(self._at.get(partition, 0), 0)
            self._at[partition] = max(at, min(end, max(at, begin) + self._most))
        return {str(p): at for p, at in self._at.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        spans = [Span(int(p), start.get(p, 0), upper) for p, upper in end.items()]
        return [span for span in spans if span.lower < span.upper] or [Span(next(iter(map(int, end)), 0), 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        return records(self._folder, partition.partition, partition.lower, partition.upper)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept upstream."""
