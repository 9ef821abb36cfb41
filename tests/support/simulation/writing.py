"""How an app commits to collections: a tick at a time, or a group. A step ends where another app may come between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.keyed_commits import GroupGoal, TickGoal
from airflow_provider_mzshare.core.ticklog.rules import ATTEMPTS_TOGETHER
from airflow_provider_mzshare.core.ticklog.state import Tick, Written
from airflow_provider_mzshare.errors import CatalogBehind, Fenced, LogConflict
from tests.support.simulation.delta import Delta, Entry
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.keyed_writing import KeyedWriter, Task
from tests.support.simulation.mutants import Mutant
from tests.support.simulation.steps import CannotWrite, Committing, NoRoom, PlanAgain, Steps, written

if TYPE_CHECKING:
    from tests.support.simulation.world import World


class Writer:
    """What one app knows of the collections it writes."""

    def __init__(self, world: World, faults: bool) -> None:
        self._world, self._faults = world, faults
        self._mutant = world.mutant
        self.keyed = KeyedWriter(world, faults)
        self._own: set[CollectionId] = set()
        """Collections with a commit of this writer: the first one is made even without rows, so that a late one of
        another writer conflicts."""

    def _is_due(self, name: CollectionId, rows: int) -> bool:
        return bool(rows) or (name not in self._own and self._mutant is not Mutant.FIRST_COMMIT_NOT_FORCED)

    def commit_tick(self, name: CollectionId, tick: Tick, rows: int, spec: int, force: bool = False) -> Committing:
        delta, time, failures = self._world.catalog.delta[name], tick.mz_timestamp, 0
        if isinstance(delta, KeyedDelta):
            task = Task(name, TickGoal(time), (tick,), rows, spec, again=tick.attempts > 1)
            return (yield from self.keyed.commit(delta, task))
        force |= tick.attempts > 1 and self._mutant is not Mutant.FIRST_COMMIT_NOT_FORCED
        while True:
            loaded, stored = delta.loaded(name), delta.stored(name)
            if self._mutant is Mutant.CONFLICT_MEANS_PRESENT and name in self._own:
                loaded -= 1  # a handle that was not refreshed after its own commit
            if self._mutant is not Mutant.NO_STORED_VERSION and stored >= time:
                return self._found(name, delta, time)
            if not force and not self._is_due(name, rows):
                return None
            yield
            if delta.loaded(name) != loaded:
                if self._mutant is Mutant.CONFLICT_MEANS_PRESENT:
                    return None
                self._world.catalog.counts["conflicts"] += 1
                continue
            if self._attempt(delta, Entry(name, time, time, rows, spec)):
                self._own.add(name)
                return self._written(name, delta, time)
            failures += 1
            if failures == ATTEMPTS_TOGETHER:
                raise CannotWrite
            yield

    def _found(self, name: CollectionId, delta: Delta, time: int) -> Written:
        stored = delta.stored(name)
        if stored == time:
            if self._mutant is Mutant.FOUND_COUNTS_AS_OWN:
                self._own.add(name)
            return self._written(name, delta, time)
        if stored not in self._world.catalog.numbers:
            raise CatalogBehind("u1", name, stored)
        raise Fenced("a later tick is there")

    def commit_group(
        self,
        name: CollectionId,
        app: str,
        group: TickGroup,
        after: int,
        planned: int,
        rows: int,
        spec: int,
        force: bool = False,
    ) -> Steps:
        """Add the ticks after the planned version, while that is the stored one."""
        delta, time, failures = self._world.catalog.delta[name], group.mz_timestamp, 0
        first = group.after(after).mz_timestamp if after < group.number else time
        if isinstance(delta, KeyedDelta):
            ticks = tuple(tick for tick in group.ticks if tick.mz_timestamp >= first)
            yield from self.keyed.commit(delta, Task(name, GroupGoal(time, planned or None), ticks, rows, spec))
            return
        while True:
            loaded, stored = delta.loaded(app), delta.stored(app)
            if stored == time:
                if self._mutant is Mutant.FOUND_COUNTS_AS_OWN:
                    self._own.add(name)
                return
            if stored != planned and self._mutant is not Mutant.NO_COMPARE_AT_COMMIT:
                raise PlanAgain
            if not force and not self._is_due(name, rows):
                return
            yield
            if delta.loaded(app) != loaded:
                self._world.catalog.counts["conflicts"] += 1
                continue
            if self._attempt(delta, Entry(app, time, first, rows, spec)):
                self._own.add(name)
                return
            failures += 1
            if failures == ATTEMPTS_TOGETHER:
                raise CannotWrite
            yield

    def hear(self, what: str) -> None:
        """The catalog has done it; now and then the answer is lost, and the app has to look at the log again."""
        if self._faults and self._world.random.random() < self._world.fault_rate / 10:
            self._world.catalog.counts["catalog answers lost"] += 1
            raise LogConflict(f"no answer to a {what}")

    def _attempt(self, delta: Delta, entry: Entry) -> bool:
        """False when an error is all that came back, whatever it means."""
        if self._world.is_full:
            self._find_no_room(delta, entry)
        fate = self._world.fate() if self._faults else 1.0
        if fate >= 1.0:
            delta.append(entry)
            return True
        counts = self._world.catalog.counts
        if fate < 0.35:
            delta.append(entry)
            counts["lost answers"] += 1
        elif fate < 0.5:
            delta.send(entry)
            counts["late commits"] += 1
        return False

    def _find_no_room(self, delta: Delta, entry: Entry) -> None:
        """The commit may have landed, and only what comes after it found no room: the log is asked. A local disk
        answers at once, so nothing is on its way; files are removed if nothing was sent before, and none has landed."""
        landed = self._world.random.random() < 0.3
        if landed:
            delta.append(entry)
        self._world.catalog.counts["no room"] += 1
        if (not landed and not delta.in_flight) or self._mutant is Mutant.NO_ROOM_TAKES_FILES:
            delta.lose(entry.rows)
        raise NoRoom

    def _written(self, name: CollectionId, delta: Delta, time: int) -> Written:
        return written(self._world, name, delta, delta.version_of(time))
