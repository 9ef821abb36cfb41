"""Reads exactly a range of a topic apart from Spark: for checks, and where Spark cannot or would take long.

Commits nothing anywhere.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import ConfigResource

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS
from airflow_provider_mzshare.connectors.kafka.clients import Clients, Deadline
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.record_times import from_millis
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import NotAuthorized, UpstreamChanged

SILENCE_SECONDS = 60.0
"""How long a broker may give nothing at all before the read is given up."""
_POLL_SECONDS = 0.05
"""A poll waits for this long or for all it may bring, even when the end is there already."""
MESSAGES = 10_000
MAX_ANSWER_BYTES = 2**31 - 1
_OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


class RecordReader(Clients):
    """One consumer of one topic that is in no group. Use it from one thread, as a context."""

    def __init__(self, config: KafkaConfig, topic: str, more: Mapping[str, Any] = {}) -> None:
        super().__init__(config, topic)
        self._reader: Consumer = self._make(
            Consumer,
            {
                # Demanded by the constructor. Partitions are assigned and nothing is committed: no broker sees it.
                "group.id": f"mzshare-read-{secrets.token_hex(6)}",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                # The next range waits for the answer to the last fetch of this one.
                "fetch.wait.max.ms": 10,
                # A single batch may be as large as a broker's limits allow; the default refuses one of 100 MB.
                "receive.message.max.bytes": MAX_ANSWER_BYTES,
                **more,
            },
        )

    def read(self, lane: int, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        """The committed records of ``[lower, upper)`` of a partition in order, as batches of ``INPUT_SCHEMA``."""
        return self.read_range(Position({lane: lower}), Position({lane: upper}))

    def read_range(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch]:
        """The committed records of ``[lower, upper)``, those of a partition in order; a batch may be of several.

        The range of a partition ends at its last offset, or at a record or an end of the log at or past ``upper``. The
        broker answers in order: offsets before that were not given are no records (control records, aborted, holes).
        """
        left = {int(partition): upper[partition] for partition in upper if lower[partition] < upper[partition]}
        if not left:
            return
        self._reader.assign([TopicPartition(self._topic, partition, lower[partition]) for partition in left])
        try:
            expected = upper.gap(lower)
            while left:
                taken = self._take(left, min(MESSAGES, max(expected, 1)))
                expected -= len(taken)
                if taken:
                    yield batch_of(taken)
        finally:
            self._reader.unassign()

    def _take(self, left: dict[int, int], most: int) -> Sequence[Any]:
        """The next records. Partitions whose range has ended are removed from ``left``. Waits for one of both.

        :param most: no more than is still expected: a poll waits until it has so many, or its time is up.
        """
        begun, deadline = time.monotonic(), Deadline(SILENCE_SECONDS)
        while True:
            messages = self._reader.consume(most, _POLL_SECONDS)
            taken, ended = _all_wanted(messages, left) or self._sorted(messages, left)
            for partition in ended:
                left.pop(partition, None)
            if taken or ended:
                self._troubles.forget()
                return taken
            if not deadline.left or self._troubles.are_final(begun):
                raise self._unreachable()

    def _sorted(self, messages: Sequence[Any], left: Mapping[int, int]) -> tuple[Sequence[Any], set[int]]:
        """Those of the range, one by one, and the partitions whose range has ended."""
        taken, ended = [], set()
        for message in messages:
            upper = left.get(message.partition())
            if message.error() is None:
                if upper is not None and message.offset() < upper:
                    taken.append(message)
                if upper is not None and message.offset() + 1 >= upper:
                    ended.add(message.partition())
            elif self._is_end(message, upper):
                ended.add(message.partition())
        return taken, ended

    def _is_end(self, message: Any, upper: int | None) -> bool:
        if message.error().code() == KafkaError._PARTITION_EOF:
            return upper is not None and bool(message.offset() >= upper)
        self._raise_for(message)
        return False

    def _raise_for(self, message: Any) -> None:
        """Raise what an error means; nothing where the broker may come back."""
        error = message.error()
        if error.code() in _OUT_OF_RANGE:
            raise UpstreamChanged(
                "history_gone",
                f"topic {self._topic!r}, partition {message.partition()}: its next offset is not there any more: "
                f"{error.str()}",
            )
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self.denied("READ")
        # Errors without a topic are of the group, which is not used, or of a broker that may come back.
        if message.topic() is not None and not error.retriable():
            raise self._explain(error)

    def cleanup_policy(self) -> str | None:
        """``delete``, ``compact`` or both; None where the right to ask is missing."""
        deadline = Deadline(REQUEST_SECONDS)
        topic = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
        asked = self.admin.describe_configs([topic], request_timeout=deadline.request)
        try:
            (found,) = self.settle(list(asked.values()), deadline)
        except NotAuthorized:
            return None
        return str(found["cleanup.policy"].value)

    def excuse(self) -> str | None:
        policy = self.cleanup_policy()
        if policy is None:
            return "and the connection has no right to ask whether the topic is compacted"
        return "because the topic is compacted" if "compact" in policy else None

    def close(self) -> None:
        super().close()
        self._reader.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _all_wanted(messages: Sequence[Any], left: Mapping[int, int]) -> tuple[Sequence[Any], set[int]] | None:
    """As nearly always: all are records of the range. None if not, or if there are none.

    Those of a partition are in order, so its last one tells for all.
    """
    if not messages or any(map(Message.error, messages)):
        return None
    last: dict[Any, Any] = dict(zip(map(Message.partition, messages), messages, strict=True))
    if any(message.offset() >= left.get(partition, 0) for partition, message in last.items()):
        return None
    return messages, {partition for partition, message in last.items() if message.offset() + 1 >= left[partition]}


def batch_of(messages: Sequence[Any]) -> pa.RecordBatch:
    # Called this way, a method costs half: there are many records.
    columns = [
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(list(map(Message.partition, messages)), pa.int32()),
        pa.array(list(map(Message.offset, messages)), pa.int64()),
        from_millis([time for _, time in map(Message.timestamp, messages)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA)
