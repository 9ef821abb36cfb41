"""A world whose keyed tables have deletion vectors: with sleepers, maintenance, and holes in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog.state import TableState
from tests.support.simulation.keyed import APPEND, WITH_VECTORS
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.steps import IDLE, PUTTING, Steps
from tests.support.simulation.tables import collection_id
from tests.support.simulation.vector_delta import VectorDelta
from tests.support.simulation.vector_upkeep import Maintenance, foreign_cleanup, log_of
from tests.support.simulation.world import App, World

SUM, UPSERT = WITH_VECTORS
VECTOR_KINDS = (SUM, SUM, UPSERT, APPEND)
ROUNDS = 240
GRACE = 1
"""Hours for which a read may still need what since has passed."""


class VectorWorld(World):
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE, kinds: Sequence[str] = VECTOR_KINDS) -> None:
        super().__init__(seed, mutant, kinds)
        self._events, self._rounds = _WEIGHED_VECTORS, ROUNDS
        self.storage = self.catalog.storage
        self.storage.is_foreign = self.random.random() < 0.35
        self.dozing = self.random.choice((0.0, 0.05, 0.15))
        self.sleepers: list[App] = []
        self.maintenance: list[Steps] = []
        self._unwritten: list[tuple[VectorDelta, int]] = []
        """Checkpoints whose writers sleep."""
        self.readers: list[tuple[VectorDelta, int]] = []
        """Reads that have begun, with the version that they read."""
        self._noted: dict[CollectionId, tuple[int, int]] = {}
        """Where since stood, and the hour in which that was noted."""

    # ── apps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def step(self, app: App, steps: int) -> None:
        try:
            for _ in range(steps):
                said = next(app.steps)
                if said is IDLE:
                    return
                if said is PUTTING and self.random.random() < self.dozing:
                    self.apps.remove(app)
                    self.sleepers.append(app)
                    return
        except StopIteration:
            self.apps.remove(app)

    def _wake(self) -> None:
        if self.sleepers:
            app = self.sleepers.pop(self.random.randrange(len(self.sleepers)))
            self.apps.append(app)
            self.step(app, self.random.choice((1, 4, 12)))

    # ── tables and their past ─────────────────────────────────────────────────────────────────────────────────────────

    def with_vectors(self) -> list[tuple[TableState, VectorDelta]]:
        both = [(t, self.catalog.delta[collection_id(t, "data")]) for t in self.catalog.state.tables.values()]
        return [(table, delta) for table, delta in both if isinstance(delta, VectorDelta)]

    def keep_from(self, delta: VectorDelta) -> int:
        """The oldest version that may be read now, or is being read. Nobody begins to read a table that was dropped."""
        table = self.catalog.state.tables.get(ItemId(delta.name.split("/")[0]))
        kept = self._version_at(delta, table.since) if table else delta.newest
        return min([kept, *(version for one, version in self.readers if one is delta)])

    def _version_at(self, delta: VectorDelta, time: int) -> int:
        commits = self.catalog.commits[CollectionId(delta.name)]
        return max((one.version for one in commits if one.mz_timestamp <= time), default=0)

    def _one(self) -> tuple[TableState, VectorDelta] | None:
        found = self.with_vectors()
        return self.random.choice(found) if found else None

    def _move_since(self) -> None:
        if one := self._one():
            self.retain(one[0], newest=self.random.random() < 0.5)

    def retain(self, table: TableState, *, newest: bool) -> None:
        """As retention says: never past the newest tick that can be read."""
        times = [t.mz_timestamp for t in self.catalog.ticks if table.since < t.mz_timestamp < table.upper]
        if not table.since or not times:
            return
        since = times[-1] if newest else self.random.choice(times)
        tables = {**self.catalog.state.tables, table.table_id: replace(table, since=since)}
        self.catalog.state = replace(self.catalog.state, tables=tables)
        known = (table.table_id, table.generation)
        if known in self.catalog.readable_since:
            self.catalog.readable_since[known] = max(since, self.catalog.readable_since[known])

    def _pass(self) -> None:
        self.hours_pass(self.random.choice((1, 13, 25)))

    def hours_pass(self, hours: int) -> None:
        """No read takes an hour."""
        for delta, version in self.readers:
            delta.check_readable(version)
        self.readers.clear()
        self.storage.hour += hours

    def _read_slowly(self) -> None:
        one = self._one()
        if one and one[0].since < one[0].upper:
            table, delta = one
            times = [t.mz_timestamp for t in self.catalog.ticks if table.since <= t.mz_timestamp < table.upper]
            if times:
                self.readers.append((delta, self._version_at(delta, self.random.choice((times[0], *times)))))

    def _checkpoint(self) -> None:
        """Of the newest version; or its writer falls asleep over it."""
        if (one := self._one()) and one[1].newest:
            if self.random.random() < self.dozing * 5:
                self._unwritten.append((one[1], one[1].newest))
            else:
                one[1].add_checkpoint(one[1].newest)

    def _write_late(self) -> None:
        if self._unwritten:
            delta, version = self._unwritten.pop(self.random.randrange(len(self._unwritten)))
            delta.add_checkpoint(version)
            self.catalog.counts["late checkpoints"] += 1

    # ── maintenance ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _maintain(self) -> None:
        if one := self._one():
            self._begin_maintenance(*one)

    def _begin_maintenance(self, table: TableState, delta: VectorDelta) -> None:
        """What since had passed an hour ago goes, and not while a backfill fills the table."""
        name, now = CollectionId(delta.name), self.storage.hour
        since, noted_at = self._noted.get(name, (0, 0))
        stood = since > 0 and now - noted_at >= GRACE and table.backfill_id is None
        if self.mutant is Mutant.NO_GRACE and table.backfill_id is None and table.since:
            since, stood = table.since, True
        if stood or since == 0:
            self._noted[name] = table.since, now
        if stood:
            self.maintenance.append(Maintenance(self, name, self._version_at(delta, since)).run())
            self.catalog.counts["maintenance"] += 1

    def _go_on(self) -> None:
        """With a maintenance, which may end anywhere."""
        if self.maintenance:
            self._run(self.random.choice(self.maintenance), self.random.choice((1, 5, 30)))
        if self.maintenance and self.random.random() < 0.02:
            self.maintenance.pop()

    def _run(self, one: Steps, steps: int) -> None:
        try:
            for _ in range(steps):
                next(one)
        except StopIteration:
            self.maintenance.remove(one)

    def _forget(self) -> None:
        """A table's past goes at once, as far as this comes: sleepers wake up in holes."""
        one = self._one()
        if one is None:
            return
        for _ in range(2):
            table, delta = self.catalog.state.tables[one[0].table_id], one[1]
            self.retain(table, newest=True)
            if delta.newest and self.random.random() < 0.7:
                delta.add_checkpoint(delta.newest)
            self._begin_maintenance(self.catalog.state.tables[table.table_id], delta)
            self.hours_pass(self.random.choice((1, 1, 25)))
        if self.maintenance:
            self._run(self.maintenance[-1], self.random.choice((1, 10, 1000)))

    def _audit(self) -> None:
        if one := self._one():
            self.audit(one[1])

    def audit(self, delta: VectorDelta) -> None:
        log_of(delta, delta.log, (frozenset(delta.log), frozenset(delta.checkpoints)), self.mutant)

    def _clean_up(self) -> None:
        if self.storage.is_foreign and (one := self._one()) and one[1].newest:
            one[1].add_checkpoint(one[1].newest)
            rate = self.random.choice((0.0, 0.1))
            foreign_cleanup(one[1], lambda: self.random.random() < rate)
            self.catalog.counts["foreign clean-ups"] += 1

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> None:
        self.dozing = 0.0
        self.apps += self.sleepers
        self.sleepers = []
        for one in self.maintenance[:]:
            self._run(one, 10_000)
        super().settle()

    def check(self) -> None:
        super().check()
        both = [delta for delta in self.catalog.delta.values() if isinstance(delta, VectorDelta)]
        self.catalog.counts["put into holes"] += sum(delta.in_holes for delta in both)
        if not self.storage.is_foreign:
            for table, delta in self.with_vectors():
                self._check_tidied(table.table_id, delta)

    def _check_tidied(self, table_id: ItemId, delta: VectorDelta) -> None:
        """When time has passed and the log has gone on, what no read needs is gone."""
        for _ in range(2):
            self.retain(self.catalog.state.tables[table_id], newest=True)
            self.hours_pass(30)
            delta.upkeep()
            delta.add_checkpoint(delta.newest)
            self._begin_maintenance(self.catalog.state.tables[table_id], delta)
            for one in self.maintenance[:]:
                self._run(one, 10_000)
        dead = sorted(delta.objects.keys() - delta.needed(self.keep_from(delta)))
        if dead and self.catalog.state.tables[table_id].since:
            raise Violation(f"{delta.name}: nobody needs {dead}, and they stay")


def run_vectors(seed: int, mutant: Mutant = Mutant.NONE) -> VectorWorld:
    world = VectorWorld(seed, mutant)
    world.run()
    world.check()
    return world


_WEIGHED_VECTORS: list[tuple[Callable[..., None], int]] = [
    (World._step, 180),
    (World._produce, 40),
    (World._start_missing, 16),
    (World._start_another, 7),
    (World._crash, 3),
    (World._presume_dead, 2),
    (World._create, 3),
    (World._drop, 1),
    (World._arm, 10),
    (World._resume, 8),
    (World._resnapshot, 2),
    (World._retire, 1),
    (World._merge, 3),
    (World._land, 14),
    (World._compact_keyed, 12),
    (World._compact, 4),
    (World._read, 8),
    (World._fill_or_free, 1),
    (VectorWorld._wake, 6),
    (VectorWorld._move_since, 3),
    (VectorWorld._pass, 4),
    (VectorWorld._read_slowly, 6),
    (VectorWorld._checkpoint, 10),
    (VectorWorld._write_late, 5),
    (VectorWorld._maintain, 5),
    (VectorWorld._go_on, 8),
    (VectorWorld._forget, 12),
    (VectorWorld._audit, 5),
    (VectorWorld._clean_up, 10),
]
