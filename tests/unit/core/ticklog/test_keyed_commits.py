"""What a commit to a keyed collection does next."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.core.ticklog.keyed_commits import (
    Answer,
    GroupGoal,
    Loaded,
    Sent,
    Step,
    TickGoal,
    compaction_stands,
    next_step,
    put_counts,
    rows_to_carry,
    what_to_put,
)

TICK = TickGoal(50)
GROUP = GroupGoal(50, planned=30)
KNOWN = {10, 30, 40, 50, 60}


def step(goal: TickGoal | GroupGoal, loaded: Loaded, sent: Sent | None = None, *, own: bool = False) -> Step:
    return next_step(goal, loaded, sent, knows=KNOWN.__contains__, is_own=lambda: own)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (None, Step.PLAN),
        (30, Step.PLAN),
        (50, Step.HELD),
        (60, Step.FENCED),
        (31, Step.UNKNOWN),
        (61, Step.UNKNOWN),
    ],
)
def test_what_a_collection_holds_decides_about_a_tick(stored: int | None, wanted: Step) -> None:
    assert step(TICK, Loaded(7, stored)) is wanted


def test_a_collection_may_be_past_a_repaired_tick() -> None:
    assert step(TickGoal(50, repaired=True), Loaded(7, 60)) is Step.PASSED
    assert step(TickGoal(50, repaired=True), Loaded(7, 61)) is Step.UNKNOWN
    assert step(TickGoal(50, repaired=True), Loaded(7, 40)) is Step.PLAN


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (30, Step.PLAN),
        (None, Step.PLAN_AGAIN),
        (10, Step.PLAN_AGAIN),
        (40, Step.PLAN_AGAIN),
        (50, Step.PLAN_AGAIN),
        (60, Step.PLAN_AGAIN),
    ],
)
def test_the_events_of_a_group_follow_one_tick_only(stored: int | None, wanted: Step) -> None:
    assert step(GROUP, Loaded(7, stored), own=True) is wanted


def test_the_first_group_of_a_collection_follows_no_tick() -> None:
    assert step(GroupGoal(50, planned=None), Loaded(0, None)) is Step.PLAN
    assert step(GroupGoal(50, planned=None), Loaded(1, 10)) is Step.PLAN_AGAIN


def test_a_group_that_was_sent_is_known_by_what_its_entry_says() -> None:
    sent = Sent(8, "unclear")
    assert step(GROUP, Loaded(8, 50), sent, own=True) is Step.HELD
    assert step(GROUP, Loaded(8, 50), sent, own=False) is Step.PLAN_AGAIN


@pytest.mark.parametrize("goal", [TICK, GROUP])
def test_what_was_put_is_done(goal: TickGoal | GroupGoal) -> None:
    assert step(goal, Loaded(7, 30), Sent(8, "put")) is Step.DONE


@pytest.mark.parametrize("goal", [TICK, GROUP])
@pytest.mark.parametrize(
    ("answer", "version", "wanted"),
    [
        ("refused", 7, Step.RELOAD),  # somebody's entry is at 8: this handle has not seen it
        ("refused", 8, Step.PLAN),
        ("refused", 9, Step.PLAN),
        ("unclear", 6, Step.RELOAD),  # older than what the plan was made upon
        ("unclear", 7, Step.PLAN),  # nothing has landed; whatever arrives later finds 8 taken, or takes it from us
        ("unclear", 8, Step.PLAN),
    ],
)
def test_after_an_answer_a_plan_is_made_upon_what_the_log_shows_now(
    goal: TickGoal | GroupGoal, answer: Answer, version: int, wanted: Step
) -> None:
    assert step(goal, Loaded(version, 30), Sent(8, answer)) is wanted


@pytest.mark.parametrize("answer", ["refused", "unclear"])
def test_a_commit_whose_answer_was_lost_is_found(answer: Answer) -> None:
    assert step(TICK, Loaded(8, 50), Sent(8, answer)) is Step.HELD


def test_a_plan_has_one_slot() -> None:
    assert Loaded(7, 30).slot == 8


def test_a_plan_without_effect_is_a_fence_or_nothing() -> None:
    assert what_to_put(has_effect=True, forced=False) == "rows"
    assert what_to_put(has_effect=True, forced=True) == "rows"
    assert what_to_put(has_effect=False, forced=True) == "fence"
    assert what_to_put(has_effect=False, forced=False) is None


def test_a_group_whose_ticks_cancel_each_other_out_is_marked_by_a_fence() -> None:
    assert what_to_put(has_effect=False, forced=False, spans_ticks=True) == "fence"
    assert what_to_put(has_effect=True, forced=False, spans_ticks=True) == "rows"


def test_a_compaction_needs_all_of_its_files() -> None:
    assert compaction_stands(["a", "b"], ["a", "b", "c"])
    assert not compaction_stands(["a", "b"], ["b", "c"])


@pytest.mark.parametrize(
    ("is_ours", "entries", "checkpoints", "counts"),
    [
        (True, [7, 8], [], True),
        (True, [7, 8, 9], [], True),
        (True, [7, 8], [7], True),
        (True, [0, 7, 8], [0, 7], True),
        (False, [7, 8], [], False),
        (True, [7], [], False),
        (True, [8], [], False),
        (True, [6, 8], [], False),
        (True, [7, 8], [8], False),
        (True, [7, 8, 9, 10], [10], False),
        (True, [7, 8], [7, 12], False),
    ],
)
def test_a_put_counts_if_it_is_ours_follows_its_version_and_is_below_no_checkpoint(
    is_ours: bool, entries: list[int], checkpoints: list[int], counts: bool
) -> None:
    assert put_counts(8, is_ours=is_ours, entries=entries, checkpoints=checkpoints) is counts


READ = {"a": {1, 2}, "b": set[int]()}


def test_rows_that_were_taken_away_since_are_carried_over() -> None:
    assert rows_to_carry(READ, {"a": {1, 2, 5}, "b": {0}, "c": {9}}) == {"a": {5}, "b": {0}}
    assert rows_to_carry(READ, {"a": {1, 2}, "b": {0}}) == {"b": {0}}
    assert rows_to_carry(READ, {"a": {1, 2}, "b": set()}) == {}
    assert rows_to_carry({}, {"a": {1}}) == {}


def test_a_compaction_does_not_stand_without_an_input_or_with_rows_that_are_back() -> None:
    assert rows_to_carry(READ, {"a": {1, 2}}) is None
    assert rows_to_carry(READ, {"a": {1}, "b": set()}) is None
    assert rows_to_carry(READ, {"a": {1, 3, 4}, "b": set()}) is None, "it has grown, and has lost a row"
