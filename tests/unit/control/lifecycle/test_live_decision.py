"""When a wait ends and what it says, case by case, without a catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence
from airflow_provider_mzshare.control.lifecycle.live_decision import Answer, Decision, LiveWait, Question, answer
from airflow_provider_mzshare.control.lifecycle.status_values import SourceStatus, TableStatus
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import JobFailed, UnknownItem

SOURCE = SourceStatus(
    id="u1", name="public.s", health="running", reason="", hint="", job="j", pid=1, tables=1, tick=4,
    mz_timestamp=4000, position=Position({"0": 40}), age_seconds=1.0, rate=10.0,
)  # fmt: skip
LIVE = TableStatus(
    id="u2", name="public.t", source="public.s", status="live", reason="", hint="", rows=40, errors=0, since=1,
    upper=4001, position=Position({"0": 40}), rate=10.0,
)  # fmt: skip
ARRIVING = replace(
    LIVE, status="backfilling", upper=None, position=Position({"0": 10}), backfill="b-1", backfill_job="j-1",
    done=10, total=40, ticks_behind=3, behind=30, backfill_rate=5.0, seconds_left=6.0,
)  # fmt: skip
FOUND = Convergence(
    table_id=ItemId("u2"), table="t", source_id=ItemId("u1"), source="s", source_status="active", source_problem=None,
    status="backfilling", replacement=None, generation=1, awaited=1, reason=None, lag=3, behind=30,
    history_complete=False, backfill_id=BackfillId("b-1"), job_id=None, job_state=None, job_error=None,
    certificate=None,
)  # fmt: skip
NEVER_STARTED = {"health": "waiting", "reason": "nothing has started it yet", "hint": "mzshare start public.s"}


def decided(*tables: TableStatus, found: Convergence | None = None, target: Position | None = None, **source: Any):
    wait = LiveWait("t", "caught-up" if target else "live", target or Position())
    answers = [answer(Question("t"), found)] if found else []
    return wait.decide(replace(SOURCE, **source), tables, answers, seconds=2.0)


def failure(decision: Decision) -> tuple[str, str]:
    assert isinstance(decision.error, JobFailed)
    return decision.error.message, decision.error.hint


# ── one table, by the catalog alone ───────────────────────────────────────────────────────────────────────────────────


def test_a_table_on_its_way_is_waited_for_and_a_live_one_is_the_answer() -> None:
    assert not answer(Question("t"), FOUND).ends
    live = answer(Question("t"), replace(FOUND, status="live"))
    assert (live.ends, live.result, live.error) == (True, {"table": "t", "status": "live"}, None)
    assert not answer(Question("t"), replace(FOUND, status="live", replacement="backfilling")).ends


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"status": "live"}, None),
        ({"status": "live", "replacement": "stalled", "reason": "full"}, None),
        ({"status": "stalled", "reason": "full", "replacement": "backfilling"}, None),
        ({"status": "stalled", "reason": "full"}, "table t is stalled: full"),
        ({"status": "dropped"}, "table t was dropped"),
        ({"status": "live", "source_status": "stalled", "source_problem": "gone"}, "source s is stalled: gone"),
    ],
)
def test_a_time_is_waited_for_while_the_table_goes_on(changed: dict[str, Any], says: str | None) -> None:
    question, found = Question("t", upper=100), replace(FOUND, upper=99, **changed)
    error = answer(question, found).error
    assert (error.message if error else None) == says
    there = answer(question, replace(found, upper=100))
    assert there.error is None or changed["status"] == "dropped"
    assert there.ends, "what is final stays so"


@pytest.mark.parametrize(
    ("changed", "message", "hint"),
    [
        ({"status": "dropped"}, "table t was dropped", "mzshare status"),
        (
            {"status": "stalled", "reason": "disk full"},
            "table t is stalled: disk full",
            "mzshare sql 'ALTER TABLE t RESUME', when the cause is gone; mzshare logs t shows more",
        ),
        (
            {"job_state": "failed", "job_error": "no java"},
            "backfill b-1 of table t failed: no java",
            "mzshare status t",
        ),
        (
            {"source_status": "stalled", "source_problem": "offsets are gone"},
            "source s is stalled: offsets are gone",
            "mzshare status t",
        ),
    ],
)
def test_what_cannot_become_live_by_itself_is_an_error_with_a_next_step(
    changed: dict[str, Any], message: str, hint: str
) -> None:
    error = answer(Question("t"), replace(FOUND, **changed)).error
    assert error is not None
    assert (error.message, error.hint) == (message, hint)


def test_a_question_stays_about_the_table_and_the_generation_of_the_first_look() -> None:
    first = replace(FOUND, status="live", replacement="backfilling", awaited=2)
    question = Question("t", 5).about(first)
    assert question == Question("t", 5, ItemId("u2"), 2)
    assert question.about(replace(FOUND, table_id=ItemId("u9"), awaited=7)) == question
    given_up = answer(question, replace(FOUND, status="live", generation=1))
    assert given_up.error is not None
    assert given_up.error.message == "the new generation of table t was given up before it was live"
    assert answer(question, replace(FOUND, status="live", generation=2)).result is not None


def test_no_such_table() -> None:
    assert isinstance(answer(Question("t"), None).error, UnknownItem)


# ── a table, or all tables of a source, by their status ───────────────────────────────────────────────────────────────


def test_live_is_reached_when_every_table_is_live_has_a_tick_and_no_new_generation() -> None:
    assert decided(LIVE, LIVE).reached
    assert not decided(LIVE, ARRIVING).reached
    assert not decided(replace(LIVE, upper=None)).reached
    assert not decided(replace(LIVE, new_status="backfilling", new_generation=2)).reached


def test_caught_up_is_reached_where_the_upstream_ended_when_the_wait_began() -> None:
    assert decided(LIVE, target=Position({"0": 40})).reached
    behind = decided(LIVE, replace(LIVE, position=Position({"0": 30})), target=Position({"0": 50}))
    assert not behind.reached
    assert (behind.progress.done, behind.progress.total, behind.progress.note) == (0, 20, "the source is running")


@pytest.mark.parametrize("health", ["stalled", "failed", "lost", "stopped"])
def test_a_source_that_has_ended_fails_the_wait_although_its_tables_are_live(health: Any) -> None:
    decision = decided(LIVE, health=health, reason="so it is", hint="do this")
    assert failure(decision) == (f"source public.s is {health}: so it is", "do this")


def test_a_lost_source_is_waited_for_while_a_backfill_goes_on() -> None:
    assert decided(ARRIVING, found=FOUND, health="lost").error is None
    assert decided(ARRIVING, found=FOUND, health="failed").error is not None


def test_a_source_without_tables_fails_the_wait_and_one_that_nobody_has_started_does_not() -> None:
    assert failure(decided(**NEVER_STARTED)) == ("source public.s has no tables", "mzshare start public.s")
    waiting = decided(replace(LIVE, status="created", upper=None), **NEVER_STARTED)
    assert (waiting.error, waiting.progress.hint) == (None, "mzshare start public.s")
    assert waiting.progress.note == "the source is waiting (nothing has started it yet)"
    late = LiveWait("t", "live", Position()).timed_out(waiting, 0.5)
    assert late.line == (
        "t is not live after 0.5 s: the source is waiting (nothing has started it yet). Try: mzshare start public.s"
    )


def test_a_stalled_table_or_new_generation_fails_the_wait_unless_a_new_one_is_being_filled() -> None:
    stalled = replace(LIVE, status="stalled", reason="disk full", hint="resume")
    assert failure(decided(stalled)) == ("table public.t is stalled: disk full", "resume")
    assert decided(replace(stalled, new_status="backfilling", new_generation=2, backfill="b-2")).error is None
    beside = replace(LIVE, new_status="stalled", new_generation=2, reason="generation 2: stalled: x", hint="resume")
    assert failure(decided(beside)) == ("table public.t: generation 2: stalled: x", "resume")


def test_a_backfill_that_failed_fails_the_wait_with_the_way_to_its_log() -> None:
    failed = replace(FOUND, job_state="failed", job_error="no java")
    assert failure(decided(ARRIVING, found=failed)) == ("backfill b-1 of table t failed: no java", "mzshare logs t")
    dropped = decided(ARRIVING, found=replace(FOUND, status="dropped")).error
    assert isinstance(dropped, UnknownItem)


def test_who_has_to_be_started_and_who_waits_for_its_turn_is_told() -> None:
    new = [replace(ARRIVING, id=f"u{n}", backfill=backfill, backfill_job=None) for n, backfill in enumerate("aab")]
    decision = decided(LIVE, ARRIVING, *new)
    assert decision.unstarted == {"a": ["u0", "u1"], "b": ["u2"]}
    assert not decision.queued
    assert decided(replace(ARRIVING, queue_place=2)).queued


def test_a_table_on_its_way_is_told_with_what_holds_it_up() -> None:
    assert decided(ARRIVING).progress.note == "public.t is backfilling, 3 ticks behind"
    held = replace(ARRIVING, ticks_behind=1, held_up="its backfill starts", hint="look")
    assert decided(held).progress.note == "public.t is backfilling, 1 tick behind (its backfill starts)"
    assert decided(held).progress.hint == "look"
    unfed = decided(ARRIVING, **NEVER_STARTED).progress
    assert unfed.note.endswith("(its source is waiting: nothing has started it yet)")
    assert unfed.hint == "mzshare start public.s", "the source's app does the cutover"


def test_answers_without_a_table_decide_nothing_about_a_status() -> None:
    wait = LiveWait("t", "live", Position())
    assert wait.decide(SOURCE, [ARRIVING], [Answer(error=UnknownItem("table", "t"))], 0.0).error is None
