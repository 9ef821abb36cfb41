"""Random operations through the catalog give what the pure rules give: the same refusals and the same states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.merging import merge_backfills
from airflow_provider_mzshare.control.catalog.log.repairs import insert_repaired_tick, remove_pending_tick
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules as arriving
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Done,
    Holder,
    Lease,
    Left,
    Minted,
    Outcome,
    SourceState,
    TableState,
    Tick,
    Unindexed,
)
from airflow_provider_mzshare.errors import Fenced, LogConflict, MzShareError, NotResumable, UnknownItem
from tests.support.catalog import TABLE, TOPIC_ID, add_source

NAMES = count()
NEW = BackfillId("new")
JOBS = st.sampled_from([JobId("a"), JobId("b")])
MOSTLY = st.sampled_from([True] * 7 + [False])


@dataclass(frozen=True)
class Step:
    """One operation: which, by whom, and small numbers to make its arguments from."""

    what: str
    job: JobId
    right: bool
    amount: int
    pick: int


RARE = [
    "claim",
    "beat",
    "release",
    "create",
    "drop",
    "stall",
    "clear",
    "attempt",
    "suspect",
    "empty",
    "insert",
    "remove",
]

ARRIVING = ["create", "follow", "follow", "follow", "arm", "arm", "resume", "resnapshot", "retire", "hold", "merge"]

STEPS = st.builds(
    Step,
    what=st.sampled_from([*RARE, *ARRIVING, "empty", *["mint"] * 5, *["commit"] * 6]),
    job=JOBS,
    right=MOSTLY,
    amount=st.integers(0, 3),
    pick=st.integers(0, 7),
)


class Model:
    """The pure rules on a state in memory; ``next_table`` is the id that the catalog will give."""

    def __init__(self, state: SourceState) -> None:
        self.state = state
        self.seen = state.lease

    def claim(self, job: JobId, stood_still: Lease | None) -> None:
        if self.state.status == "dropped":
            raise Fenced("dropped")
        self.state = replace(self.state, lease=rules.claim(self.state.lease, job, stood_still=stood_still))

    def beat(self, holder: Holder) -> None:
        self.state = replace(self.state, lease=rules.beat(self.state.lease, holder))

    def release(self, holder: Holder) -> None:
        self.state = replace(self.state, lease=rules.release(self.state.lease, holder))

    def mint(self, holder: Holder, lower: Position, upper: Position, topic: str, now: int) -> None:
        minted = rules.mint(self.state, holder, lower=lower, upper=upper, incarnation=topic, now_ms=now)
        self.state = rules.after_mint(self.state, minted)

    def empty(self, holder: Holder, at: Position, now: int) -> None:
        before = self.state
        self.mint(holder, at, at, TOPIC_ID, now)
        try:
            self.commit(holder, self.state.last_number, {table: Done() for table in self.state.members})
        except MzShareError:
            self.state = before
            raise

    def commit(self, holder: Holder, number: int, outcomes: dict[ItemId, Outcome]) -> None:
        committed = rules.commit(self.state, holder, number, outcomes)
        leave = any(isinstance(outcome, Unindexed) for outcome in committed.outcomes.values())
        self.state = rules.after_commit(self.state, committed, NEW if leave else None)

    def name_follower(self, backfill_id: BackfillId, asked_at: int) -> None:
        """Its id, and when it was asked for, are the catalog's choice."""
        new = replace(self.state.backfills[NEW], backfill_id=backfill_id, asked_at=asked_at)
        others = {one: backfill for one, backfill in self.state.backfills.items() if one != NEW}
        tables = self.state.tables.items()
        self.state = replace(
            self.state,
            backfills={**others, backfill_id: new},
            tables={k: replace(t, backfill_id=backfill_id) if t.backfill_id == NEW else t for k, t in tables},
        )

    def attempt(self, holder: Holder, number: int) -> None:
        self._replace(rules.begin_attempt(self.state, holder, number))

    def suspect(self, holder: Holder, number: int, table: ItemId | None) -> None:
        self._replace(rules.suspect(self.state, holder, number, table))

    def _replace(self, tick: Tick) -> None:
        pending = tuple(tick if old.number == tick.number else old for old in self.state.pending)
        self.state = replace(self.state, pending=pending)

    def stall(self, holder: Holder) -> None:
        rules.check_holder(self.state.lease, holder)
        self.state = replace(self.state, status="stalled")

    def clear(self) -> None:
        self.state = replace(self.state, status="active")

    def create(self, table: ItemId, real: TableState, asked_at: int) -> None:
        """The backfill's id, and when it was asked for, are the catalog's choice."""
        state, start = self.state, self.state.start
        if state.upper == start:
            new = TableState(table, "created", 1, 1, start, start, next_tick=state.last_number + 1)
        else:
            new = TableState(table, "backfilling", 1, 1, start, start, backfill_id=real.backfill_id)
        self.state = replace(state, tables={**state.tables, table: new})
        self.note_backfill(real.backfill_id, asked_at)

    def note_backfill(self, backfill_id: BackfillId | None, asked_at: int, *healing: ItemId) -> None:
        if backfill_id is not None and backfill_id not in self.state.backfills:
            new = BackfillState(backfill_id, self.state.last_number, healing=frozenset(healing), asked_at=asked_at)
            self.state = replace(self.state, backfills={**self.state.backfills, backfill_id: new})

    def hold(self, backfill_id: BackfillId, job: JobId) -> None:
        backfill = arriving.check_present(self.state, backfill_id)
        held = replace(backfill, lease=rules.claim(backfill.lease, job, stood_still=backfill.lease))
        self.state = replace(self.state, backfills={**self.state.backfills, backfill_id: held})

    def follow(
        self, backfill_id: BackfillId, holder: Holder, first: int, last: Tick, outcomes: dict[ItemId, Outcome]
    ) -> None:
        followed = arriving.follow(self.state, backfill_id, holder, first=first, last=last, outcomes=outcomes)
        self.state = arriving.with_arrivals(self.state, followed.tables)

    def arm(self, table: ItemId, max_lag: int) -> None:
        armed = arriving.arm(self.state, table, max_lag=max_lag)
        if armed is not None:
            self.state = arriving.with_arrivals(self.state, {table: armed})

    def drop(self, table: ItemId) -> None:
        if table not in self.state.tables:
            raise UnknownItem("table", table)
        rest = {key: value for key, value in self.state.tables.items() if key != table}
        beside = {key: value for key, value in self.state.replacements.items() if key != table}
        members = self.state.members - {table}
        self.state = rules.without_idle_backfills(
            replace(self.state, tables=rest, replacements=beside, members=members)
        )

    def insert(self, tick: Tick) -> None:
        state = self.state
        if (
            tick.number != state.last_number + 1
            or tick.lower != state.upper
            or tick.mz_timestamp <= state.last_timestamp
        ):
            raise LogConflict("does not fit")
        joins = tuple(table.table_id for table in rules.joining(state))
        swaps = tuple(table.table_id for table in rules.swapping(state))
        self.state = rules.after_mint(state, Minted(tick, joins, swaps))


