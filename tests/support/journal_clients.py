"""The clients of the model of journals: what they send, what they are told, and what must be true of it in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tests.support.journal_world import Violation


@dataclass(eq=False)
class Request:
    """Messages of a client. One with an id is sent again until it is answered, maybe while it is being written."""

    messages: tuple[int, ...]
    batch: str | None
    sent: int
    outcome: str = "sent"
    at: tuple[int, int] | None = None
    """Where it is, as it was told: partition and offset."""
    answered: int = 0

    def __len__(self) -> int:
        return len(self.messages)


class Clients:
    def __init__(self, random: Random) -> None:
        self.random, self.now = random, 0
        self.waiting: list[Request] = []
        self.requests: list[Request] = []
        self.counts: Counter[str] = Counter()
        self.lost: dict[int, int] = {}
        """Partitions of which an old copy of the catalog has lost something: from which offset on."""

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self) -> None:
        first = sum(map(len, self.requests)) + 1
        messages = tuple(range(first, first + self.random.randint(1, 3)))
        batch = f"b{len(self.requests)}" if self.random.random() < 0.6 else None
        used = [request.batch for request in self.requests if request.batch]
        if batch and used and self.random.random() < 0.1:
            batch = self.random.choice(used)  # Somebody's mistake: another batch has this id.
        request = Request(messages, batch, self.now)
        self.requests.append(request)
        self.waiting.append(request)

    def send_again(self, group: Sequence[Request]) -> None:
        """A client did not want to wait for its answer any longer."""
        self.waiting += [request for request in group if request.batch and request not in self.waiting]

    def unanswered(self, request: Request) -> None:
        if request.outcome != "sent":
            return
        if request.batch:
            self.waiting.append(request)
        else:
            request.outcome = "unclear"

    def acknowledge(self, request: Request, partition: int, first: int) -> None:
        if request.outcome == "sent":
            request.outcome, request.at, request.answered = "acknowledged", (partition, first), self.now
            self.counts["acknowledged"] += 1

    def refuse(self, request: Request) -> None:
        if request.outcome == "sent":
            request.outcome = "refused"
            self.counts["refused"] += 1

    def take(self) -> list[Request]:
        """Some that wait; of two with one id, one after the other."""
        taken: list[Request] = []
        for request in self.random.sample(self.waiting, min(len(self.waiting), self.random.randint(0, 3))):
            if request.outcome != "sent":
                self.waiting.remove(request)
            elif request.batch is None or request.batch not in [one.batch for one in taken]:
                self.waiting.remove(request)
                taken.append(request)
        return taken

    # ── in the end ────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, logs: Mapping[int, Sequence[int]]) -> None:
        """:param logs: by partition, all messages that are announced."""
        places: dict[int, list[tuple[int, int]]] = {}
        for partition, log in logs.items():
            for offset, message in enumerate(log):
                places.setdefault(message, []).append((partition, offset))
        for request in self.requests:
            self._check_request(request, [places.get(message, []) for message in request.messages])
        self._check_order()

    def _check_request(self, request: Request, places: Sequence[Sequence[tuple[int, int]]]) -> None:
        if any(len(found) > 1 for found in places):
            raise Violation(f"{request} is there twice: {places}")
        if request.outcome == "refused" and any(places):
            raise Violation(f"{request} was refused, and is at {places}")
        if request.outcome != "acknowledged" or request.at is None or self._is_lost(request):
            return
        partition, first = request.at
        if [tuple(found) for found in places] != [((partition, first + i),) for i in range(len(request))]:
            raise Violation(f"{request} was acknowledged, and is at {places}")

    def _is_lost(self, request: Request) -> bool:
        partition, first = request.at or (0, 0)
        return first >= self.lost.get(partition, first + 1)

    def _check_order(self) -> None:
        """What was sent after an answer is behind what was answered."""
        answered = [one for one in self.requests if one.outcome == "acknowledged" and not self._is_lost(one)]
        for one in answered:
            for other in answered:
                if one.at and other.at and one.at[0] == other.at[0] and one.answered < other.sent and one.at > other.at:
                    raise Violation(f"{one} was answered before {other} was sent")
