"""What waits for a journal's writer: messages in the order in which they came, bounded, each with who waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_provider_mzshare.storage.journal.rows import Messages

_MOMENT = 0.0002
"""Seconds. Long for a thread that only has to push again, and short beside a flush."""


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


class Answer:
    """What became of messages: told once, by one thread. Any number of threads wait for it.

    What ``concurrent.futures.Future`` is, without what makes that cost as much as all else of a push.
    """

    __slots__ = ("_error", "_found", "_is_told", "_lock")

    def __init__(self) -> None:
        self._found: Acknowledged | None = None
        self._error: BaseException | None = None
        self._is_told = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def done(self) -> bool:
        return self._is_told

    def set_result(self, found: Acknowledged) -> None:
        self._found = found
        self._tell()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._tell()

    def _tell(self) -> None:
        self._is_told = True
        self._lock.release()

    def result(self, timeout: float | None = None) -> Acknowledged:
        """Waits. Raises what came instead of it."""
        if (error := self.exception(timeout)) is not None:
            try:
                raise error
            finally:
                del error  # It refers to this frame, which must not refer to it.
        assert self._found is not None
        return self._found

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits. None if the messages are acknowledged."""
        if not self._is_told:
            if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
                raise TimeoutError(f"no answer within {timeout} s")
            self._lock.release()
        return self._error


@dataclass(eq=False, slots=True)
class Waiting:
    """:param follows: messages that must be acknowledged, or these are not written."""

    messages: Messages
    weight: int
    batch: BatchMark | None = None
    follows: Answer | None = None
    done: Answer = field(default_factory=Answer)


class WaitingLine:
    """For any number of threads that put and one that takes.

    :param limit: what may wait or be under way, by weight. Whoever puts more is held up until there is room; but what
        is larger by itself goes in alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._weight = limit, 0
        self._waiting: deque[Waiting] = deque()
        self._end: BaseException | None = None
        self._expected = 1
        """How many there were when the last ones were acknowledged: these, and those that waited already."""
        self._lock = threading.Lock()
        self._arrived, self._room = threading.Condition(self._lock), threading.Condition(self._lock)

    def put(self, one: Waiting) -> None:
        """Raises what the line was ended with."""
        with self._lock:
            while self._end is None and self._weight and self._weight + one.weight > self._limit:
                self._room.wait()
            if self._end is not None:
                raise self._end
            self._weight += one.weight
            self._waiting.append(one)
            if len(self._waiting) in (1, self._expected):
                self._arrived.notify()

    def take(self, limit: int) -> list[Waiting]:
        """All that wait, at least one and else up to ``limit`` by weight; none if the line was ended and is empty.

        Two of the same batch are not taken at once: the second one's turn comes when it is known about the first.
        """
        with self._lock:
            while not self._waiting and self._end is None:
                self._arrived.wait()
            self._gather(limit)
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

    def _gather(self, limit: int) -> None:
        """Give those who were acknowledged together the moment that they need to come back together: as long as they
        keep coming. Without it, half of them come while the other half is written, and are the next group for ever.
        """
        before = 0
        while before < len(self._waiting) < self._expected and self._weight < limit:
            before = len(self._waiting)
            self._arrived.wait(_MOMENT)

    def let_go(self, taken: Sequence[Waiting]) -> None:
        """What was taken is settled: there is room for more."""
        with self._lock:
            self._expected = len(taken) + len(self._waiting)
            self._weight -= sum(one.weight for one in taken)
            self._room.notify_all()

    def end(self, error: BaseException) -> None:
        """Nothing more may be put: that raises ``error``. What waits can still be taken."""
        with self._lock:
            if self._end is None:
                self._end = error
            self._arrived.notify_all()
            self._room.notify_all()

    def empty(self) -> list[Waiting]:
        """Take all that waits, to be refused."""
        with self._lock:
            left, self._waiting = list(self._waiting), deque()
            return left
