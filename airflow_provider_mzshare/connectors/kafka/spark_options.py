"""Options for Spark's Kafka source, as plain values; reads nothing and never imports pyspark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.offset_log import source_line
from airflow_provider_mzshare.core.positions import Position

FORMAT = "kafka"

# Whatever their group id, Spark's readers assign their partitions and commit nothing: no group appears on the broker.
FETCH_WAIT_MS = 0
"""Everything that is asked for is there already. After every answer Spark asks where the partition begins and ends, on
the connection on which the reader's next fetch waits, by default for half a second, for what nobody has written yet."""
MAX_FETCH_WAIT_MS = 100
"""The longest wait that a connection may set: every partition of a tick waits so long."""
STREAM_BYTES = 64 << 20
STREAM_FETCH_BYTES = 128 << 10
"""Bytes that readers of a stream fetch ahead: the first for all partitions together, the second for each at least."""

FETCH_BYTES = (32 << 10, 1 << 20)
"""The least and the most that a reader of a range asks for at once; the most is Kafka's own default."""
FETCH_BYTES_PER_RECORD = 8

_ALWAYS = {"kafka.isolation.level": "read_committed", "failOnDataLoss": "true", "includeHeaders": "false"}


def stream_options(
    config: KafkaConfig, topic: str, start: Position, partitions: Sequence[int], max_records: int
) -> dict[str, str]:
    """A stream from ``start`` on; ``partitions`` are all the topic has now (Spark refuses a start that omits one).

    A partition without a position starts at offset 0 and not at "earliest": should its log begin later, Spark then
    fails instead of stepping over what is gone.
    """
    return {
        "kafka.max.partition.fetch.bytes": str(_stream_fetch_bytes(len(partitions))),
        **_connection(config),
        **_ALWAYS,
        "subscribe": topic,
        "startingOffsets": _offsets(topic, {partition: start[partition] for partition in partitions}),
        "maxOffsetsPerTrigger": str(max_records),
    }


def batch_options(
    config: KafkaConfig, topic: str, lower: Position, upper: Position, tasks: int | None = None, *, readers: str
) -> dict[str, str]:
    """Exactly ``[lower, upper)``; only the partitions that hold something of it, whatever the topic has by now.

    :param tasks: split long partitions so that there are about as many readers.
    :param readers: a name. Reads of the same name use the same readers, which go on where they left off, with what they
        have fetched ahead; a new one takes as long as many small reads.
    """
    if not lower < upper:
        raise ValueError(f"there is nothing to read in [{lower}, {upper})")
    sizes = {int(p): upper[p] - lower[p] for p in upper if upper[p] > lower[p]}
    fetch_bytes = _fetch_bytes(sizes, tasks)
    return {
        "kafka.max.partition.fetch.bytes": str(fetch_bytes),
        **_connection(config),
        **_ALWAYS,
        # Spark keeps readers by group id, and those of one must have the same settings.
        "kafka.group.id": f"{readers}-{fetch_bytes}",
        **({"minPartitions": str(tasks)} if tasks else {}),
        "assign": json.dumps({topic: list(sizes)}),
        "startingOffsets": _offsets(topic, {partition: lower[partition] for partition in sizes}),
        "endingOffsets": _offsets(topic, {partition: upper[partition] for partition in sizes}),
    }


def _fetch_bytes(sizes: Mapping[int, int], tasks: int | None) -> int:
    """A reader fetches ahead and drops what lies behind its end: this should be little, compared with what it needs.

    It must not be too little: the broker cuts an answer off inside a batch of records, and sends that batch again.
    """
    longest = min(max(sizes.values()), -(-sum(sizes.values()) // (tasks or 1)))
    least, most = FETCH_BYTES
    wanted = 1 << (longest * FETCH_BYTES_PER_RECORD - 1).bit_length()  # few sizes: each has readers of its own
    return max(least, min(most, wanted))


def _stream_fetch_bytes(partitions: int) -> int:
    """Kafka's own default, unless the topic is so wide that its readers would fill the memory."""
    return max(STREAM_FETCH_BYTES, min(FETCH_BYTES[1], STREAM_BYTES // max(1, partitions)))


def _connection(config: KafkaConfig) -> dict[str, str]:
    options = {"kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS), **config.spark()}
    wait = min(int(options["kafka.fetch.max.wait.ms"]), MAX_FETCH_WAIT_MS)
    return {**options, "kafka.fetch.max.wait.ms": str(wait)}


def parse_offset_log(text: str, topic: str) -> Position:
    """The end of a micro-batch, from Spark's own ``<checkpoint>/offsets/<batch>``."""
    ends = source_line(text)
    if not isinstance(ends, dict) or list(ends) != [topic] or not isinstance(ends[topic], dict):
        raise ValueError(f"the offset log is not of topic {topic!r}")
    return Position(ends[topic])


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in offsets.items()}})
