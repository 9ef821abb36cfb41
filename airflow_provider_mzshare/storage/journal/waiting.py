"""What waits for a journal's writer: messages in the order in which they came, bounded, each with who waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class BatchMark:
    """The id under which messages are sent, and the digest of what they are."""

    id: str
    digest: str


@dataclass(frozen=True)
class Acknowledged:
    """Messages that are durable and count, once."""

    partition: int
    first: int
    """The offset of the first of them."""
    end: int
    """The offset after the last of them."""
    is_repeated: bool = False
    """They had been taken before, under the same id of a batch."""

    @property
    def messages(self) -> int:
        return self.end - self.first


@dataclass(eq=False)
class Waiting:
    """:param follows: messages that must be acknowledged, or these are not written."""

    messages: pa.RecordBatch
    weight: int
    batch: BatchMark | None = None
    follows: Future[Acknowledged] | None = None
    done: Future[Acknowledged] = field(default_factory=Future)


class WaitingLine:
    """For any number of threads that put and one that takes.

    :param limit: what may wait or be under way, by weight. Whoever puts more is held up until there is room; but what
        is larger by itself goes in alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._weight = limit, 0
        self._waiting: deque[Waiting] = deque()
        self._end: BaseException | None = None
        self._changed = threading.Condition()

    def put(self, one: Waiting) -> None:
        """Raises what the line was ended with."""
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None or self._has_room(one))
            if self._end is not None:
                raise self._end
            self._weight += one.weight
            self._waiting.append(one)
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def _has_room(self, one: Waiting) -> bool:
        return self._weight == 0 or self._weight + one.weight <= self._limit

    def take(self, limit: int) -> list[Waiting]:
        """All that wait, at least one and else up to ``limit`` by weight; none if the line was ended and is empty.

        Two of the same batch are not taken at once: the second one's turn comes when it is known about the first.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._end is not None)
            taken: list[Waiting] = []
            ids: set[str] = set()
            weight = 0
            while self._waiting:
                one = self._waiting[0]
                is_twin = one.batch is not None and one.batch.id in ids
                if taken and (is_twin or weight + one.weight > limit):
                    break
                taken.append(self._waiting.popleft())
                weight += one.weight
                if one.batch is not None:
                    ids.add(one.batch.id)
            return taken

    def let_go(self, taken: Sequence[Waiting]) -> None:
        """What was taken is settled: there is room for more."""
        with self._changed:
            self._weight -= sum(one.weight for one in taken)
            self._changed.notify_all()

    def end(self, error: BaseException) -> None:
        """Nothing more may be put: that raises ``error``. What waits can still be taken."""
        with self._changed:
            if self._end is None:
                self._end = error
            self._changed.notify_all()

    def empty(self) -> list[Waiting]:
        """Take all that waits, to be refused."""
        with self._changed:
            left, self._waiting = list(self._waiting), deque()
            return left
