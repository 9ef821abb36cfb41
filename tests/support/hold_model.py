"""A table with holders and maintenance, without a database: transactions are steps, and chance says whose step is next.

The rules are the real ones (``core/ticklog/holds.py``, ``rules.retained_since``). ``Mutant`` leaves one of them out, to
show that the model notices.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import holds, rules
from airflow_provider_mzshare.core.ticklog.holds import Held, Hold, HoldDropped, HoldLost, HoldRefused, Wanted
from airflow_provider_mzshare.core.ticklog.state import TableState
from airflow_provider_mzshare.errors import NotReadable

TABLE = ItemId("u1")
LIMIT, GRACE, RETAINED = 40, 20, 60
NAMES = ("a", "b")
STEPS = 400


class Violation(AssertionError):
    """What must never be true, was."""


class Mutant(Enum):
    NONE = "none"
    TAKEN_APART = "since is checked in one transaction, and the hold is taken in the next"
    SINCE_APART = "maintenance looks for holds in one transaction, and moves since in the next"
    DEAD_APART = "who is dead is decided in one transaction, and dropped in the next"
    NOT_HELD = "since passes holds"
    ONE_COUNTS = "the newest of several holds counts"
    BELOW_SINCE = "a hold is taken wherever it is asked for"
    BACKWARDS = "a hold may go back"
    DROPPED_IS_REFRESHED = "a heartbeat brings a dropped hold back"
    DROPPED_GOES_ON = "whoever comes back to a dropped hold gets a new one"
    ANY_CLAIM = "whoever knows the name keeps the hold"
    DEAD_STAY = "the hold of a dead holder is never dropped"
    AGE_COUNTS = "a hold is dropped so long after it was taken, whatever its heartbeats"
    OLD_GENERATION_GOES = "a generation goes as soon as it is replaced"


@dataclass(eq=False)
class Process:
    """One run of a holder. ``at`` is what it has been told that it holds."""

    name: str
    claim: str
    steps: Generator[None, None, None] = field(default_factory=lambda: (_ for _ in ()))
    at: int = 0
    heard_at: int = 0
    frozen: bool = False


class Model:
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        self.random, self.mutant = random.Random(seed), mutant
        self.now = 1_000
        self.since, self.upper = 900, 1_000
        self.noted, self.noted_at = 0, 0
        self.kept_from = 0
        """The files that only earlier times need are gone."""
        self.swaps: list[int] = []
        """Times before which an older generation answers, which is still there."""
        self.holds: dict[str, Hold] = {}
        self.processes: list[Process] = []
        self.upkeep: list[Generator[None, None, None]] = []
        self.let_go: dict[str, int] = {}
        """By name: its holders do not need what is before."""
        self.counts = dict.fromkeys(("taken", "gone on", "dropped", "taken over", "refused"), 0)

    # ── chance ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        for _ in range(STEPS):
            self._event()
        self._everybody_dies()

    def _event(self) -> None:
        chance = self.random.random()
        awake = [process for process in self.processes if not process.frozen]
        if chance < 0.2:
            self.now += self.random.choice((1, 5, 10))
            self.upper = max(self.upper, self.now)
        elif chance < 0.3 and len(self.upkeep) < 2:
            self.upkeep.append(self._maintain())
        elif chance < 0.45 and self.upkeep:
            self._step(self.upkeep, self.random.choice(self.upkeep))
        elif chance < 0.5:
            self._start(self.random.choice(NAMES))
        elif chance < 0.53 and self.processes:
            self.processes.remove(self.random.choice(self.processes))
        elif chance < 0.57 and self.processes:
            one = self.random.choice(self.processes)
            one.frozen = not one.frozen
        elif chance < 0.58:
            self._swap()
        elif awake:
            one = self.random.choice(awake)
            self._step(self.processes, one)

    def _step(self, where: list[Any], one: Any) -> None:
        try:
            next(one.steps if isinstance(one, Process) else one)
        except StopIteration:
            where.remove(one)

    def _swap(self) -> None:
        """A tick puts a new generation in the place of the one that answers for the time before."""
        self.now = self.upper = max(self.now, self.upper) + 1
        self.swaps.append(self.upper - 1)

    def _everybody_dies(self) -> None:
        """Whatever was held, it does not stop maintenance for ever."""
        self.processes.clear()
        for _ in range(4):
            self.now += LIMIT + GRACE + RETAINED
            self.upper = self.now
            for _step in self._maintain():
                pass
        if self.since < self.now - RETAINED or [hold for hold in self.holds.values() if hold.dropped_at is None]:
            raise Violation(f"since stays at {self.since} for the dead: {self.holds}")

    # ── holders ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, name: str) -> None:
        """The one before may still be alive, or frozen."""
        claim = f"claim-{self.random.random()}"
        process = Process(name, claim)
        process.steps = self._hold(process)
        self.processes.append(process)

    def _hold(self, process: Process) -> Generator[None, None, None]:
        """Take, or go on; then beat and move; sometimes release. A step that is refused ends the process."""
        try:
            yield from self._take(process)
            while self.random.random() < 0.95:
                self._keep(process)
                yield
            holds.release(self._own(process), self._held(), process.claim)
            del self.holds[process.name]
            self.let_go.pop(process.name, None)
        except HoldDropped as told:
            self.counts["dropped"] += 1
            if process.heard_at and (told.dropped_at or 0) - process.heard_at <= LIMIT:
                raise Violation(f"{process.name} was heard of in time, and dropped: {told}") from told
            if not process.heard_at and self.random.random() < 0.5:
                # Whoever came back has read the message, and begins anew.
                del self.holds[process.name]
                self.let_go.pop(process.name, None)
        except HoldLost:
            self.counts["taken over"] += 1
        except (HoldRefused, NotReadable):
            self.counts["refused"] += 1

    def _take(self, process: Process) -> Generator[None, None, None]:
        at = self._wish(process.name)
        held, found = self._held(), self.holds.get(process.name)
        if self.mutant is Mutant.TAKEN_APART:
            yield
        if self.mutant is Mutant.DROPPED_GOES_ON and found is not None and found.dropped_at is not None:
            found = None
        if self.mutant is Mutant.BELOW_SINCE:
            held = replace(held, since=0)
        wanted = Wanted(process.name, at, f"holder {process.name}", process.claim, LIMIT)
        hold = holds.take(found, held, wanted, self.now)
        self.counts["gone on" if found is not None else "taken"] += 1
        let_go = self.let_go.setdefault(process.name, hold.at)
        if at is None and hold.at > let_go:
            raise Violation(f"{process.name} let go of what is before {let_go}, and came back at {hold.at}")
        self.let_go[process.name] = max(let_go, hold.at)
        self._told(process, hold)
        yield

    def _wish(self, name: str) -> int | None:
        """Mostly where it stood; else a time, which may be gone."""
        return None if self.random.random() < 0.6 else self.random.randrange(self.since - 20, self.upper + 2)

    def _keep(self, process: Process) -> None:
        found, held = self._own(process), self._held()
        if self.random.random() < 0.6:
            self._told(process, holds.refresh(found, held, process.claim, self.now))
            return
        at = self.random.randrange(process.at - 20, self.upper)
        if self.mutant is Mutant.BACKWARDS:
            found = replace(found, at=min(at, found.at))
        moved = holds.move(found, held, process.claim, at, self.now)
        self.let_go[process.name] = max(self.let_go.get(process.name, 0), at)
        self._told(process, moved)

    def _own(self, process: Process) -> Hold:
        found = self.holds.get(process.name)
        if found is None:
            raise holds.UnknownHold(process.name)
        if self.mutant is Mutant.ANY_CLAIM:
            return replace(found, claim=process.claim)
        if self.mutant is Mutant.DROPPED_IS_REFRESHED:
            return replace(found, dropped_at=None)
        return found

    def _told(self, process: Process, hold: Hold) -> None:
        """A call that counts: what the process had until now can still be read, and what it has from now on, too."""
        self.holds[process.name] = hold
        for time in (process.at if process.heard_at else hold.at, hold.at):
            if not self._readable(time):
                raise Violation(f"{process.name} was told that it holds {time}, which cannot be read")
        process.at, process.heard_at = hold.at, self.now

    def _readable(self, time: int) -> bool:
        return self.since <= time and self.kept_from <= time

    def _held(self) -> Held:
        return Held(TABLE, "t", self.since, self.upper)

    # ── maintenance ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _maintain(self) -> Generator[None, None, None]:
        """As ``control/supervision/maintenance.py``: one transaction, then the files."""
        dead = self._dead(list(self.holds.values()))
        if self.mutant is Mutant.DEAD_APART:
            yield
        for hold in dead:
            self.holds[hold.name] = hold
        held = self._oldest([hold for hold in self.holds.values() if hold.dropped_at is None])
        if self.mutant is Mutant.SINCE_APART:
            yield
        table = TableState(TABLE, "live", 1, 1, Position(), Position(), upper=self.upper, since=self.since)
        self.since = rules.retained_since(table, RETAINED, self.now, held)
        keep = self.noted if self.noted and self.now - self.noted_at >= GRACE else 0
        if keep or not self.noted:
            self.noted, self.noted_at = self.since, self.now
        yield
        gone = [swap for swap in self.swaps if swap <= keep or self.mutant is Mutant.OLD_GENERATION_GOES]
        self.kept_from = max(self.kept_from, keep, *gone)
        self.swaps = [swap for swap in self.swaps if swap not in gone]

    def _dead(self, found: Sequence[Hold]) -> Sequence[Hold]:
        if self.mutant is Mutant.DEAD_STAY:
            return []
        if self.mutant is Mutant.AGE_COUNTS:
            found = [replace(hold, heartbeat=hold.taken_at) for hold in found]
        return holds.dead(found, self.now)

    def _oldest(self, standing: Sequence[Hold]) -> int | None:
        if self.mutant is Mutant.NOT_HELD or not standing:
            return None
        if self.mutant is Mutant.ONE_COUNTS:
            return max(hold.at for hold in standing)
        return holds.oldest(standing)[TABLE]
