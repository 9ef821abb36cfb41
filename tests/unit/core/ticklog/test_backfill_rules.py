"""The rules for tables that come later, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules, rules
from airflow_provider_mzshare.core.ticklog.state import (
    BackfillState,
    Done,
    Holder,
    Lease,
    Left,
    Outcome,
    SourceState,
    TableState,
    Tick,
    Unindexed,
)
from airflow_provider_mzshare.errors import Fenced, LogConflict

U2, U3, U4 = ItemId("u2"), ItemId("u3"), ItemId("u4")
B1, B2 = BackfillId("b-1"), BackfillId("b-2")
P, ME = Holder(JobId("p"), 1), Holder(JobId("me"), 3)
AT = [Position(), Position({0: 10}), Position({0: 20, 1: 5}), Position({0: 20, 1: 5}), Position({0: 20, 1: 9})]
"""Where tick n ends; tick 3 is empty."""
TICKS = [Tick(n, AT[n - 1], AT[n], 1000 * n, committed=True) for n in range(1, len(AT))]


def table(
    table_id: ItemId, status: str = "backfilling", *, got: int = 0, backfill: BackfillId | None = B1
) -> TableState:
    """One that has got the ticks up to ``got``."""
    return TableState(
        table_id,
        status,  # type: ignore[arg-type]
        1,
        1,
        AT[0],
        AT[got],
        next_tick=got + 1,
        upper=1000 * got + 1 if got else 0,
        since=1000 * got,
        backfill_id=backfill if status in backfill_rules.ARRIVING else None,
    )


def source(*tables: TableState, pending: bool = False, **changes: object) -> SourceState:
    """A source with four ticks, the last of which may be pending. Backfills began after the second."""
    backfills = {name: BackfillState(name, 2, Lease(3, JobId("me"), 7)) for name in (B1, B2)}
    state = SourceState(
        ItemId("u1"),
        "active",
        "id-1",
        AT[0],
        lease=Lease(1, P.job_id, 1),
        last=TICKS[2] if pending else TICKS[3],
        pending=(TICKS[3],) if pending else (),
        tables={t.table_id: t for t in tables},
        backfills=backfills,
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def follow(
    state: SourceState, outcomes: dict[ItemId, Outcome], *, first: int = 1, last: int = 2
) -> backfill_rules.Followed:
    return backfill_rules.follow(state, B1, ME, first=first, last=TICKS[last - 1], outcomes=outcomes)


def mint(state: SourceState) -> SourceState:
    upper = Position({0: 30, 1: 9})
    minted = rules.mint(state, P, lower=state.upper, upper=upper, incarnation="id-1", now_ms=9000)
    return rules.after_mint(state, minted)


# ── what belongs to a backfill ────────────────────────────────────────────────────────────────────────────────────────


def test_a_backfill_has_its_own_tables_while_they_arrive() -> None:
    tables = (table(U2, "live", got=4), table(U3), table(U4, "converging", backfill=B2), table(ItemId("u5"), "stalled"))
    assert set(backfill_rules.arriving(source(*tables))) == {U3, U4}
    assert set(backfill_rules.arriving(source(*tables), B1)) == {U3}


def test_a_replacement_stands_for_its_table() -> None:
    new = replace(table(U2), generation=2)
    state = source(table(U2, "live", got=4), replacements={U2: new})
    assert backfill_rules.arriving(state, B1) == {U2: new}
    assert backfill_rules.is_replacement(state, new)
    assert not backfill_rules.is_replacement(state, state.tables[U2])


def test_a_backfill_without_tables_is_over() -> None:
    with pytest.raises(Fenced, match="has ended"):
        backfill_rules.check_present(source(backfills={}), B1)


def test_a_dropped_source_fences_its_backfills_a_stalled_one_does_not() -> None:
    with pytest.raises(Fenced, match="dropped"):
        follow(source(table(U3), status="dropped"), {U3: Done()})
    assert follow(source(table(U3), status="stalled"), {U3: Done()}).tables[U3].next_tick == 3


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_group_moves_a_new_table_to_its_end_and_no_read_inside_it_is_possible() -> None:
    moved = follow(source(table(U3)), {U3: Done()}).tables[U3]
    assert (moved.position, moved.next_tick, moved.upper, moved.since) == (AT[2], 3, 2001, 2000)
    assert (moved.status, moved.backfill_id) == ("backfilling", B1)
    again = follow(source(moved), {U3: Done()}, first=3, last=4).tables[U3]
    assert (again.position, again.next_tick, again.upper, again.since) == (AT[4], 5, 4001, 4000)


def test_a_table_that_heals_keeps_what_could_be_read() -> None:
    healing = {B1: BackfillState(B1, 4, Lease(3, JobId("me"), 7), healing=frozenset({U3}))}
    had = replace(table(U3, got=2), since=500)
    moved = follow(source(had, backfills=healing), {U3: Done()}, first=3, last=4).tables[U3]
    assert (moved.upper, moved.since) == (4001, 500)
    never = table(U3)
    assert follow(source(never, backfills=healing), {U3: Done()}).tables[U3].since == 2000


def test_what_fails_stalls_alone_where_it_stands() -> None:
    followed = follow(source(table(U3), table(U4)), {U3: Done(), U4: Left("full disk")})
    left = followed.tables[U4]
    assert (left.status, left.reason, left.backfill_id) == ("stalled", "full disk", None)
    assert (left.position, left.next_tick) == (AT[0], 1)
    assert followed.tables[U3].next_tick == 3
    assert not followed.gone


def test_a_table_that_fails_while_it_converges_stalls_too() -> None:
    assert follow(source(table(U3, "converging")), {U3: Left("no")}).tables[U3].status == "stalled"


@pytest.mark.parametrize(
    "now", [[], [table(U3, "live", got=4)], [table(U3, "stalled")], [table(U3, backfill=B2)]],
    ids=["dropped", "cut over", "retired", "resumed under another backfill"],
)  # fmt: skip
def test_a_table_that_is_not_this_backfill_s_any_more_is_left_alone(now: list[TableState]) -> None:
    followed = follow(source(table(U4), *now), {U3: Done(), U4: Done()})
    assert followed.gone == {U3}
    assert set(followed.tables) == {U4}


def test_a_group_begins_where_the_table_stands() -> None:
    for got in (0, 2):
        with pytest.raises(LogConflict, match=f"goes on at tick {got + 1}, not at tick 2"):
            follow(source(table(U3, got=got)), {U3: Done()}, first=2)


@pytest.mark.parametrize("lease", [Lease(4, JobId("me"), 7), Lease(3, JobId("other"), 7), Lease(3, None, 7)])
def test_only_the_holder_of_the_backfill_s_own_lease_moves_its_tables(lease: Lease) -> None:
    state = source(table(U3), backfills={B1: BackfillState(B1, 2, lease)}, lease=Lease(3, JobId("me"), 7))
    with pytest.raises(Fenced):
        follow(state, {U3: Done()})


# ── convergence ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("got", "behind"), [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)])
@pytest.mark.parametrize("pending", [False, True])
def test_lag_counts_minted_ticks(got: int, behind: int, pending: bool) -> None:
    arriving = table(U3, got=got)
    assert backfill_rules.lag(source(arriving, pending=pending), arriving) == behind


def test_empty_ticks_that_bring_nothing_do_not_count() -> None:
    arriving = table(U3, got=2)
    state = source(arriving, last=TICKS[2])
    assert (state.last_number, backfill_rules.lag(state, arriving)) == (3, 0)


@pytest.mark.parametrize(
    ("got", "max_lag", "arms"),
    [(1, 9, False), (2, 1, False), (2, 2, True), (3, 0, False), (3, 1, True), (4, 0, True)],
)
def test_a_table_is_armed_with_its_history_and_within_the_lag(got: int, max_lag: int, arms: bool) -> None:
    state = source(table(U3, got=got))
    armed = backfill_rules.arm(state, U3, max_lag=max_lag)
    assert armed == (replace(state.tables[U3], status="converging") if arms else None)


def test_where_there_is_nothing_to_read_the_history_is_complete() -> None:
    idle = source(table(U3), last=Tick(1, AT[0], AT[0], 1000, committed=True))
    assert backfill_rules.history_is_complete(idle, idle.tables[U3])
    assert backfill_rules.arm(idle, U3, max_lag=0) is not None


@pytest.mark.parametrize("status", ["created", "converging", "live", "stalled"])
def test_nothing_else_is_armed(status: str) -> None:
    assert backfill_rules.arm(source(table(U3, status, got=4)), U3, max_lag=9) is None
    assert backfill_rules.arm(source(), U3, max_lag=9) is None


def test_a_replacement_is_armed_in_its_table_s_stead() -> None:
    new = replace(table(U2, got=4), generation=2)
    armed = backfill_rules.arm(source(table(U2, "live", got=4), replacements={U2: new}), U2, max_lag=0)
    assert armed == replace(new, status="converging")


def test_one_tick_behind_is_worth_a_wait() -> None:
    assert set(backfill_rules.awaited(source(table(U3, "converging", got=3)))) == {B1}
    both = source(table(U3, "converging", got=3), table(U4, "converging", got=3, backfill=B2))
    assert set(backfill_rules.awaited(both)) == {B1, B2}


@pytest.mark.parametrize(
    "state",
    [
        source(table(U3, "converging", got=2)),
        source(table(U3, "converging", got=4)),
        source(table(U3, "backfilling", got=3)),
        source(table(U3, "converging", got=3), pending=True),
        source(table(U3, "converging", got=2), last=TICKS[2]),
        source(table(U3, "converging", got=3), backfills={}),
        source(table(U3, "converging"), last=None),
    ],
    ids=["two behind", "there", "not armed", "a tick is pending", "only an empty tick behind", "over", "no ticks"],
)
def test_nothing_else_is_waited_for(state: SourceState) -> None:
    assert not backfill_rules.awaited(state)


# ── indexes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def keyed(one: TableState) -> TableState:
    return replace(one, keyed=True)


def test_a_keyed_table_is_cut_over_only_when_the_app_has_its_index() -> None:
    """Of a new generation it needs that one's, not the index of the current one."""
    new = replace(keyed(table(U2, "converging", got=4)), generation=2)
    state = source(keyed(table(U2, "live", got=4)), keyed(table(U3, "converging", got=4)), replacements={U2: new})
    for indexed, joins, swaps in (
        ((), [], []),
        ({(U2, 1)}, [], []),
        ({(U3, 1)}, [U3], []),
        ({(U2, 2), (U3, 1)}, [U3], [U2]),
        (None, [U3], [U2]),
    ):
        assert [t.table_id for t in rules.joining(state, indexed)] == joins
        assert [t.table_id for t in rules.swapping(state, indexed)] == swaps
        assert backfill_rules.completes_cutover(state, indexed) is bool(joins or swaps)
        minted = rules.mint(state, P, lower=AT[4], upper=AT[4], incarnation="id-1", now_ms=9000, indexed=indexed)
        assert (list(minted.joins), list(minted.swaps)) == (joins, swaps)


