"""Ranges of a topic that Spark's tasks read by themselves, with the client that checks use.

Spark's own source reads every record in Java, makes a row of it, and hands the rows to Python, which decodes them. That
takes more than half of a core's time for a record. A task that is Python's anyway fetches them itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_mzshare.connectors.base import Parts
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.records import no_garbage_collection
from airflow_provider_mzshare.connectors.spans import split
from airflow_provider_mzshare.core.positions import Position

AHEAD_PER_RECORD, AHEAD = 4, (64 << 10, 1 << 20)
"""Bytes: what lies behind a range is fetched for nothing, so little is fetched ahead of what was taken."""


@dataclass(frozen=True)
class _Span:
    partition: int
    lower: int
    upper: int

    def cut(self, lower: int, upper: int) -> _Span:
        return _Span(self.partition, lower, upper)


@dataclass(frozen=True, repr=False)
class PartReader:
    config: KafkaConfig
    topic: str

    def __call__(self, text: str) -> Iterator[pa.RecordBatch]:
        ranges = json.loads(text)
        lower = Position({partition: first for partition, first, _ in ranges})
        upper = Position({partition: end for partition, _, end in ranges})
        fetching = _fetching(upper.gap(lower) // len(ranges))
        with no_garbage_collection(), RecordReader(self.config, self.topic, fetching) as reader:
            yield from reader.read_range(lower, upper)


def _fetching(records: int) -> dict[str, int]:
    """For ranges of so many records in each partition."""
    least, most = AHEAD
    ahead = max(least, min(most, AHEAD_PER_RECORD * records))
    return {
        "max.partition.fetch.bytes": ahead,
        "queued.max.messages.kbytes": ahead >> 10,
        # When so much is there, it waits so long before it looks whether somebody took it; the default is a second.
        "fetch.queue.backoff.ms": 5,
    }


def parts_of(config: KafkaConfig, topic: str, lower: Position, upper: Position, tasks: int) -> Parts:
    """All of ``[lower, upper)``, in about ``tasks`` parts of as many offsets."""
    shares = split([_Span(int(name), lower[name], upper[name]) for name in upper if lower[name] < upper[name]], tasks)
    texts = [json.dumps([[each.partition, each.lower, each.upper] for each in share]) for share in shares]
    return Parts(tuple(texts), PartReader(config, topic))
