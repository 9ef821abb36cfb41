"""The rules of the tick log, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Lease, Left, SourceState, TableState, Tick
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, LogConflict, UpstreamChanged

ME = Holder(JobId("me"), 3)
START, HERE, THERE = Position(), Position({0: 10}), Position({0: 20, 1: 5})
U2, U3 = ItemId("u2"), ItemId("u3")


def table(table_id: ItemId, status: str = "created", at: Position = START) -> TableState:
    return TableState(table_id, status, 1, 1, START, at)  # type: ignore[arg-type]


def source(**changes: object) -> SourceState:
    state = SourceState(
        ItemId("u1"), "active", "id-1", START, lease=Lease(3, JobId("me"), 7), tables={U2: table(U2), U3: table(U3)}
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def mint(state: SourceState, lower: Position = START, upper: Position = HERE, **changes: object) -> SourceState:
    given: dict[str, object] = {"incarnation": "id-1", "now_ms": 1000, **changes}
    return rules.after_mint(state, rules.mint(state, ME, lower=lower, upper=upper, **given))  # type: ignore[arg-type]


# ── leases ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_free_lease_is_taken_and_the_epoch_grows() -> None:
    assert rules.claim(Lease(4, None, 9), JobId("me")) == Lease(5, JobId("me"), 10)


def test_a_beating_lease_is_refused_one_that_stood_still_is_taken() -> None:
    seen = Lease(4, JobId("other"), 9)
    with pytest.raises(LeaseTaken, match="other"):
        rules.claim(seen, JobId("me"))
    with pytest.raises(LeaseTaken):
        rules.claim(rules.beat(seen, Holder(JobId("other"), 4)), JobId("me"), stood_still=seen)
    assert rules.claim(seen, JobId("me"), stood_still=seen).epoch == 5


def test_the_lease_of_one_that_is_gone_is_free_at_once_and_fences_it_should_it_live() -> None:
    held = Lease(3, JobId("me"), 7)
    freed = rules.give_up(held, JobId("me"))
    assert rules.give_up(held, JobId("other")) == held, "it has been taken over meanwhile"
    assert rules.claim(freed, JobId("other")) == Lease(4, JobId("other"), 8)
    for change in (rules.beat, rules.release):
        with pytest.raises(Fenced, match="nobody holds epoch 3"):
            change(freed, ME)


def test_a_lapsed_lease_that_nobody_took_stays_valid() -> None:
    assert rules.beat(Lease(3, JobId("me"), 7), ME).beat == 8


@pytest.mark.parametrize("lease", [Lease(4, JobId("me"), 7), Lease(3, JobId("other"), 7), Lease(3, None, 7)])
def test_epoch_and_job_both_count(lease: Lease) -> None:
    """Epochs repeat after a catalog was restored; job ids do not."""
    for change in (rules.beat, rules.release):
        with pytest.raises(Fenced):
            change(lease, ME)
    with pytest.raises(Fenced):
        mint(source(lease=lease))
    with pytest.raises(Fenced):
        rules.commit(replace(mint(source()), lease=lease), ME, 1, {U2: Done(), U3: Done()})


# ── minting ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_minting_fixes_range_time_and_members() -> None:
    state = mint(source())
    (tick,) = state.pending
    assert (tick.number, tick.lower, tick.upper, tick.mz_timestamp) == (1, START, HERE, 1000)
    assert state.members == {U2, U3}
    assert {t.status for t in state.tables.values()} == {"live"}


def test_time_grows_whatever_the_clock_does() -> None:
    state = source(last=Tick(1, START, HERE, 5000, committed=True), tables={})
    assert mint(state, HERE, THERE, now_ms=10).pending[0].mz_timestamp == 5001


@pytest.mark.parametrize(
    ("state", "lower", "upper"),
    [
        (source(), HERE, THERE),
        (source(last=Tick(1, START, THERE, 1, committed=True)), START, THERE),
        (source(last=Tick(1, START, THERE, 1, committed=True)), THERE, HERE),
        (mint(source()), HERE, THERE),
    ],
    ids=["not at the start", "begins before the last upper", "goes backwards", "a tick is pending"],
)
def test_a_batch_that_does_not_fit_the_log_is_refused(state: SourceState, lower: Position, upper: Position) -> None:
    with pytest.raises(LogConflict):
        mint(state, lower, upper)


def test_another_incarnation_is_refused() -> None:
    with pytest.raises(UpstreamChanged) as caught:
        mint(source(), incarnation="id-2")
    assert caught.value.reason == "topic_recreated"


@pytest.mark.parametrize("status", ["stalled", "dropped"])
def test_nothing_is_minted_for_a_source_that_is_not_active(status: str) -> None:
    with pytest.raises(Fenced, match=status):
        mint(source(status=status))


def test_a_table_joins_only_where_it_stands_at_the_log_s_end() -> None:
    state = source(last=Tick(1, START, HERE, 1, committed=True), tables={U2: table(U2), U3: table(U3, at=HERE)})
    assert [t.table_id for t in rules.joining(state)] == [U3]


# ── committing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_those_that_are_done_move() -> None:
    state = mint(source())
    after = rules.after_commit(state, rules.commit(state, ME, 1, {U2: Done(), U3: Left("full disk")}))
    assert (after.tables[U2].position, after.tables[U2].upper, after.tables[U2].since) == (HERE, 1001, 1000)
    assert (after.tables[U3].position, after.tables[U3].upper) == (START, 0)
    assert (after.tables[U3].status, after.tables[U3].reason) == ("stalled", "full disk")
    assert after.members == {U2}
    assert after.last == replace(state.pending[0], committed=True)
    assert not after.pending


def test_a_member_without_an_outcome_keeps_the_tick_open() -> None:
    with pytest.raises(LogConflict, match="u3"):
        rules.commit(mint(source()), ME, 1, {U2: Done()})


def test_a_member_that_left_meanwhile_stays_left() -> None:
    state = replace(mint(source()), members=frozenset({U2}))
    assert set(rules.commit(state, ME, 1, {U2: Done(), U3: Done()}).outcomes) == {U2}


def test_pending_ticks_of_a_repair_are_committed_in_order() -> None:
    state = source(
        pending=(Tick(1, START, HERE, 1, repaired=True), Tick(2, HERE, THERE, 2, repaired=True)), members=frozenset()
    )
    with pytest.raises(LogConflict, match="tick 1 comes before"):
        rules.commit(state, ME, 2, {})
    assert rules.after_commit(state, rules.commit(state, ME, 1, {})).pending == state.pending[1:]


def test_three_attempts_together_then_alone() -> None:
    state = mint(source())
    alone = []
    for _ in range(4):
        tick = rules.begin_attempt(state, ME, 1)
        alone.append(rules.executes_alone(tick))
        state = replace(state, pending=(tick,))
    assert alone == [False, False, True, True], "the mint counts as the first attempt"


def test_an_attempt_that_storage_ended_is_not_counted() -> None:
    state = mint(source())
    for _ in range(10):
        tick = rules.begin_attempt(state, ME, 1)
        assert tick.attempts == 2, "it was begun before, and is no nearer to being executed alone"
        state = replace(state, pending=(replace(tick, suspect=U2, deaths=2),))
        spared = rules.spare_attempt(state, ME, 1)
        assert (spared.attempts, spared.suspect, spared.deaths) == (1, None, 0)
        assert rules.spare_attempt(replace(state, pending=(spared,)), ME, 1).attempts == 1, "never taken for new"
        state = replace(state, pending=(spared,))
    with pytest.raises(Fenced):
        rules.spare_attempt(state, Holder(JobId("other"), 3), 1)


def test_only_deaths_in_a_row_make_a_member_leave() -> None:
    state = mint(source())

    def suspect(table_id: ItemId | None) -> Tick:
        nonlocal state
        state = replace(state, pending=(rules.suspect(state, ME, 1, table_id),))
        return state.pending[0]

    def restart() -> Tick:
        nonlocal state
        state = replace(state, pending=(rules.begin_attempt(state, ME, 1),))
        return state.pending[0]

    for _ in range(10):
        assert not rules.is_deadly(restart(), U2), "attempts that ended in order are no deaths"
    deadly = []
    for _ in range(3):
        suspect(U2)
        deadly.append(rules.is_deadly(restart(), U2))
    assert deadly == [False, False, True]
    assert not rules.is_deadly(state.pending[0], U3)
    suspect(U3)
    assert not rules.is_deadly(restart(), U3), "another member's deaths are not counted"
    suspect(None)
    assert restart().deaths == 0
