"""Reads small ranges of a topic that follow each other, by one client that stays where it is.

Everything comes from the broker once: what was fetched past a range is kept for the next one. Commits nothing anywhere.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, TopicPartition

from airflow_provider_mzshare.connectors.kafka.clients import Deadline
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.records import MESSAGES, SILENCE_SECONDS, RecordReader, batch_of
from airflow_provider_mzshare.core.positions import Position

FETCH_WAIT_MS = 100
"""While it has an assignment, it asks the broker so often for what nobody has written yet. A range that ends in offsets
without a record may wait so long for the proof of its end."""
AHEAD_BYTES = 8 << 20
"""What is fetched ahead while nobody asks. It is given away when a range is not read here after all."""
_AHEAD = {
    "fetch.wait.max.ms": FETCH_WAIT_MS,
    "fetch.max.bytes": AHEAD_BYTES,
    "queued.max.messages.kbytes": AHEAD_BYTES >> 10,
    # When so much is there, it waits so long before it looks whether somebody took it; the default is a second.
    "fetch.queue.backoff.ms": 10,
}
_WAIT_SECONDS = 0.05


class Tail(RecordReader):
    """Use it from one thread at a time."""

    def __init__(self, config: KafkaConfig, topic: str) -> None:
        super().__init__(config, topic, _AHEAD)
        self._lanes: dict[int, _Lane] = {}
        """The partitions that are assigned."""

    def read_small(self, lower: Position, upper: Position, most: int) -> Iterator[pa.RecordBatch] | None:
        """The committed records of ``[lower, upper)``, those of a partition in order; None if they have more bytes of
        keys and values than ``most``. After any error the next read begins anew.
        """
        if lower == upper:
            return iter(())
        try:
            self._stand(lower, upper)
            if self._fetch(upper, most):
                return self._hand_out(upper)
        except BaseException:
            self.let_go()
            raise
        self.let_go()
        return None

    def let_go(self) -> None:
        """Fetch nothing more until the next read: somebody else reads on."""
        if self._lanes:
            self._lanes = {}
            self._reader.unassign()

    def _stand(self, lower: Position, upper: Position) -> None:
        """Partitions are assigned where the range begins, unless it begins where the last one ended."""
        wanted = {int(partition): lower[partition] for partition in upper}
        if any(number not in self._lanes or self._lanes[number].at != at for number, at in wanted.items()):
            self._lanes = {number: _Lane(at) for number, at in wanted.items()}
            self._reader.assign([TopicPartition(self._topic, number, at) for number, at in wanted.items()])

    def _fetch(self, upper: Position, most: int) -> bool:
        """Until the range is complete, or more than ``most`` bytes are held of it, or of what is behind it."""
        left = {number for number, lane in self._lanes.items() if lane.reached < upper[number]}
        held = [sum(lane.held(upper[number], past=past) for number, lane in self._lanes.items()) for past in (0, 1)]
        silence, begun = Deadline(SILENCE_SECONDS), time.monotonic()
        while left and max(held) <= most:
            # What is there without waiting; a wait for many would last until its time is up.
            messages = self._reader.consume(MESSAGES, 0) or self._reader.consume(1, _WAIT_SECONDS)
            for message in messages:
                self._keep(message, left, upper, held)
            if messages and any(message.topic() is not None for message in messages):
                self._troubles.forget()
                silence, begun = Deadline(SILENCE_SECONDS), time.monotonic()
            elif not silence.left or self._troubles.are_final(begun):
                raise self._unreachable()
            left = {number for number in left if self._lanes[number].reached < upper[number]}
        return max(held) <= most

    def _keep(self, message: Any, left: set[int], upper: Position, held: list[int]) -> None:
        number = message.partition()
        lane = self._lanes.get(number)
        if message.error() is not None:
            self._note(message, lane, asked=number in left)
        elif lane is not None and message.offset() >= lane.reached:
            lane.messages.append(message)
            lane.reached = message.offset() + 1
            held[message.offset() >= upper[number]] += _bytes(message)

    def _note(self, message: Any, lane: _Lane | None, *, asked: bool) -> None:
        """The end of a partition, or an error. That of a partition of which nothing is asked now comes again when it is
        asked: the next read begins anew."""
        if message.error().code() == KafkaError._PARTITION_EOF:
            if lane is not None:
                lane.reached = max(lane.reached, message.offset())
        elif asked or message.topic() is None:
            self._raise_for(message)
        elif lane is not None:
            lane.at = _NOWHERE

    def _hand_out(self, upper: Position) -> Iterator[pa.RecordBatch]:
        taken: list[Any] = []
        for number, lane in self._lanes.items():
            taken += lane.hand_out(upper[number])
        parts = iter(taken)
        return iter([batch_of(part) for part in iter(lambda: list(islice(parts, MESSAGES)), [])])


_NOWHERE = -1


class _Lane:
    """A partition: what was fetched of it and not handed out.

    ``at`` is where the next range has to begin. Before ``reached`` nothing more comes: the broker answers in order, so
    offsets before it that were not given are no records (control records, aborted, holes).
    """

    def __init__(self, at: int) -> None:
        self.at = self.reached = at
        self.messages: deque[Any] = deque()

    def held(self, upper: int, *, past: int) -> int:
        """Bytes before ``upper``, or past it."""
        return sum(_bytes(message) for message in self.messages if (message.offset() >= upper) == past)

    def hand_out(self, upper: int) -> list[Any]:
        taken = []
        while self.messages and self.messages[0].offset() < upper:
            taken.append(self.messages.popleft())
        if self.at != _NOWHERE:
            self.at = max(self.at, upper)
        return taken


def _bytes(message: Any) -> int:
    """Of its key and its value, which is what its length counts."""
    return len(message) + len(message.key() or b"")