def test_an_index_is_nothing_to_tables_whose_rows_never_change_or_that_have_none_yet() -> None:
    tables = table(U3, "converging", got=4), keyed(table(U4, "created", got=4))
    assert [t.table_id for t in rules.joining(source(*tables), ())] == [U3, U4]


def test_no_tick_waits_for_the_backfill_of_a_table_that_could_not_be_cut_over() -> None:
    state = source(keyed(table(U3, "converging", got=3)), table(U4, "converging", got=3, backfill=B2))
    assert set(backfill_rules.awaited(state, ())) == {B2}
    assert set(backfill_rules.awaited(state, {(U3, 1)})) == {B1, B2}


def test_indexes_are_made_for_keyed_members_and_for_those_that_converge() -> None:
    new = replace(keyed(table(U2, "converging", got=4)), generation=2)
    state = source(
        keyed(table(U2, "live", got=4)), keyed(table(U3, "backfilling", got=4)), table(U4, "converging", got=4),
        replacements={U2: new}, members=frozenset({U2}),
    )  # fmt: skip
    assert backfill_rules.converging_keyed(state) == {(U2, 2)}
    assert backfill_rules.to_index(state) == {(U2, 1), (U2, 2)}


def test_an_empty_tick_would_complete_a_cutover_where_a_table_stands_at_the_end() -> None:
    assert backfill_rules.completes_cutover(source(table(U3, "converging", got=4)))
    new = replace(table(U2, "converging", got=4), generation=2)
    assert backfill_rules.completes_cutover(source(table(U2, "live", got=4), replacements={U2: new}))


