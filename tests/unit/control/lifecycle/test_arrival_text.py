"""How a table that is being brought up gets on, judged from what was found."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.objects.items import SourceItem
from airflow_provider_mzshare.control.catalog.queries.overviews import ArrivalOverview, SnapshotOverview, SourceOverview
from airflow_provider_mzshare.control.lifecycle.arrival_text import judge_arrival, pace_of
from airflow_provider_mzshare.core.ids import BackfillId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from tests.unit.control.supervision.test_status import ITEM, JOB, overview

BACKFILL = replace(JOB, id=JobId("backfill-1"), kind="backfill", backfill_id=BackfillId("b-1"))
ARRIVAL = ArrivalOverview(
    generation=1,
    replaces=False,
    status="backfilling",
    reason=None,
    position=Position({"0": 12_000}),
    lag=30,
    behind=38_000,
    done=12_000,
    total=50_000,
    rate=800.0,
    backfill_id=BackfillId("b-1"),
    job=BACKFILL,
    samples=2,
)


FAR = "30 ticks behind, 12,000 of 50,000 offsets"


def source(rate: float | None = 0.0, **settings: object) -> SourceOverview:
    item = replace(ITEM, settings=SourceSettings(**settings))  # type: ignore[arg-type]
    return overview(item=item, rate=rate)


def told(arrival: ArrivalOverview = ARRIVAL, of: SourceOverview | None = None, alive: bool | None = True) -> str:
    return judge_arrival(arrival, of or source(), alive, "public.t").reason


def test_how_far_how_fast_and_how_long() -> None:
    assert told() == "30 ticks behind, 12,000 of 50,000 offsets, 800/s, 48 s left"
    assert told(replace(ARRIVAL, rate=None)) == "30 ticks behind, 12,000 of 50,000 offsets"
    close = replace(ARRIVAL, lag=1, behind=400, done=49_600)
    assert told(close, source(rate=1000.0)) == "1 tick behind, 49,600 of 50,000 offsets, 800/s"


def test_one_that_has_caught_up_says_what_it_waits_for() -> None:
    caught_up = replace(ARRIVAL, lag=0, behind=0, done=50_000)
    verdict = judge_arrival(caught_up, source(), True, "public.t")
    assert verdict.reason.endswith("50,000 offsets, ready for the cutover, but nobody has asked for it yet")
    assert (verdict.held_up, verdict.hint) == ("", "mzshare wait public.t")
    verdict = judge_arrival(replace(caught_up, status="converging"), source(), True, "public.t")
    assert verdict.reason.endswith("50,000 offsets, the next tick makes it live")
    assert verdict.hint == ""
    indexed = judge_arrival(replace(caught_up, status="converging", keyed=True), source(), True, "public.t")
    assert indexed.reason.endswith("50,000 offsets, a tick makes it live once its index is made")


def test_one_without_an_index_is_the_source_s_app_s_to_bring_on() -> None:
    without = replace(ARRIVAL, status="indexing", lag=2, behind=10, done=49_990, job=None, keyed=True)
    verdict = judge_arrival(without, source(), False, "public.t")
    told = "2 ticks behind, 49,990 of 50,000 offsets, its source's app makes its index and follows it meanwhile"
    assert (verdict.reason, verdict.held_up, verdict.hint) == (told, "", "")
    gone = judge_arrival(without, replace(source(), job=None), False, "public.t")
    assert gone.reason.endswith("of 50,000 offsets, it goes on when its source runs")
    assert gone.hint == "mzshare start public.s"


def test_what_the_log_gains_meanwhile_is_counted() -> None:
    assert pace_of(ARRIVAL, source(rate=300.0)).seconds_left == 76.0
    stopped = replace(source(rate=300.0), job=replace(JOB, state="stopped"))
    assert pace_of(ARRIVAL, stopped).seconds_left == 47.5, "a log that does not grow gains nothing"


def test_one_that_cannot_keep_pace_says_so_with_both_rates() -> None:
    behind = told(of=source(rate=2000.0))
    assert behind == "30 ticks behind, 12,000 of 50,000 offsets, falls behind: 800/s against 2,000/s"
    assert "falls behind" not in told(replace(ARRIVAL, lag=2), source(rate=2000.0)), "it follows tick by tick"
    limited = told(of=source(rate=500.0, backfill_rate=100))
    assert limited.endswith("falls behind: 100/s against 500/s"), "no faster than it may be"


def test_there_is_no_alarm_before_two_samples_and_no_rate_without_records() -> None:
    first = replace(ARRIVAL, samples=1)
    assert told(first, source(rate=2000.0)) == "30 ticks behind, 12,000 of 50,000 offsets, 800/s"
    assert "falls behind" in told(replace(first, samples=2), source(rate=2000.0))
    empty = replace(ARRIVAL, rate=None, samples=0)
    assert told(empty, source(rate=2.0, backfill_rate=100)) == "30 ticks behind, 12,000 of 50,000 offsets"


def test_what_was_read_within_a_group_is_not_to_be_done_again() -> None:
    reading = replace(ARRIVAL, done=30_000)
    assert pace_of(reading, source()).seconds_left == 25.0


def test_a_pause_is_told_with_how_to_end_it() -> None:
    verdict = judge_arrival(ARRIVAL, source(backfill_rate=0), True, "public.t")
    assert verdict.held_up == "paused: the source's BACKFILL RATE is 0"
    assert verdict.reason.endswith("offsets, paused: the source's BACKFILL RATE is 0")
    assert verdict.hint == "mzshare sql 'ALTER SOURCE public.s RESET (BACKFILL RATE)'"


@pytest.mark.parametrize(
    ("job", "alive", "held_up", "hint"),
    [
        (None, False, "nothing has started its backfill yet", "mzshare start public.s"),
        (replace(BACKFILL, state="stopped"), False, "nothing has started its backfill yet", "mzshare start public.s"),
        (BACKFILL, False, "the process of job backfill-1 is gone", "mzshare reconcile"),
        (BACKFILL, None, "", ""),
        (replace(BACKFILL, state="starting"), True, "its backfill starts", ""),
        (replace(BACKFILL, stop_requested=True), True, "its backfill ends after the current ticks", ""),
        (replace(BACKFILL, error="Kafka is away. Try: mzshare doctor"), True, "Kafka is away", "mzshare doctor, or"),
        (
            replace(BACKFILL, state="failed", error="It broke."), False,
            "its backfill failed: It broke.", "mzshare logs public.t",
        ),
        (
            replace(BACKFILL, state="lost", error="its process is gone"), False,
            "its backfill was lost and must be started again: its process is gone", "mzshare reconcile",
        ),
    ],
)  # fmt: skip
def test_what_holds_it_up_and_the_next_step(job: Job | None, alive: bool | None, held_up: str, hint: str) -> None:
    verdict = judge_arrival(replace(ARRIVAL, job=job), source(), alive, "public.t")
    assert verdict.held_up == held_up
    assert verdict.hint.startswith(hint)
    assert bool(verdict.hint) == bool(hint)


def test_a_source_that_was_asked_to_stop_holds_its_backfills_up() -> None:
    stopped = replace(source(), item=replace(ITEM, desired="stopped"))
    verdict = judge_arrival(replace(ARRIVAL, job=replace(BACKFILL, state="stopped")), stopped, False, "public.t")
    assert (verdict.held_up, verdict.hint) == ("its source was asked to stop", "mzshare start public.s")


def test_a_new_generation_is_told_apart_from_the_current_one() -> None:
    new = replace(ARRIVAL, generation=2, replaces=True)
    assert told(new).startswith("generation 2: backfilling, 30 ticks behind, ")
    stalled = replace(new, status="stalled", reason="the disk is full", backfill_id=None, job=None)
    verdict = judge_arrival(stalled, source(), False, "public.t")
    assert verdict.reason == "generation 2: stalled: the disk is full"
    assert verdict.hint.startswith("mzshare sql 'ALTER TABLE public.t RESUME', when the cause is gone; mzshare logs")


@pytest.mark.parametrize("job", [None, replace(BACKFILL, state="failed"), BACKFILL])
def test_hints_survive_a_shell(job: Job | None) -> None:
    name = 'it\'s "mine" $x'
    item: SourceItem = replace(ITEM, name=("public", name), settings=SourceSettings(backfill_rate=0))
    verdict = judge_arrival(replace(ARRIVAL, job=job), overview(item=item), True, 'public."it\'s ""mine"" $x"')
    assert any('public."it\'s ""mine"" $x"' in word for word in shlex.split(verdict.hint))


@pytest.mark.parametrize(
    ("snapshot", "text"),
    [
        (SnapshotOverview(), "waits for its snapshot"),
        (SnapshotOverview(0, 0), "0 of about 0 rows of its snapshot are read"),
        (SnapshotOverview(1_200, 50_000), "1,200 of about 50,000 rows of its snapshot are read"),
        (SnapshotOverview(landed=True), f"its snapshot is read, and it follows what was committed meanwhile, {FAR}"),
    ],
)
def test_one_that_begins_with_a_snapshot_says_how_far_that_is(snapshot: SnapshotOverview, text: str) -> None:
    assert told(replace(ARRIVAL, snapshot=snapshot)) == text
    at_the_end = judge_arrival(replace(ARRIVAL, lag=0, snapshot=snapshot), source(), True, "public.t")
    assert "ready for the cutover" not in at_the_end.reason
    assert at_the_end.hint == ""
