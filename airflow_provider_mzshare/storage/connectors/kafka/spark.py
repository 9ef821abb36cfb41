"""Options for Spark's Kafka source, as plain values; reads nothing and never imports pyspark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from airflow_provider_mzshare.storage.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.types.positions import Position

FORMAT = "kafka"

# No kafka.group.id: Spark's readers assign their partitions and commit nothing, so no group appears on the broker.
_ALWAYS = {"kafka.isolation.level": "read_committed", "failOnDataLoss": "true", "includeHeaders": "false"}


def stream_options(
    config: KafkaConfig, topic: str, start: Position, partitions: Sequence[int], max_records: int
) -> dict[str, str]:
    """A stream from ``start`` on; ``partitions`` are all the topic has now (Spark refuses a start that omits one).

    A partition without a position starts at offset 0 and not at "earliest": should its log begin later, Spark then
    fails instead of stepping over what is gone.
    """
    return {
        **config.spark(),
        **_ALWAYS,
        "subscribe": topic,
        "startingOffsets": _offsets(topic, {partition: start[partition] for partition in partitions}),
        "maxOffsetsPerTrigger": str(max_records),
    }


def batch_options(config: KafkaConfig, topic: str, lower: Position, upper: Position) -> dict[str, str]:
    """Exactly ``[lower, upper)``; only the partitions that hold something of it, whatever the topic has by now."""
    if not lower < upper:
        raise ValueError(f"there is nothing to read in [{lower}, {upper})")
    partitions = [int(partition) for partition in upper if upper[partition] > lower[partition]]
    return {
        **config.spark(),
        **_ALWAYS,
        "assign": json.dumps({topic: partitions}),
        "startingOffsets": _offsets(topic, {partition: lower[partition] for partition in partitions}),
        "endingOffsets": _offsets(topic, {partition: upper[partition] for partition in partitions}),
    }


def parse_offset_log(text: str, topic: str) -> Position:
    """The end of a micro-batch, from Spark's own ``<checkpoint>/offsets/<batch>``: version, metadata, one source."""
    lines = text.strip().splitlines()
    if len(lines) != 3 or lines[0] != "v1":
        raise ValueError(f"not an offset log of one source: {len(lines)} lines")
    ends = json.loads(lines[2])
    if not isinstance(ends, dict) or list(ends) != [topic] or not isinstance(ends[topic], dict):
        raise ValueError(f"the offset log is not of topic {topic!r}")
    return Position(ends[topic])


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in offsets.items()}})