@pytest.mark.parametrize(
    "state",
    [
        source(table(U3, "converging", got=3)),
        source(table(U3, "backfilling", got=4)),
        source(table(U3, "converging", got=4), pending=True),
        source(table(U3, "converging", got=4), status="stalled"),
    ],
    ids=["behind", "not armed", "a tick is pending", "the source is stalled"],
)
def test_otherwise_an_empty_tick_completes_nothing(state: SourceState) -> None:
    assert not backfill_rules.completes_cutover(state)


# ── cutover ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_mint_cuts_over_what_stands_exactly_where_it_begins() -> None:
    partly = replace(table(U4, "converging", got=4), position=Position({0: 20, 1: 8}))
    ahead = replace(table(ItemId("u5"), "converging", got=4), position=Position({0: 20, 1: 10}))
    state = mint(source(table(U2, "backfilling", got=4), table(U3, "converging", got=4), partly, ahead))
    assert state.members == {U3}
    assert (state.tables[U3].status, state.tables[U3].backfill_id) == ("live", None)
    assert [state.tables[t].status for t in (U2, U4, ItemId("u5"))] == ["backfilling", "converging", "converging"]


def test_positions_count_and_not_tick_numbers() -> None:
    """A table that has left out empty ticks stands where one that has got them stands."""
    state = mint(source(table(U3, "converging", got=2), last=TICKS[2]))
    assert state.members == {U3}
    assert state.tables[U3].next_tick == 4, "not the empty tick 3: its spec may be an older one"
    done = rules.after_commit(state, rules.commit(state, P, 4, {U3: Done()}))
    assert (done.tables[U3].next_tick, done.tables[U3].upper, done.tables[U3].since) == (5, 9001, 2000)


