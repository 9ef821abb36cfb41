"""Parts of a journal's segments as a Python data source of Spark: exact ranges, and what streams have in common.

Runs in Spark's Python processes. The one that plans a stream has no catalog to ask: the app beside it writes down what
is announced (``announced.py``), and the stream goes as far as that file says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from airflow_provider_mzshare.connectors.records import CHUNK_DDL, chunks
from airflow_provider_mzshare.connectors.spans import split
from airflow_provider_mzshare.journal.parts import Part

Batches = Callable[[Iterable[Part]], Iterator[pa.RecordBatch]]
"""What the messages of some parts are for the pass."""


class SegmentSource(DataSource):
    """Options of a range: ``parts`` and ``tasks``. A subclass says its ``name``, ``batches`` and ``streamReader``."""

    batches: Batches

    def schema(self) -> str:
        return CHUNK_DDL

    def reader(self, schema: StructType) -> RangeReader:
        parts = [Part.from_plain(each) for each in json.loads(self.options["parts"])]
        return RangeReader(split(parts, int(self.options["tasks"])), type(self).batches)


class Share(InputPartition):
    """What one task reads."""

    def __init__(self, parts: Sequence[Part]) -> None:
        super().__init__(None)
        self.parts = tuple(parts)


class RangeReader(DataSourceReader):
    def __init__(self, shares: Sequence[Sequence[Part]], batches: Batches) -> None:
        self._shares, self._batches = shares, batches

    def partitions(self) -> Sequence[InputPartition]:
        return [Share(parts) for parts in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_share(partition, self._batches)


def shares(parts: Sequence[Part]) -> list[Share]:
    """Of a batch of a stream."""
    return [Share(each) for each in split(parts)]


def read_share(share: InputPartition, batches: Batches) -> Iterator[pa.RecordBatch]:
    if isinstance(share, Share):
        yield from chunks(batches(share.parts))