class Pair:
    """A model and a source in the catalog, driven by the same steps."""

    def __init__(self, catalog: Catalog) -> None:
        self.now = 1_000
        self.catalog = catalog
        self.source = add_source(catalog, f"s{next(NAMES)}", start=Position({"1": 2}))
        self.store = CatalogTickStore(catalog, self.source, clock=lambda: self.now)
        self.model = Model(self.store.load())
        self.created: list[ItemId] = []
        self.joined_by: dict[int, SourceState] = {}

    def take(self, step: Step) -> None:
        self.now += step.amount - 1
        getattr(self, f"_{step.what}")(step)
        assert self.store.load() == self.model.state

    def _same(self, real: Callable[[], Any], model: Callable[[], Any]) -> bool:
        """Both are refused with the same error, or neither is."""
        try:
            model()
        except MzShareError as expected:
            with pytest.raises(type(expected)):
                real()
            return False
        real()
        return True

    def _holder(self, step: Step) -> Holder:
        lease = self.model.state.lease
        if step.right and lease.job_id is not None:
            return Holder(lease.job_id, lease.epoch)
        return Holder(step.job, lease.epoch - step.pick % 2)

    def _number(self, step: Step) -> int:
        pending = self.model.state.pending
        return pending[0].number if pending and step.right else self.model.state.last_number - step.pick % 2

    def _claim(self, step: Step) -> None:
        still = self.model.seen if step.right else None
        self._same(lambda: self.store.claim(step.job, stood_still=still), lambda: self.model.claim(step.job, still))
        self.model.seen = self.model.state.lease

    def _beat(self, step: Step) -> None:
        holder = self._holder(step)
        self._same(lambda: self.store.beat(holder), lambda: self.model.beat(holder))

    def _release(self, step: Step) -> None:
        holder = self._holder(step)
        self._same(lambda: self.store.release(holder), lambda: self.model.release(holder))

    def _mint(self, step: Step) -> None:
        holder, lower = self._holder(step), self.model.state.upper
        if step.pick == 7:
            lower = Position({"0": lower[0] + 1})
        upper = lower.join(Position({str(step.pick % 3): lower[step.pick % 3] + step.amount}))
        if step.pick == 6:
            upper = Position()
        topic = TOPIC_ID if step.right else "another"
        self._same(
            lambda: self.store.mint(holder, lower=lower, upper=upper, incarnation=topic),
            lambda: self.model.mint(holder, lower, upper, topic, self.now),
        )

    def _empty(self, step: Step) -> None:
        holder, at = self._holder(step), self.model.state.upper if step.pick else Position({"0": 77})
        self._same(
            lambda: self.store.mint_empty(holder, at=at, incarnation=TOPIC_ID),
            lambda: self.model.empty(holder, at, self.now),
        )

    def _commit(self, step: Step) -> None:
        holder, number = self._holder(step), self._number(step)
        outcomes: dict[ItemId, Outcome] = {}
        for index, table in enumerate(self.created if step.pick != 5 else self.created[1:]):
            left: dict[int, Outcome] = {step.pick: Left("why"), step.pick - 1: Unindexed(), step.pick - 3: Unindexed()}
            outcomes[table] = left.get(index, Done(rows=index))
        self._same(
            lambda: self.store.commit(holder, number, outcomes, {"n": 1.0}),
            lambda: self.model.commit(holder, number, outcomes),
        )
        if NEW in self.model.state.backfills:
            (made,) = self.store.load().backfills.keys() - self.model.state.backfills.keys()
            self.model.name_follower(made, self._asked_at(made))

    def _attempt(self, step: Step) -> None:
        holder, number = self._holder(step), self._number(step)
        self._same(lambda: self.store.begin_attempt(holder, number), lambda: self.model.attempt(holder, number))

    def _suspect(self, step: Step) -> None:
        holder, number = self._holder(step), self._number(step)
        table = self.created[-1] if self.created and step.amount else None
        self._same(lambda: self.store.suspect(holder, number, table), lambda: self.model.suspect(holder, number, table))

    def _stall(self, step: Step) -> None:
        holder = self._holder(step)
        if step.pick < 2:
            self._same(lambda: self.store.stall(holder, "why", "because"), lambda: self.model.stall(holder))

    def _clear(self, step: Step) -> None:
        with self.catalog.write() as session:
            was_stalled = self.model.state.status == "stalled"
            assert items.clear_stall(session, self.source, expect="why") == was_stalled
        self.model.clear()

    def _create(self, step: Step) -> None:
        def real() -> None:
            name = ("public", f"t{next(NAMES)}")
            with self.catalog.write() as session:
                self.created.append(items.create_table(session, name=name, source_id=self.source, spec=TABLE))

        real()
        made = self.store.load().tables[self.created[-1]]
        self.model.create(self.created[-1], made, self._asked_at(made.backfill_id))

    def _asked_at(self, backfill_id: BackfillId | None) -> int:
        return self.store.load().backfills[backfill_id].asked_at if backfill_id else 0

    def _merge(self, step: Step) -> None:
        """Those that nobody has held; now and then somebody is faster."""
        state = self.model.state
        for group in arriving.merging(state, state.backfills):
            if not step.right:
                self._write(merge_backfills, self.source, group[:1])
                continue
            self._write(merge_backfills, self.source, group)
            self.model.state = arriving.with_merged(self.model.state, group)

    def _backfill(self, step: Step) -> BackfillId | None:
        backfills = sorted(self.model.state.backfills)
        return backfills[step.pick % len(backfills)] if backfills else None

    def _hold(self, step: Step) -> None:
        if (backfill_id := self._backfill(step)) is not None:
            store = CatalogBackfillStore(self.catalog, self.source, backfill_id)
            seen = self.model.state.backfills[backfill_id].lease
            self._same(lambda: store.claim(step.job, stood_still=seen), lambda: self.model.hold(backfill_id, step.job))

    def _follow(self, step: Step) -> None:
        """A group of the next ticks, for the tables that stand lowest; sometimes by somebody who lost the lease."""
        if (backfill_id := self._backfill(step)) is None:
            return
        store = CatalogBackfillStore(self.catalog, self.source, backfill_id)
        mine = arriving.arriving(self.model.state, backfill_id)
        first = min(table.next_tick for table in mine.values()) + (0 if step.right else 1)
        ticks = store.ticks(first, 1 + step.amount)
        if not ticks:
            return
        lease = self.model.state.backfills[backfill_id].lease
        holder = Holder(lease.job_id or step.job, lease.epoch if step.right else lease.epoch - 1)
        outcomes: dict[ItemId, Outcome] = {t: Done(rows=2) for t, s in mine.items() if s.next_tick == first}
        if step.pick == 6 and outcomes:
            outcomes[min(outcomes)] = Left("why")
        self._same(
            lambda: store.follow(holder, first=first, last=ticks[-1], outcomes=outcomes, stats={}),
            lambda: self.model.follow(backfill_id, holder, first, ticks[-1], outcomes),
        )

    def _arm(self, step: Step) -> None:
        for table in arriving.arriving(self.model.state):
            self._write(lambda session, t=table: arrivals.arm_table(session, t, max_lag=step.amount))
            self.model.arm(table, step.amount)

    def _retire(self, step: Step) -> None:
        backfill_id = self._backfill(step)
        if backfill_id is None or step.pick < 6:
            return
        gone = arriving.arriving(self.model.state, backfill_id)
        self._write(arrivals.retire_backfill, backfill_id)
        state = self.model.state
        beside = {t: s for t, s in state.replacements.items() if t not in gone or gone[t] != s}
        stalled = {t: arriving.retire(s) for t, s in gone.items() if not arriving.is_replacement(state, s)}
        self.model.state = arriving.with_arrivals(replace(state, replacements=beside), stalled)

    def _resume(self, step: Step) -> None:
        state = self.model.state
        if not state.tables:
            return
        table = sorted(state.tables)[step.pick % len(state.tables)]
        found = state.replacements.get(table) or state.tables[table]
        if found.status != "stalled":
            with pytest.raises(NotResumable):
                self._write(arrivals.resume_table, table)
            return
        heals = found.upper > 0 and not arriving.is_replacement(state, found)
        self._write(arrivals.resume_table, table)
        after = self.store.load()
        now = (after.replacements.get(table) or after.tables[table]).backfill_id
        assert now is not None
        self.model.note_backfill(now, self._asked_at(now), *([table] if heals else []))
        resumed = arriving.resume(found, now)
        self.model.state = arriving.with_arrivals(self.model.state, {table: resumed})

    def _resnapshot(self, step: Step) -> None:
        state = self.model.state
        if not state.tables:
            return
        table = sorted(state.tables)[step.pick % len(state.tables)]
        current, earlier = state.tables[table], state.replacements.get(table)
        if current.status not in ("live", "stalled") or (earlier is not None and earlier.status != "stalled"):
            with pytest.raises(NotResumable):
                self._write(arrivals.resnapshot_table, table)
            return
        self._write(arrivals.resnapshot_table, table)
        new = self.store.load().replacements[table]
        wanted = TableState(table, "backfilling", new.generation, 1, current.start, current.start, next_tick=1)
        assert new == replace(wanted, backfill_id=new.backfill_id)
        assert new.generation > max(current.generation, earlier.generation if earlier else 0)
        self.model.note_backfill(new.backfill_id, self._asked_at(new.backfill_id))
        self.model.state = replace(self.model.state, replacements={**state.replacements, table: new})

    def _drop(self, step: Step) -> None:
        if self.created:
            table = self.created[step.pick % len(self.created)]
            self._same(lambda: self._write(items.drop_table, table), lambda: self.model.drop(table))

    def _insert(self, step: Step) -> None:
        state = self.model.state
        lower = state.upper if step.right else Position({"0": 99})
        upper = lower.join(Position({"0": lower[0] + step.amount}))
        tick = Tick(state.last_number + 1, lower, upper, state.last_timestamp + step.pick, repaired=True)
        self._same(
            lambda: self._write(
                insert_repaired_tick, self.source, tick.number, tick.lower, tick.upper, tick.mz_timestamp
            ),
            lambda: self.model.insert(tick),
        )

    def _remove(self, step: Step) -> None:
        state = self.model.state
        if not state.pending:
            with pytest.raises(LogConflict):
                self._write(remove_pending_tick, self.source, state.last_number)
            return
        self._write(remove_pending_tick, self.source, state.last_number)
        after = self.store.load()
        assert after.pending == state.pending[:-1]
        assert after.members <= state.members
        back = {table: after.tables[table] for table in state.members - after.members}
        assert {table.status for table in back.values()} <= {"created", "stalled"}
        assert all(table.position == after.upper for table in back.values() if not after.pending)
        self.model.state = after

    def _write(self, operation: Callable[..., Any], *arguments: Any) -> None:
        session: Session
        with self.catalog.write() as session:
            operation(session, *arguments)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    # A list of steps reads well as it is; making it shorter takes minutes on a database.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=15, max_size=60))
def test_the_catalog_does_what_the_rules_say(catalog: Catalog, steps: list[Step]) -> None:
    pair = Pair(catalog)
    for first in (Step("create", JobId("a"), True, 1, 0), Step("create", JobId("a"), True, 1, 0)):
        pair.take(first)
    pair.take(Step("claim", JobId("a"), False, 1, 0))
    for step in steps:
        pair.take(step)