def test_a_backfill_may_be_ahead_of_the_pending_tick_s_commit() -> None:
    state = source(table(U3, "converging", got=3), pending=True)
    followed = backfill_rules.follow(state, B1, ME, first=4, last=TICKS[3], outcomes={U3: Done()})
    state = replace(state, tables=dict(followed.tables))
    assert state.tables[U3].position == state.upper
    state = rules.after_commit(state, rules.commit(state, P, 4, {}))
    assert mint(state).members == {U3}


def test_a_swap_puts_the_new_generation_in_the_old_one_s_place() -> None:
    old = replace(table(U2, "live", got=4), since=500)
    new = replace(table(U2, "converging", got=4), generation=2, since=4000)
    state = mint(source(old, replacements={U2: new}, members=frozenset({U2})))
    now = state.tables[U2]
    assert (now.generation, now.status, now.backfill_id, now.position) == (2, "live", None, AT[4])
    assert (now.since, now.upper) == (500, 4001)
    assert not state.replacements
    assert state.members == {U2}


def test_a_swap_takes_back_no_answer() -> None:
    """The new generation need not have executed the empty ticks that the old one has."""
    new = replace(table(U2, "converging", got=2), generation=2)
    state = mint(source(table(U2, "live", got=3), replacements={U2: new}, last=TICKS[2]))
    assert (state.tables[U2].generation, state.tables[U2].upper, state.tables[U2].next_tick) == (2, 3001, 4)


