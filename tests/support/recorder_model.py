"""Recorders of a database's changes, without files or a database: chance says whose step is next.

The upstream has transactions with positions. A recorder claims the journal's partition, begins at the last boundary and
writes down what it is told. It may die or lose its connection in the middle of a transaction, or be a zombie; answers
get lost. Ticks and backfills read ranges that end at boundaries, and must see each transaction whole, once, in order.
The rules are the real ones (``core/journal``); a mutant leaves one of them out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal import positions, rules
from airflow_provider_mzshare.core.journal.retention import may_go_below
from airflow_provider_mzshare.core.journal.rules import AnnouncedOtherwise, BadAnnouncement, JournalBehind
from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import Fenced, LeaseTaken
from tests.support import journal_world
from tests.support.journal_world import Catalog, Disk, Name, Violation, checksum_of

STEPS = 400
LONGEST = 5
"""Messages of a segment, more or less."""
Steps = Generator[None, None, None]


class Mutant(Enum):
    NONE = "none"
    TAIL_COUNTS = "what an epoch announced beyond its last boundary counts, whatever came later"
    END_OF_SEGMENT = "a segment counts up to the boundary that it carries itself, and not to its epoch's last one"
    BEFORE_CLAIM = "a recorder looks up where to begin before it has claimed the partition"
    SAME_EPOCH = "a recorder that lost its connection goes on in its epoch"
    IDLE_WHILE_OPEN = "the server's idle end is taken for a boundary in the middle of a transaction"
    NOT_CARRIED = "a new segment does not carry the last boundary"
    CONFIRMED_EARLY = "the upstream may forget what was received, and not only what was committed"
    SKIPPED_UNSEEN = "nobody looks whether the upstream has forgotten what a recorder begins with"
    NO_EPOCH = "an announcement is not compared with the lease"
    CUT_ANYWHERE = "a tick ends where the announced messages end"
    KEPT_TOO_LITTLE = "a segment goes as soon as its boundary is not needed any more"


@dataclass(frozen=True)
class Transaction:
    position: int
    end: int
    messages: tuple[int, ...]


@dataclass
class Upstream:
    random: random.Random
    transactions: list[Transaction] = field(default_factory=list)
    end: int = 100
    confirmed: int = 100
    position_of: dict[int, int] = field(default_factory=dict)

    def grow(self) -> None:
        position = self.end + self.random.choice((0, 0, 3))
        if self.random.random() < 0.3:
            self.end = position + 2  # Of something else in the same log.
            return
        count = self.random.choice((1, 1, 2, 3, 9))
        first = len(self.position_of)
        messages = tuple(range(first, first + count))
        self.position_of |= dict.fromkeys(messages, position)
        self.end = position + self.random.randint(1, 4)
        self.transactions.append(Transaction(position, self.end, messages))

    def within(self, lower: int, upper: int) -> list[int]:
        return [m for t in self.transactions if lower <= t.position < upper for m in t.messages]

    def tell(self, begin: int) -> Iterator[tuple[str, int]]:
        """Without an end. Begun below what is confirmed, it begins there instead, and says nothing about it."""
        at, number, begin = 0, 0, max(begin, self.confirmed)
        while True:
            if number == len(self.transactions):
                at = self.end
                yield "idle", at
                continue
            one = self.transactions[number]
            number += 1
            if one.position < begin:
                continue
            for message in one.messages:
                yield "message", message
                if self.random.random() < 0.1:
                    yield "idle", one.end
            yield "end", one.end


@dataclass(eq=False)
class Recorder:
    steps: Steps = field(default_factory=lambda: (_ for _ in ()))
    frozen: bool = False


class Stalled(Exception):
    """The upstream has forgotten what was not read."""


@dataclass
class Mine:
    holder: Holder
    end: int
    boundary: int | None
    segment: Segment | None = None
    content: list[int] = field(default_factory=list)
    number: int = 0
    is_open: bool = False
    """A transaction's end was not told yet."""


