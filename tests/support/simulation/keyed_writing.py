"""How an app commits to keyed collections, and compacts them. A step ends where another app may come between."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.keyed_commits import (
    Answer,
    GroupGoal,
    Loaded,
    Sent,
    Step,
    TickGoal,
    compaction_stands,
    next_step,
    what_to_put,
)
from airflow_provider_mzshare.core.ticklog.rules import ATTEMPTS_TOGETHER
from airflow_provider_mzshare.core.ticklog.state import Tick
from airflow_provider_mzshare.errors import CatalogBehind, Fenced
from tests.support.simulation.delta import Entry
from tests.support.simulation.keyed import (
    FENCE,
    KEEPING,
    Change,
    by_place,
    compaction,
    is_fence,
    ordered,
    plan,
    refused,
)
from tests.support.simulation.keyed_delta import KeyedDelta, Snapshot
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.steps import CannotWrite, Committing, NoRoom, PlanAgain, Steps, Unreadable, written
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vector_writing import VectorRows
from tests.support.simulation.vectors import VectorChange

if TYPE_CHECKING:
    from tests.support.simulation.world import World


Refusing = Generator[Any, None, "Refused | None"]


@dataclass(frozen=True)
class Refused:
    """What the rows of a table make of events that keep values.

    :param kept: these events. :param refused: those of them that are error rows.
    """

    kept: int
    refused: int

    def differs(self, errors: int) -> bool:
        """Others have committed errors of an attempt that has read other records."""
        return errors & self.kept != self.refused


@dataclass(frozen=True)
class Task:
    """What a collection is to hold.

    :param ticks: those that the events are of.
    :param again: the tick was begun before.
    """

    name: CollectionId
    goal: TickGoal | GroupGoal
    ticks: tuple[Tick, ...]
    events: int
    spec: int
    again: bool = False


class KeyedWriter:
    """What one app knows of the keyed collections it writes."""

    def __init__(self, world: World, faults: bool) -> None:
        self._world, self._faults, self._mutant = world, faults, world.mutant
        self._own: set[CollectionId] = set()
        """Collections whose newest commit may be this writer's."""
        self.vectors = self._vectors = VectorRows(world, faults, self._sent_on)
        self._beside: dict[CollectionId, Change] = {}
        """Compactions that are written, and not put yet."""

    # ── a tick or a group ─────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, delta: KeyedDelta, task: Task) -> Committing:
        forced = task.again or task.name not in self._own
        self._own.discard(task.name)
        mine: list[Entry] = []
        sent: Sent | None = None
        failures = 0
        while True:
            older = delta.load()
            if self._mutant is Mutant.PLANNED_ON_OLDER:
                yield
            at = delta.load()
            if self._is_there(delta, task, at, sent, mine):
                return written(self._world, task.name, delta, delta.version_of(task.goal.mz_timestamp))
            if not mine or self._mutant is not Mutant.PLAN_SENT_AGAIN:
                try:
                    change = yield from self._change(delta, task, older)
                except Unreadable:
                    yield
                    continue
                entry = self._planned(delta, task, change, forced)
            if entry is None:
                self._own.add(task.name)
                return None
            mine.append(entry)
            if isinstance(delta, VectorDelta):
                answer = yield from self._vectors.put(delta, at.version, entry)
            else:
                yield from [None] * self._world.random.randint(1, 4)  # rows are read, files are written
                answer = self._put(delta, at.version, entry)
            sent = Sent(at.version + 1, answer)
            self._count(f"keyed {sent.answer}")
            if sent.answer == "put":
                self._own.add(task.name)
                continue
            failures += sent.answer == "unclear"
            if failures == ATTEMPTS_TOGETHER:
                self._world.catalog.unclear.add(task.name)
                raise CannotWrite
            yield

    def _is_there(self, delta: KeyedDelta, task: Task, at: Snapshot, sent: Sent | None, mine: list[Entry]) -> bool:
        step = self._step(delta, task, at, sent, mine)
        if step is Step.PLAN_AGAIN:
            self._count("keyed planned again")
            raise PlanAgain
        if step is Step.FENCED:
            raise Fenced("a later tick is there")
        if step is Step.UNKNOWN:
            raise CatalogBehind("u1", task.name, at.stored or 0)
        if step is Step.HELD:
            self._count("keyed found after an unclear answer" if sent else "keyed found")
            return True
        assert step in (Step.PLAN, Step.DONE), step
        self._count("keyed planned anew", sent is not None and step is Step.PLAN)
        return step is Step.DONE

    def _step(self, delta: KeyedDelta, task: Task, at: Snapshot, sent: Sent | None, mine: list[Entry]) -> Step:
        time = task.goal.mz_timestamp
        if sent is not None and sent.answer == "unclear" and self._mutant is Mutant.UNCLEAR_MEANS_FAILED:
            return Step.PLAN
        is_earlier = isinstance(task.goal, GroupGoal) and (at.stored or 0) < time
        if self._mutant is Mutant.REPLANNED_ON_ANY_TICK and sent is not None and is_earlier:
            return Step.PLAN

        def is_own() -> bool:
            there = delta.entries[delta.version_of(time) - 1]
            return any(one is there for one in mine)

        numbers = self._world.catalog.numbers
        loaded = Loaded(at.version, at.stored)
        return next_step(task.goal, loaded, sent, knows=numbers.__contains__, is_own=is_own)

    def _change(self, delta: KeyedDelta, task: Task, at: Snapshot) -> Generator[Any, None, Change | VectorChange]:
        by_place_alone = self._mutant is Mutant.FOLDED_BY_PLACE
        events = tuple(by_place(task.events) if by_place_alone else ordered(task.events, task.ticks))
        if isinstance(delta, VectorDelta):
            return (yield from self._vectors.planned(delta, at.version, events))
        return plan(delta.kind, at.files, events, delta.new_file()) or FENCE

    def _planned(self, delta: KeyedDelta, task: Task, change: Change | VectorChange, forced: bool) -> Entry | None:
        has_effect = not is_fence(change)
        if self._mutant is Mutant.KEYED_NOT_FORCED and not task.events:
            forced = False
        if self._mutant is Mutant.NO_FENCE_WITHOUT_EFFECT and task.events:
            forced = False
        spans_ticks = bool(task.events) and len(task.ticks) > 1
        if self._mutant is Mutant.CANCELLED_OUT_UNMARKED:
            spans_ticks = False
        what = what_to_put(has_effect=has_effect, forced=forced, spans_ticks=spans_ticks)
        self._count(f"keyed {what or 'nothing'} of several ticks" if len(task.ticks) > 1 else f"keyed {what}")
        self._count("keyed events without effect", bool(task.events) and not has_effect)
        first = task.ticks[0].mz_timestamp
        if what is None:
            delta.note_no_effect(first, task.goal.mz_timestamp, task.events)
            return None
        return Entry(task.name, task.goal.mz_timestamp, first, task.events, task.spec, change)

    def refused(self, delta: KeyedDelta, goal: TickGoal | GroupGoal, ticks: tuple[Tick, ...], events: int) -> Refusing:
        """Which of the events are error rows by the rows that the data has before them. Asked before the errors are
        committed; a data collection that has the tick already has had its errors committed: None."""
        yield
        at = delta.load()
        looks = self._mutant is not Mutant.REFUSED_ON_ANY_STATE
        if looks and isinstance(goal, GroupGoal) and at.stored != goal.planned:
            raise PlanAgain
        if looks and isinstance(goal, TickGoal) and (at.stored or 0) >= goal.mz_timestamp:
            return None
        files = at.files
        if self._mutant is Mutant.REFUSED_ON_OLDER:
            files = delta.files[max(0, at.version - 1)]
        order = by_place(events) if self._mutant is Mutant.REFUSED_BY_PLACE else ordered(events, ticks)
        found = refused(files, order)
        self._count("keyed refused by rows", bool(found))
        return Refused(events & KEEPING, found)

    # ── compaction ────────────────────────────────────────────────────────────────────────────────────────────────────

    def tidy(self) -> Steps:
        """Put what was written beside the ticks since the last call, and write the next."""
        yield from self._vectors.tidy(self._own)
        for name, change in sorted(self._beside.items()):
            del self._beside[name]
            delta = self._delta(name)
            at = delta.load()
            if not compaction_stands(change.removed, at.files) and self._mutant is not Mutant.STALE_COMPACTION:
                self._count("compactions dropped")
                continue
            yield from [None] * self._world.random.randint(1, 3)
            try:
                answer = self._put(delta, at.version, Entry("", 0, 0, 0, change=change))
            except NoRoom:
                continue
            self._count(f"compactions {answer}")
        chance = self._world.random
        for name in sorted(self._own):
            if isinstance(self._delta(name), VectorDelta):
                continue
            files = self._delta(name).load().files
            if len(files) > 1 and chance.random() < 0.8:
                inputs = chance.sample(sorted(files), chance.randint(2, len(files)))
                self._beside[name] = compaction(files, inputs, self._delta(name).new_file())

    def _delta(self, name: CollectionId) -> KeyedDelta:
        delta = self._world.catalog.delta[name]
        assert isinstance(delta, KeyedDelta)
        return delta

    # ── the log ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _put(self, delta: KeyedDelta, on: int, entry: Entry) -> Answer:
        """Whatever happens to it, it lands at the version after ``on`` or not at all."""
        on = self._sent_on(delta, on, entry)
        chance = self._world.random.random
        if self._world.is_full:
            if chance() < 0.3:
                delta.put(on, entry)
            self._count("no room")
            raise NoRoom
        fate = self._world.fate() if self._faults else 1.0
        if fate >= 1.0:
            return "put" if delta.put(on, entry) else "refused"
        if fate < 0.35:
            self._count("keyed answers lost", delta.put(on, entry))
        elif fate < 0.5:
            delta.put_late(on, entry)
            self._count("keyed commits late")
        return "unclear"

    def _sent_on(self, delta: KeyedDelta, on: int, entry: Entry) -> int:
        newest = len(delta.entries)
        assert entry.change is not None
        if self._mutant is Mutant.CLIENT_SENDS_AGAIN and not any(one.time for one in delta.entries[on:]):
            return newest
        inserts = entry.time and entry.change.added and not entry.change.removed
        if self._mutant is Mutant.INSERTS_APPENDED and inserts:
            return newest
        return on

    def _count(self, what: str, times: int = 1) -> None:
        if times:
            self._world.catalog.counts[what] += times
