"""A look at a few records of a topic, to tell how large they are. Bounded in time and bytes; it promises nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_provider_mzshare.core.positions import Position

LOOK_SECONDS = 1.0
RECORDS_PER_LOOK = 10
MAX_PARTITIONS = 4
"""How many partitions are looked at. More tell little, and each look fetches a batch: their mean stands for all."""
POINTS = (0.0, 0.5, 1.0)
"""Where to look between the two ends of a range: records may have grown over time."""

LIMITS: Mapping[str, int] = {
    "fetch.message.max.bytes": 65_536,
    "queued.max.messages.kbytes": 1_024,
    "queued.min.messages": RECORDS_PER_LOOK,
    "fetch.error.backoff.ms": 0,
    "fetch.queue.backoff.ms": 1,
}
"""For the consumer: what is fetched ahead and thrown away must stay small, and nobody waits for the next fetch."""

_SLICE = 0.05


def mean_sizes(
    consumer: Consumer, topic: str, lower: Position, upper: Position, *, seconds: float = LOOK_SECONDS
) -> dict[str, float]:
    """Mean bytes of a record of ``[lower, upper)``, per partition looked at; none seen there: not in the answer."""
    places = _spread([partition for partition in upper if upper[partition] > lower[partition]])
    sizes: dict[str, list[int]] = defaultdict(list)
    begun = time.monotonic()
    try:
        for number, point in enumerate(POINTS, start=1):
            begins = {p: _begin(lower[p], upper[p], point) for p in places}
            for message in _look(consumer, topic, begins, begun + seconds * number / len(POINTS)):
                partition = str(message.partition())
                if (message.offset() or 0) < upper[partition]:
                    sizes[partition].append(size(message))
    except KafkaException:
        pass  # it is an estimate: the records seen so far are enough
    return {partition: sum(seen) / len(seen) for partition, seen in sizes.items()}


def size(message: Message) -> int:
    """Key and value, not compressed. Headers are left out: asked for one whose name is no UTF-8, the client crashes."""
    return len(message.key() or b"") + len(message.value() or b"")


def _spread(partitions: Sequence[str]) -> list[str]:
    step = max(1, -(-len(partitions) // MAX_PARTITIONS))
    return list(partitions[::step])


def _begin(lower: int, upper: int, point: float) -> int:
    return max(lower, min(lower + int((upper - lower) * point), upper - RECORDS_PER_LOOK))


def _look(consumer: Consumer, topic: str, begins: Mapping[str, int], until: float) -> list[Message]:
    """The next few records from each place on."""
    found: list[Message] = []
    missing = {int(partition): RECORDS_PER_LOOK for partition in begins}
    consumer.assign([TopicPartition(topic, int(partition), offset) for partition, offset in begins.items()])
    while missing and time.monotonic() < until:
        for message in consumer.consume(len(missing) * RECORDS_PER_LOOK, _SLICE):
            error, partition = message.error(), message.partition()
            if error is None and partition in missing:
                found.append(message)
                missing[partition] -= 1
            if partition in missing and (not missing[partition] or _ends(error)):
                del missing[partition]
                # What was fetched ahead of it would keep the others waiting.
                consumer.incremental_unassign([TopicPartition(topic, partition)])
    consumer.unassign()
    return found


def _ends(error: KafkaError | None) -> bool:
    return error is not None and error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