class Model:
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        self.random, self.mutant = random.Random(seed), mutant
        world = journal_world.Mutant.NO_EPOCH if mutant is Mutant.NO_EPOCH else journal_world.Mutant.NONE
        self.disk, self.catalog = Disk(self.random), Catalog((0,), world)
        self.upstream = Upstream(self.random)
        self.recorders: list[Recorder] = []
        self.uppers = [100]
        """Where ticks ended. The last one is committed."""
        self.needed = 100
        """By a backfill."""
        self.counts: Counter[str] = Counter()
        self.strangers, self.is_stalled = self.random.random() < 0.1, False
        """Somebody else may tell the upstream what to forget: then nothing is skipped, the source stands still."""

    def run(self) -> None:
        for _ in range(STEPS):
            self._event()
        self.recorders.clear()
        self._finish()

    def _event(self) -> None:
        chance = self.random.random()
        if chance < 0.62:
            self._step()
        elif chance < 0.74:
            self.upstream.grow()
        elif chance < 0.84:
            self._tick()
        elif chance < 0.90:
            self._read_again()
        elif chance < 0.94 and len(self.recorders) < 3:
            one = Recorder()
            one.steps = self._record()
            self.recorders.append(one)
        elif chance < 0.96 and self.recorders:
            one = self.random.choice(self.recorders)
            one.frozen = not one.frozen
        elif chance < 0.98 and self.recorders:
            self.recorders.remove(self.random.choice(self.recorders))
        elif chance < 0.983:
            self.recorders.clear()
            self.disk.cut_power()
        elif chance < 0.985 and self.strangers:
            self.upstream.confirmed = self.upstream.end
        else:
            self._trim()

    def _step(self) -> None:
        if awake := [one for one in self.recorders if not one.frozen]:
            one = self.random.choice(awake)
            try:
                next(one.steps)
            except StopIteration:
                self.recorders.remove(one)

    def _finish(self) -> None:
        """One more recorder, without mishaps: everything arrives."""
        steps = self._record(mishaps=False)
        for _ in range(400):
            with suppress(StopIteration):
                next(steps)
        self._tick()
        if self.is_stalled:
            return
        if self.uppers[-1] < self.upstream.end:
            raise Violation(f"nothing is read beyond {self.uppers[-1]}, and the upstream ends at {self.upstream.end}")
        self._compare(100 if not self.catalog.states[0].begin else self.uppers[-2], self.uppers[-1])

    # ── recorders ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _record(self, *, mishaps: bool = True) -> Steps:
        job = JobId(f"job-{self.random.random()}")
        try:
            while True:
                yield from self._connect(job, mishaps)
                self.counts["reconnected"] += 1
        except Fenced:
            self.counts["fenced"] += 1
        except (LeaseTaken, Stalled):
            pass
        except (BadAnnouncement, JournalBehind, AnnouncedOtherwise) as error:
            raise Violation(str(error)) from error

    def _connect(self, job: JobId, mishaps: bool) -> Steps:
        seen = self.catalog.states[0]
        yield
        holder = self.catalog.claim(0, job, self.catalog.states[0].lease)
        yield
        now = self.catalog.states[0]
        begin = (seen if self.mutant is Mutant.BEFORE_CLAIM else now).segment
        mine = Mine(holder, now.end, begin.boundary if begin else None)
        told = self._open(mine)
        while not mishaps or self.random.random() < 0.96:
            yield
            yield from self._put(mine, *self._group(mine, told))
            if mine.boundary is not None:
                self._confirm(mine)
            if self.mutant is Mutant.SAME_EPOCH and mishaps and self.random.random() < 0.1:
                told, mine.is_open = self._open(mine), False

    def _open(self, mine: Mine) -> Iterator[tuple[str, int]]:
        begin = 100 if mine.boundary is None else mine.boundary
        if self.upstream.confirmed > begin and self.mutant is not Mutant.SKIPPED_UNSEEN:
            if self.strangers:
                self.is_stalled = True
                raise Stalled
            raise Violation(
                f"the upstream has forgotten what is below {self.upstream.confirmed}, and {begin} is needed"
            )
        return self.upstream.tell(begin)

    def _group(self, mine: Mine, told: Iterator[tuple[str, int]]) -> tuple[list[int], int | None]:
        messages: list[int] = []
        boundary: int | None = None
        for _ in range(self.random.choice((1, 2, 5, 12))):
            kind, value = next(told)
            if kind == "message":
                messages.append(value)
                mine.is_open = True
            elif kind == "end":
                boundary, mine.is_open = value, False
            elif not mine.is_open or self.mutant is Mutant.IDLE_WHILE_OPEN:
                boundary = value
        return messages, boundary

    def _put(self, mine: Mine, messages: Sequence[int], boundary: int | None) -> Steps:
        if not messages and (boundary is None or boundary == mine.boundary):
            return
        before = mine.segment
        if before is None:
            mine.content, mine.number = [], mine.number + 1
        name: Name = (0, mine.holder.epoch, mine.number)
        self.disk.put(name)
        self.disk.write(name, len(mine.content), messages)
        mine.content = [*mine.content, *messages]
        yield
        self.disk.flush(name)
        self.disk.flush_folder(name)
        yield
        after = self._wanted(mine, before, boundary)
        while self.random.random() < 0.2:
            # The answer is lost: it may have been yes.
            if self.random.random() < 0.5:
                self.catalog.announce(mine.holder, before, after, ())
            yield
        self.catalog.announce(mine.holder, before, after, ())
        mine.segment, mine.end, mine.boundary = after, after.end, after.boundary
        if after.messages >= LONGEST or self.random.random() < 0.2:
            mine.segment = None

    def _wanted(self, mine: Mine, before: Segment | None, boundary: int | None) -> Segment:
        first = before.first if before else mine.end
        low = self.upstream.position_of[mine.content[0]] if mine.content else None
        carried = None if self.mutant is Mutant.NOT_CARRIED and before is None else mine.boundary
        length, checksum = len(mine.content), checksum_of(mine.content)
        segment = Segment(0, mine.holder.epoch, mine.number, first, first + length, length, checksum, length)
        return replace(segment, low=low, boundary=carried if boundary is None else boundary)

    def _confirm(self, mine: Mine) -> None:
        if self.mutant is Mutant.CONFIRMED_EARLY:
            self.upstream.confirmed = max(self.upstream.confirmed, self.upstream.end)
            return
        upper = min(self.uppers[-1], mine.boundary or 0)
        self.upstream.confirmed = max(self.upstream.confirmed, upper)

    # ── ticks, backfills, retention ───────────────────────────────────────────────────────────────────────────────────

    def _tick(self) -> None:
        newest = self.catalog.states[0].segment
        if newest is None or newest.boundary is None:
            return
        upper = newest.boundary
        if self.mutant is Mutant.CUT_ANYWHERE and newest.messages:
            last = self.disk.files[0, newest.epoch, newest.number].elements[newest.messages - 1]
            upper = max(upper, self.upstream.position_of[last] + 1)
        if upper > self.uppers[-1]:
            self._compare(self.uppers[-1], upper)
            self.uppers.append(upper)
            self.counts["ticks"] += 1

    def _read_again(self) -> None:
        """A backfill, some ticks at once; what it begins with is kept for it."""
        if len(self.uppers) < 3:
            return
        there = [upper for upper in self.uppers if upper >= self.needed]
        if len(there) > 1:
            lower, upper = sorted(self.random.sample(there, 2))
            self._compare(lower, upper)
            self.counts["read again"] += 1

    def _compare(self, lower: int, upper: int) -> None:
        found, wanted = self._read(lower, upper), self.upstream.within(lower, upper)
        if found != wanted:
            raise Violation(f"[{lower}, {upper}) has {found}, and the upstream had {wanted}")

    def _read(self, lower: int, upper: int) -> list[int]:
        rows = [one for one in self.catalog.rows(0) if one.first >= self.catalog.states[0].begin]
        begins = [at for at, one in enumerate(rows) if one.low is not None and one.low < lower]
        if not begins and self.catalog.states[0].begin:
            raise Violation(f"nothing shows that all from {lower} on is there")
        rows = rows[begins[-1] if begins else 0 :]
        beyond = [at for at, one in enumerate(rows) if one.low is not None and one.low >= upper]
        rows = rows[: beyond[0] + 1] if beyond else rows
        found: list[int] = []
        for one in self._slices(rows, lower, upper):
            file = self.disk.files[0, one.segment.epoch, one.segment.number]
            messages = file.elements[: one.segment.length]
            if checksum_of(messages) != one.segment.checksum:
                raise Violation(f"{one.segment} holds {messages}")
            found += [m for m in messages if one.lower <= self.upstream.position_of[m] < one.upper]
        return found

    def _slices(self, rows: Sequence[Segment], lower: int, upper: int) -> list[positions.Slice]:
        if self.mutant is Mutant.TAIL_COUNTS:
            return [positions.Slice(one, lower, upper) for one in rows]
        if self.mutant is Mutant.END_OF_SEGMENT:
            return [positions.Slice(one, lower, min(upper, one.boundary or 0)) for one in rows]
        return positions.slices(rows, lower, upper)

    def _trim(self) -> None:
        self.needed = self.random.choice([upper for upper in self.uppers if upper >= self.needed])
        state = self.catalog.states[0]
        rows = [one for one in self.catalog.rows(0) if one.first >= state.begin]
        to = may_go_below(rows, self.needed, 1)
        if self.mutant is Mutant.KEPT_TOO_LITTLE:
            to = max((one.end for one, _ in pairwise(rows) if (one.boundary or 0) <= self.needed), default=0)
        self.catalog.states[0] = rules.trim(state, to, rows).state
        self.counts["trimmed"] += self.catalog.states[0].begin > state.begin
