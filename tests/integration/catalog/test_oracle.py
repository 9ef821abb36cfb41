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

from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.repairs import insert_repaired_tick, remove_pending_tick
from airflow_provider_mzshare.control.catalog.ticks import CatalogTickStore
from airflow_provider_mzshare.errors import Fenced, LogConflict, MzShareError, NeedsBackfill, UnknownItem
from airflow_provider_mzshare.storage.ticks import rules
from airflow_provider_mzshare.storage.ticks.state import (
    Done,
    Holder,
    Lease,
    Left,
    Minted,
    Outcome,
    SourceState,
    TableState,
    Tick,
)
from airflow_provider_mzshare.types.ids import ItemId, JobId
from airflow_provider_mzshare.types.positions import Position
from tests.support.catalog import TABLE, TOPIC_ID, add_source

NAMES = count()
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

STEPS = st.builds(
    Step,
    what=st.sampled_from([*RARE, "empty", *["mint"] * 5, *["commit"] * 6]),
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
        self.state = rules.after_commit(self.state, rules.commit(self.state, holder, number, outcomes))

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

    def create(self, table: ItemId) -> None:
        if self.state.upper != self.state.start:
            raise NeedsBackfill("t", "s")
        start = self.state.start
        new = TableState(table, "created", generation=1, spec_version=1, start=start, position=start)
        self.state = replace(self.state, tables={**self.state.tables, table: new})

    def drop(self, table: ItemId) -> None:
        if table not in self.state.tables:
            raise UnknownItem("table", table)
        rest = {key: value for key, value in self.state.tables.items() if key != table}
        self.state = replace(self.state, tables=rest, members=self.state.members - {table})

    def insert(self, tick: Tick) -> None:
        state = self.state
        if (
            tick.number != state.last_number + 1
            or tick.lower != state.upper
            or tick.mz_timestamp <= state.last_timestamp
        ):
            raise LogConflict("does not fit")
        joins = tuple(table.table_id for table in rules.joining(state))
        self.state = rules.after_mint(state, Minted(tick, joins))


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
            outcomes[table] = Left("why") if index == step.pick else Done(rows=index)
        self._same(
            lambda: self.store.commit(holder, number, outcomes, {"n": 1.0}),
            lambda: self.model.commit(holder, number, outcomes),
        )

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

        if self.model.state.upper != self.model.state.start:
            with pytest.raises(NeedsBackfill):
                real()
        else:
            real()
            self.model.create(self.created[-1])

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
        back = {table for table in state.members - after.members if after.tables[table].status == "created"}
        assert back == state.members - after.members
        assert all(after.tables[table].position == after.upper for table in back if not after.pending)
        self.model.state = after

    def _write(self, operation: Callable[..., Any], *arguments: Any) -> None:
        session: Session
        with self.catalog.write() as session:
            operation(session, *arguments)


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    # A list of steps reads well as it is; making it shorter takes minutes on a database.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=15, max_size=40))
def test_the_catalog_does_what_the_rules_say(catalog: Catalog, steps: list[Step]) -> None:
    pair = Pair(catalog)
    for first in (Step("create", JobId("a"), True, 1, 0), Step("create", JobId("a"), True, 1, 0)):
        pair.take(first)
    pair.take(Step("claim", JobId("a"), False, 1, 0))
    for step in steps:
        pair.take(step)
