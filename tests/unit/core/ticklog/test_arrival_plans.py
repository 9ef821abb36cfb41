"""How a table comes in follows from what was found; and a plan is stale once that has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival, TombstonesLost, check_current
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState, Tick
from airflow_provider_mzshare.errors import NotResumable, StalePlan, TransientError, UpstreamChanged

START = Position({0: 10})
UPPER = Position({0: 250_010, 1: 749_000, 2: 1})
NEW = SourceState(ItemId("u1"), "active", "topic-1", START)
RUNNING = replace(NEW, last=Tick(120, START, UPPER, 1_000, committed=True))
LATER = replace(RUNNING, last=Tick(121, UPPER, Position({0: 250_011, 1: 749_000, 2: 1}), 1_001, committed=True))
U2, B1 = ItemId("u2"), BackfillId("b-1")


def table(status: str, *, backfill_id: BackfillId | None = None, **changes: object) -> TableState:
    values = {
        "table_id": ItemId("u2"), "status": status, "generation": 1, "spec_version": 1, "start": START,
        "position": Position({0: 200_000, 1: 749_000, 2: 1}), "next_tick": 100, "backfill_id": backfill_id,
    }  # fmt: skip
    return TableState(**{**values, **changes})  # type: ignore[arg-type]


def holding(current: TableState, replacement: TableState | None = None) -> SourceState:
    replacements = {replacement.table_id: replacement} if replacement else {}
    return replace(RUNNING, tables={current.table_id: current}, replacements=replacements)


def decided(arrival: Arrival) -> Arrival:
    """Without what it rests on."""
    return replace(arrival, rests_on={})


# ── the decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_table_shares_every_tick_while_nothing_is_read_past_the_start(snapshot: bool) -> None:
    idle = replace(NEW, last=Tick(7, START, START, 1_000, committed=True))
    assert decided(arrival_plans.create(NEW, "t", snapshot=snapshot)) == Arrival("t", "share", START, 1)
    assert decided(arrival_plans.create(idle, "t", snapshot=snapshot)) == Arrival("t", "share", START, 8)


def test_a_later_table_is_backfilled_or_begins_at_now() -> None:
    assert decided(arrival_plans.create(RUNNING, "t", snapshot=True)) == Arrival("t", "backfill", START, 1)
    assert decided(arrival_plans.create(RUNNING, "t", snapshot=False)) == Arrival("t", "now", UPPER, 121)


def test_a_tick_that_is_only_minted_counts_as_read() -> None:
    minted = replace(NEW, pending=(Tick(1, START, UPPER, 1_000),))
    assert arrival_plans.create(minted, "t", snapshot=True).way == "backfill"
    assert decided(arrival_plans.create(minted, "t", snapshot=False)) == Arrival("t", "now", UPPER, 2)


def test_a_stalled_table_resumes_where_it_stands() -> None:
    stalled = table("stalled")
    arrival = arrival_plans.resume(holding(stalled), stalled.table_id, "t")
    assert decided(arrival) == Arrival("t", "backfill", stalled.position, 100, False, "resume", stalled.table_id)


def test_a_stalled_new_generation_resumes_where_it_stands() -> None:
    replacement = table("stalled", generation=2, position=START, next_tick=1)
    arrival = arrival_plans.resume(holding(table("live"), replacement), ItemId("u2"), "t")
    assert decided(arrival) == Arrival("t", "backfill", START, 1, True, "resume", ItemId("u2"))


@pytest.mark.parametrize("status", ["live", "stalled"])
def test_a_table_with_rows_is_read_again_from_its_start(status: str) -> None:
    state = holding(table(status, start=Position({0: 90})))
    arrival = arrival_plans.resnapshot(state, ItemId("u2"), "t", start_tick=5)
    assert decided(arrival) == Arrival("t", "backfill", Position({0: 90}), 5, True, "resnapshot", ItemId("u2"))


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("live", "it is live: there is nothing to resume"),
        ("created", "it joins at the next tick: there is nothing to resume"),
        ("backfilling", "backfill b-1 brings it up already"),
        ("converging", "backfill b-1 brings it up already"),
    ],
)
def test_what_is_not_stalled_is_not_resumed(status: str, why: str) -> None:
    state = holding(table(status, backfill_id=B1 if status in ("backfilling", "converging") else None))
    with pytest.raises(NotResumable) as caught:
        arrival_plans.resume(state, ItemId("u2"), "public.t")
    assert caught.value.why == why
    assert (caught.value.backfill_id is not None) == ("b-1" in why)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ("created", "it joins at the next tick: there is nothing to read again"),
        ("backfilling", "backfill b-1 brings it up already"),
    ],
)
def test_what_has_no_rows_or_gets_them_is_not_read_again(status: str, why: str) -> None:
    state = holding(table(status, backfill_id=B1 if status == "backfilling" else None))
    with pytest.raises(NotResumable, match=why):
        arrival_plans.resnapshot(state, ItemId("u2"), "public.t", start_tick=1)


@pytest.mark.parametrize("current", ["live", "stalled"])
def test_beside_a_new_generation_that_is_filled_nothing_else_is_begun(current: str) -> None:
    state = holding(table(current), table("converging", backfill_id=B1, generation=2))
    with pytest.raises(NotResumable, match="b-1"):
        arrival_plans.resume(state, ItemId("u2"), "t")
    with pytest.raises(NotResumable, match="b-1"):
        arrival_plans.resnapshot(state, ItemId("u2"), "t", start_tick=1)


# ── what they rest on ─────────────────────────────────────────────────────────────────────────────────────────────────

STALLED, LIVE = holding(table("stalled")), holding(table("live"))
REPLACED = holding(table("live"), table("stalled", generation=2, position=START, next_tick=1))


def create(snapshot: bool = True) -> Callable[[SourceState], Arrival]:
    return lambda state: arrival_plans.create(state, "public.t", snapshot=snapshot)


def resume(state: SourceState) -> Arrival:
    return arrival_plans.resume(state, U2, "public.t")


def resnapshot(state: SourceState) -> Arrival:
    return arrival_plans.resnapshot(state, U2, "public.t", start_tick=1)


def moved(state: SourceState, **changes: object) -> SourceState:
    (current,) = state.tables.values()
    return replace(state, tables={U2: replace(current, **changes)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "then", "now", "change"),
    [
        (
            create(),
            NEW,
            replace(NEW, pending=(Tick(1, START, UPPER, 1),)),
            'the end of its source\'s log was {"0":10},',
        ),
        (create(), NEW, replace(NEW, last=Tick(1, START, START, 1)), "the next tick was 1, and is 2 now"),
        (create(), NEW, replace(NEW, start=UPPER), "the start of its source was"),
        (create(), NEW, replace(NEW, status="dropped"), "its source was there, and is dropped now"),
        (create(), RUNNING, replace(RUNNING, status="dropped"), "its source was there, and is dropped now"),
        (create(), RUNNING, NEW, "the log of its source was past its start, and is at its start now"),
        (create(snapshot=False), RUNNING, LATER, "the next tick was 121, and is 122 now"),
        (resume, STALLED, moved(STALLED, status="backfilling", backfill_id=B1), "its state was stalled, and is back"),
        (resume, STALLED, moved(STALLED, status="live"), "its state was stalled, and is live now"),
        (resume, STALLED, moved(STALLED, next_tick=110), "its next tick was 100, and is 110 now"),
        (resume, STALLED, replace(STALLED, tables={}), "table u2 was dropped"),
        (resume, STALLED, REPLACED, "its generation was 1, and is 2 now"),
        (resume, REPLACED, replace(REPLACED, replacements={}), "its state was stalled, and is live now"),
        (resnapshot, LIVE, moved(LIVE, status="stalled"), "its state was live, and is stalled now"),
        (resnapshot, LIVE, moved(LIVE, generation=2), "its generation was 1, and is 2 now"),
        (resnapshot, LIVE, REPLACED, "the new generation beside it was none, and is generation 2, stalled now"),
        (resnapshot, REPLACED, LIVE, "beside it was generation 2, stalled, and is none now"),
        (resnapshot, LIVE, replace(LIVE, tables={}), "table u2 was dropped"),
    ],
)
def test_a_plan_is_stale_once_something_it_rests_on_has_changed(
    plan: Callable[[SourceState], Arrival], then: SourceState, now: SourceState, change: str
) -> None:
    check_current(then, plan(then))
    with pytest.raises(StalePlan) as caught:
        check_current(now, plan(then))
    assert change in caught.value.message
    assert caught.value.message.startswith("the plan for table public.t is out of date: ")
    assert caught.value.hint == "run the same statement again; it makes a new plan"
    assert isinstance(caught.value, TransientError), "who runs the statement again gets a new plan"


@pytest.mark.parametrize(
    ("plan", "then", "now"),
    [
        (create(), RUNNING, LATER),
        (create(), RUNNING, LIVE),
        (create(), RUNNING, replace(RUNNING, status="stalled")),
        (resume, STALLED, replace(STALLED, last=LATER.last)),
        (resnapshot, LIVE, moved(LIVE, position=UPPER, next_tick=121, upper=1_001)),
    ],
)
def test_a_log_that_goes_on_makes_no_plan_stale_that_does_not_depend_on_its_end(
    plan: Callable[[SourceState], Arrival], then: SourceState, now: SourceState
) -> None:
    check_current(now, plan(then))


def test_the_states_that_are_begun_with_are_those_of_the_one_table() -> None:
    assert create()(NEW).begins_as == "created"
    assert create(snapshot=False)(RUNNING).begins_as == "created"
    assert create()(RUNNING).begins_as == resnapshot(LIVE).begins_as == "backfilling"
    assert [create(snapshot)(RUNNING).first_tick for snapshot in (True, False)] == [1, 121]


# ── what the upstream no longer has ───────────────────────────────────────────────────────────────────────────────────


def test_a_table_that_may_have_missed_a_delete_is_not_resumed() -> None:
    stalled = table("stalled", keyed=True, reason="tombstones_lost: …")
    with pytest.raises(TombstonesLost) as caught:
        arrival_plans.resume(holding(stalled), U2, "public.t")
    assert caught.value.hint == "mzshare sql 'ALTER TABLE public.t RESNAPSHOT', which reads it anew"
    again = arrival_plans.resnapshot(holding(stalled), U2, "public.t", start_tick=1)
    assert (again.position, again.replaces) == (START, True)


def test_a_table_that_would_stall_before_a_truncation_again_is_not_resumed() -> None:
    with pytest.raises(NotResumable, match="would stall before that again"):
        arrival_plans.resume(holding(table("stalled", keyed=True, reason="truncated: …")), U2, "public.t")
    assert arrival_plans.resume(holding(table("stalled", reason="it was truncated")), U2, "public.t").table_id == U2


def test_what_is_gone_is_left_out() -> None:
    """It begins with the first tick of which anything is there: in some partitions all of it may be."""
    ends = [Position({0: 10}), Position({0: 20}), Position({0: 20, 1: 5}), Position({0: 30, 1: 9})]
    ticks = [Tick(n + 1, ends[n], ends[n + 1], n) for n in range(3)]
    asked = Arrival("t", "backfill", Position({0: 10}), 1, replaces=True)
    found = arrival_plans.without_gone(asked, Position({0: 25, 1: 2}), ticks)
    assert (found.position, found.tick, found.gone) == (Position({0: 20}), 2, Position({0: 25, 1: 2}))
    with pytest.raises(UpstreamChanged, match="nothing is left"):
        arrival_plans.without_gone(asked, Position({0: 30, 1: 9}), ticks)