def test_a_stalled_generation_is_replaced_too() -> None:
    new = replace(table(U2, "converging", got=4), generation=2)
    state = mint(source(replace(table(U2, "stalled", got=1), reason="full disk"), replacements={U2: new}))
    assert (state.tables[U2].status, state.tables[U2].reason, state.tables[U2].since) == ("live", None, 1000)
    assert state.tables[U2].upper == 1001, "the new one answers from the swap's commit on, not before"
    assert state.members == {U2}
    done = rules.after_commit(state, rules.commit(state, P, 5, {U2: Done()}))
    assert (done.tables[U2].since, done.tables[U2].upper) == (1000, 9001)


def test_a_generation_that_never_had_a_tick_leaves_nothing_to_read_from_before_the_swap() -> None:
    new = replace(table(U2, "converging", got=4), generation=2)
    state = mint(source(replace(table(U2, "stalled"), reason="full disk"), replacements={U2: new}))
    assert (state.tables[U2].since, state.tables[U2].upper) == (0, 0)
    done = rules.after_commit(state, rules.commit(state, P, 5, {U2: Done()}))
    assert (done.tables[U2].since, done.tables[U2].upper) == (9000, 9001)


# ── healing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stalled_table_goes_on_where_it_stands() -> None:
    stalled = replace(table(U3, "stalled", got=2), reason="full disk")
    resumed = backfill_rules.resume(stalled, B2)
    assert resumed == replace(stalled, status="backfilling", reason=None, backfill_id=B2)


@pytest.mark.parametrize("status", ["created", "backfilling", "converging", "live", "dropped"])
def test_only_a_stalled_table_can_be_resumed(status: str) -> None:
    with pytest.raises(LogConflict, match=f"is {status} cannot be resumed"):
        backfill_rules.resume(table(U3, status), B2)


@pytest.mark.parametrize("status", backfill_rules.ARRIVING)
def test_a_retired_backfill_leaves_tables_that_can_be_resumed(status: str) -> None:
    retired = backfill_rules.retire(table(U3, status, got=2))
    assert (retired.status, retired.reason) == ("stalled", "its backfill was retired before the cutover")
    assert (retired.position, retired.next_tick, retired.backfill_id) == (AT[2], 3, None)
    assert backfill_rules.resume(retired, B2).next_tick == 3


# ── what a decision does to the state ─────────────────────────────────────────────────────────────────────────────────


def test_a_change_meets_the_generation_it_is_for() -> None:
    old, new = table(U2, "stalled", got=1), replace(table(U2), generation=2)
    state = source(old, table(U3, backfill=B2), replacements={U2: new})
    moved = replace(new, next_tick=3)
    after = backfill_rules.with_arrivals(state, {U2: moved})
    assert (after.tables[U2], after.replacements) == (old, {U2: moved})
    resumed = backfill_rules.resume(old, B1)
    after = backfill_rules.with_arrivals(state, {U2: resumed})
    assert (after.tables[U2], after.replacements) == (resumed, {U2: new})


def test_a_backfill_is_over_with_its_last_table() -> None:
    state = source(table(U3), table(U4, "converging", got=4, backfill=B2))
    assert set(backfill_rules.with_arrivals(state, {U3: backfill_rules.retire(state.tables[U3])}).backfills) == {B2}
    assert set(mint(state).backfills) == {B1}


# ── without an index ──────────────────────────────────────────────────────────────────────────────────────────────────


