"""The two apps as generators: a scheduler may stop either between any two steps, for a while or for ever."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.keyed_commits import GroupGoal, TickGoal
from airflow_provider_mzshare.core.ticklog.state import (
    Done,
    Generation,
    Holder,
    Left,
    Outcome,
    SourceState,
    TableState,
    Tick,
    Unindexed,
    Written,
)
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, LogConflict
from airflow_provider_mzshare.storage.apps.backfill_steps import cut_group, rearmost
from tests.support.simulation.catalog import FOUND_NO_ROOM
from tests.support.simulation.keyed import KEEP
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.keyed_writing import Refused, Refusing
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.steps import IDLE, CannotWrite, NoIndex, NoRoom, PlanAgain, Steps, written
from tests.support.simulation.tables import collection_id
from tests.support.simulation.topic import ROLES, part, prefix
from tests.support.simulation.writing import Writer

if TYPE_CHECKING:
    from tests.support.simulation.world import World

CANNOT_WRITE = Left("cannot be written")
CONTRADICTED = Left("its errors are of records that are gone")
Ending = Generator[Any, None, Outcome]


def is_forced(world: World, found: Refused) -> bool:
    """Whoever commits errors first has decided which events are error rows: also if there are none."""
    return bool(found.kept) and world.mutant is not Mutant.ERRORS_NOT_FORCED


def is_contradicted(world: World, errors: CollectionId, found: Refused | None) -> bool:
    """Somebody has decided otherwise, by records that are gone now: nobody can put data that goes with that."""
    if found is None or world.mutant is Mutant.REFUSED_NOT_COMPARED:
        return False
    differs = found.differs(world.catalog.delta[errors].content[-1])
    world.catalog.counts["keyed contradicted"] += differs
    if differs and not world.topic.gone:
        raise Violation(f"{errors}: two attempts that read the same find other error rows")
    return differs


class Ingestion:
    def __init__(self, world: World, job: JobId, faults: bool) -> None:
        self._world, self._job = world, job
        self.writer = self._writer = Writer(world, faults)
        self.late = world.late_indexes(self.writer, faults)

    def run(self) -> Steps:
        catalog = self._world.catalog
        seen = catalog.lease(None)
        yield
        try:
            holder = catalog.claim(None, self._job, seen)
            while True:
                yield
                try:
                    yield from self._one_tick(holder)
                except LogConflict:
                    continue
        except (Fenced, LeaseTaken):
            catalog.counts["fenced"] += 1

    def _one_tick(self, holder: Holder) -> Steps:
        catalog, topic = self._world.catalog, self._world.topic
        if self.late:
            yield from self.late.beside()
        state = catalog.state
        if state.pending:
            tick = catalog.begin_attempt(holder, state.pending[0].number)
            if self._world.mutant is Mutant.NEW_END_ON_REPLAY:
                tick = replace(tick, upper=topic.end)
        else:
            upper = topic.end
            if upper == state.upper:
                if self._world.random.random() < self._world.idle_rate or backfill_rules.completes_cutover(
                    state, self._indexed()
                ):
                    catalog.mint_empty(holder, upper, self._indexed())
                yield IDLE
                return
            yield from self._await_arrivals(state)
            tick = catalog.mint(holder, state.upper, upper, self._indexed())
            self._writer.hear("mint")
        yield
        members = [(table, catalog.spec_at(table.table_id, tick.number)) for table in catalog.members()]
        yield
        rows = topic.read(tick.lower, tick.upper)
        yield
        yield from self._writer.keyed.tidy()
        outcomes: dict[ItemId, Outcome] = {}
        for table, spec in members:
            try:
                outcomes[table.table_id] = yield from self._commit(table, spec, tick, rows)
            except NoRoom:
                if self._world.mutant is not Mutant.NO_ROOM_LEAVES:
                    catalog.spare_attempt(holder, tick.number)
                    yield IDLE
                    return
                outcomes[table.table_id] = FOUND_NO_ROOM
        catalog.commit(holder, tick.number, outcomes)
        self._writer.hear("commit")

    def _await_arrivals(self, state: SourceState) -> Steps:
        """A short wait, once, for tables that are a tick behind."""
        for _ in range(self._world.patience):
            if not backfill_rules.awaited(state, self._indexed()):
                break
            self._world.catalog.counts["waits for a cutover"] += 1
            yield
            state = self._world.catalog.state
        yield

    def _indexed(self) -> frozenset[Generation] | None:
        return self.late.indexed() if self.late else None

    def _commit(self, table: TableState, spec: int, tick: Tick, rows: int) -> Ending:
        done = []
        if self.late:
            yield from self.late.wait_for_group(table)
        own = rows & ~prefix(table.start)
        found = yield from self._refused(table, tick, part(own, "data"))
        for role in ROLES:
            name, due, force = collection_id(table, role), part(own, role), False
            if role == "errors" and found:
                due, force = due | found.refused, is_forced(self._world, found)
            try:
                done.append((yield from self._writer.commit_tick(name, tick, due, spec, force)))
                if role == "errors" and is_contradicted(self._world, name, found):
                    return CONTRADICTED
            except CannotWrite:
                return CANNOT_WRITE
            except NoIndex:
                assert self.late is not None
                self.late.leaves(table)
                return Unindexed()
            yield
        return Done(written=tuple(one for one in done if one))

    def _refused(self, table: TableState, tick: Tick, events: int) -> Refusing:
        delta = self._world.catalog.delta[collection_id(table, "data")]
        if not isinstance(delta, KeyedDelta) or delta.kind != KEEP:
            return None
        return (yield from self._writer.keyed.refused(delta, TickGoal(tick.mz_timestamp), (tick,), events))


class Backfill:
    """:param inside: the ingestion app that follows the ticks itself, with its own indexes."""

    def __init__(
        self, world: World, backfill: BackfillId, job: JobId, faults: bool, inside: Ingestion | None = None
    ) -> None:
        self._world, self._id, self._job = world, backfill, job
        self._writer = Writer(world, faults)
        self._late = inside.late if inside else None
        if self._late:
            self._late.lend_to(self._writer)
        self._at_least = 0
        """A tick that the next group must reach, since a collection holds it already."""

    def run(self) -> Steps:
        catalog = self._world.catalog
        try:
            seen = catalog.lease(self._id)
            yield
            holder = catalog.claim(self._id, self._job, seen)
            while True:
                state = catalog.state
                mine = backfill_rules.arriving(state, self._id)
                if not mine:
                    return
                yield
                try:
                    yield from self._one_group(holder, mine, state.last_number)
                except (LogConflict, PlanAgain) as error:
                    catalog.counts[type(error).__name__] += 1
        except (Fenced, LeaseTaken):
            catalog.counts["backfills fenced"] += 1

    def _one_group(self, holder: Holder, mine: Mapping[ItemId, TableState], head: int) -> Steps:
        catalog = self._world.catalog
        last = rearmost(mine)
        names = [collection_id(mine[table_id], role) for table_id in sorted(last.table_ids) for role in ROLES]
        planned = {name: catalog.delta[name].stored(self._app(name)) for name in names}
        stored = max(catalog.numbers[time] if time else 0 for time in planned.values())
        specs = {} if self._world.mutant is Mutant.GROUP_ACROSS_SPECS else catalog.specs
        last = rearmost(mine, specs, at_least=self._at_least)
        tables = [mine[table_id] for table_id in sorted(last.table_ids)]
        ticks = catalog.ticks_from(last.first, head)
        if not ticks or stored > ticks[-1].number:
            yield IDLE  # until another look at the tables
            return
        group = cut_group(
            ticks,
            max_records=self._world.random.choice(self._world.group_sizes),
            before=last.before,
            at_least=self._at_least,
        )
        if stored > group.number and self._world.mutant is not Mutant.STORED_AHEAD_IGNORED:
            # Whoever wrote it may have moved the tables since they were looked at, and changed specs lie between.
            self._at_least = stored
            return
        self._at_least = 0
        catalog.check_planned(self._id, holder, tables)
        yield
        made_with = {table.table_id: catalog.spec_at(table.table_id, group.first.number) for table in tables}
        rows = self._read(group)
        yield
        yield from self._writer.keyed.tidy()
        outcomes: dict[ItemId, Outcome] = {}
        for table in tables:
            try:
                outcomes[table.table_id] = yield from self._commit(
                    table, made_with[table.table_id], group, rows, planned
                )
            except NoRoom:
                yield IDLE
                return
            yield
        catalog.follow(self._id, holder, last.first, group.last, outcomes)
        self._writer.hear("follow")

    def _app(self, name: CollectionId) -> str:
        return f"{name}/{self._id}" if self._world.mutant is Mutant.HEAL_UNDER_NEW_APP_ID else name

    def _read(self, group: TickGroup) -> int:
        topic = self._world.topic
        if self._world.mutant is Mutant.BOUNDARY_ROW_TWICE:
            return topic.read_through(group.lower, group.upper)
        return topic.read(group.lower, group.upper)

    def _commit(
        self, table: TableState, spec: int, group: TickGroup, rows: int, planned: Mapping[CollectionId, int]
    ) -> Ending:
        """Errors come first, so ticks that the data holds are not due in the errors either."""
        catalog = self._world.catalog
        held = catalog.numbers.get(planned[collection_id(table, "data")], 0)
        if held < group.number:
            found = yield from self._refused(table, group, rows, planned)
            for role in ROLES:
                name, force = collection_id(table, role), False
                after = max(held, catalog.numbers.get(planned[name], 0))
                if self._world.mutant is Mutant.PART_APPLIED_AGAIN and isinstance(catalog.delta[name], KeyedDelta):
                    after = 0
                due = part(rows & ~prefix(table.start), role)
                if role == "errors" and found:
                    due, force = due | found.refused, is_forced(self._world, found)
                if after >= group.first.number and self._world.mutant is not Mutant.NO_AFTER_FILTER:
                    due &= ~prefix(catalog.ticks[after - 1].upper)
                    catalog.counts["stored ahead"] += 1
                commit = self._writer.commit_group(name, self._app(name), group, after, planned[name], due, spec, force)
                try:
                    yield from self._late.lent(name, commit) if self._late else commit
                    if role == "errors" and is_contradicted(self._world, name, found):
                        return CONTRADICTED
                except CannotWrite:
                    return CANNOT_WRITE
                yield
        elif self._world.mutant is not Mutant.DONE_WITHOUT_SEAL:
            try:
                yield from self._seal(table, group, planned)
            except CannotWrite:
                return CANNOT_WRITE
        done = [one for role in ROLES for one in self._entries(collection_id(table, role), group)]
        return Done(written=tuple(done))

    def _refused(self, table: TableState, group: TickGroup, rows: int, planned: Mapping[CollectionId, int]) -> Refusing:
        """Of the ticks that the data does not hold."""
        name = collection_id(table, "data")
        delta = self._world.catalog.delta[name]
        if not isinstance(delta, KeyedDelta) or delta.kind != KEEP:
            return None
        held = self._world.catalog.numbers.get(planned[name], 0)
        ticks = tuple(tick for tick in group.ticks if tick.number > held)
        events = part(rows & ~prefix(table.start), "data") & ~prefix(ticks[0].lower)
        goal = GroupGoal(group.mz_timestamp, planned[name] or None)
        return (yield from self._writer.keyed.refused(delta, goal, ticks, events))

    def _seal(self, table: TableState, group: TickGroup, planned: Mapping[CollectionId, int]) -> Steps:
        """The data holds the group; who is late with errors that compaction has removed since must conflict."""
        name = collection_id(table, "errors")
        if planned[name] < group.mz_timestamp:
            self._world.catalog.counts["sealed"] += 1
            app = self._app(name)
            yield from self._writer.commit_group(name, app, group, group.number, planned[name], 0, 0, force=True)

    def _entries(self, name: CollectionId, group: TickGroup) -> list[Written]:
        """All that carry ticks of this group and that the catalog does not know yet: own ones and found ones."""
        catalog, found = self._world.catalog, []
        delta, known = catalog.delta[name], catalog.last_written(name)
        for version in range(len(delta.entries), 0, -1):
            time = delta.entries[version - 1].time
            if known < time <= group.mz_timestamp:
                found.append(written(self._world, name, delta, version))
            elif 0 < time <= known:
                break
        return found[::-1]