def left() -> SourceState:
    """The last tick is pending; a member that was live leaves it, and another gets it."""
    members = (replace(table(U2, "live", got=3), keyed=True), table(U3, "live", got=3))
    state = source(*members, pending=True, members=frozenset({U2, U3}), backfills={})
    committed = rules.commit(state, P, 4, {U2: Unindexed(), U3: Done()})
    return rules.after_commit(state, committed, B1)


def held(state: SourceState) -> SourceState:
    return replace(state, backfills={B1: replace(state.backfills[B1], lease=Lease(3, ME.job_id, 7))})


def test_a_member_without_an_index_leaves_where_it_stands_and_nobody_else_is_touched() -> None:
    state = left()
    assert (state.tables[U2].status, state.tables[U2].backfill_id, state.tables[U2].next_tick) == ("indexing", B1, 4)
    assert (state.tables[U3].status, state.tables[U3].next_tick) == ("live", 5)
    assert state.members == {U3}
    assert state.backfills[B1].healing == {U2}, "what could be read of it can be read"
    assert backfill_rules.inside(state) == {B1}
    assert backfill_rules.converging_keyed(state) == {(U2, 1)}, "its index is made beside the ticks"


def test_it_comes_back_by_the_ordinary_rule_once_the_app_has_its_index() -> None:
    state = held(left())
    assert not rules.joining(state, {(U2, 1)}), "it is a tick behind"
    followed = backfill_rules.follow(state, B1, ME, first=4, last=TICKS[3], outcomes={U2: Done()})
    there = backfill_rules.with_arrivals(state, followed.tables)
    assert not rules.joining(there, ())
    assert [one.table_id for one in rules.joining(there, {(U2, 1)})] == [U2]
    assert backfill_rules.completes_cutover(there, {(U2, 1)}), "an empty tick is enough"
    assert there.tables[U2].since == 3000


def test_nobody_merges_its_backfill_and_it_cannot_leave_twice() -> None:
    state = left()
    late = replace(table(U4, got=2, backfill=B2))
    both = replace(
        state,
        tables={**state.tables, U4: late},
        backfills={**state.backfills, B2: replace(state.backfills[B1], backfill_id=B2)},
    )
    assert backfill_rules.merging(both, [B1, B2]) == []
    with pytest.raises(LogConflict, match="is in a backfill already"):
        backfill_rules.follow(held(state), B1, ME, first=4, last=TICKS[3], outcomes={U2: Unindexed()})


def test_where_its_new_generation_comes_the_current_one_does_not_come_back_first() -> None:
    state = left()
    there = replace(state.tables[U2], position=AT[4], next_tick=5)
    new = replace(there, generation=2, status="converging", backfill_id=B2)
    both = replace(state, tables={**state.tables, U2: there}, replacements={U2: new})
    assert [one.generation for one in rules.swapping(both)] == [2]
    assert rules.joining(both) == []
    assert backfill_rules.converging_keyed(both) == {(U2, 1), (U2, 2)}


# ── what a group is planned upon ──────────────────────────────────────────────────────────────────────────────────────


def check_planned(*planned: tuple[ItemId, int], lease: Lease | None, own: tuple[tuple[ItemId, int], ...]) -> None:
    backfill_rules.check_planned(lease, own, B1, ME, planned)


def test_a_group_is_put_while_its_lease_is_held_and_its_tables_are_the_backfills() -> None:
    held = Lease(ME.epoch, ME.job_id, 99)
    check_planned((U2, 1), lease=held, own=((U2, 1), (U3, 1)))
    with pytest.raises(LogConflict, match="u3"):
        check_planned((U2, 1), (U3, 1), lease=held, own=((U2, 1), (U3, 2)))


@pytest.mark.parametrize(
    "lease", [None, Lease(ME.epoch, None, 9), Lease(ME.epoch + 1, ME.job_id, 9), Lease(ME.epoch, P.job_id, 9)]
)
def test_whoever_has_lost_the_lease_puts_no_group(lease: Lease | None) -> None:
    with pytest.raises(Fenced):
        check_planned((U2, 1), lease=lease, own=((U2, 1),))
