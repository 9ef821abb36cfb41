"""What is to be started, stopped, given up and tidied away follows from what was found, and from nothing else."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.supervision.actions import (
    Abandon,
    Action,
    Arm,
    DroppedJournal,
    DroppedTable,
    GiveUp,
    Isolate,
    RemoveJournal,
    RemoveTable,
    Start,
    Stop,
    Tidy,
    Wait,
)
from airflow_provider_mzshare.control.supervision.decisions import (
    BACKOFF_CAP_SECONDS,
    DEATHS,
    HEALTHY_SECONDS,
    KEEP_LOGS,
    BackfillView,
    JobView,
    Overview,
    SourceView,
    backoff_seconds,
    deaths,
    plan,
)
from airflow_provider_mzshare.core.ids import JournalId


def planned(
    *jobs: JobView, status: str = "active", desired: str = "running", tables: int = 1, at_once: bool = False
) -> list[Action]:
    source = SourceView("u1", "public.s", status, desired, tables, jobs)
    return plan(Overview(sources=(source,)), at_once=at_once)


def running(job_id: str = "j1", **changes: object) -> JobView:
    return JobView(**{"job_id": job_id, "state": "running", "process": "alive", "age": 100.0, **changes})  # type: ignore[arg-type]


def failed(job_id: str = "j0", *, ran: float = 1.0, ended_ago: float = 0.0, state: str = "failed") -> JobView:
    return JobView(job_id=job_id, state=state, ran=ran, ended_ago=ended_ago)


def test_a_source_with_a_table_and_no_job_is_started() -> None:
    assert planned() == [Start("public.s", "it should run", "u1")]


@pytest.mark.parametrize(
    "changes", [{"tables": 0}, {"desired": "stopped"}, {"status": "stalled"}, {"status": "dropped"}]
)
def test_a_source_that_should_not_run_is_not_started(changes: dict[str, object]) -> None:
    assert planned(**changes) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("process", ["alive", "unknown"])
@pytest.mark.parametrize("state", ["launching", "starting", "running", "stopping"])
def test_no_second_app_is_started_beside_one_that_lives(state: str, process: str) -> None:
    assert planned(running(state=state, process=process)) == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tables": 0}, "no tables"),
        ({"desired": "stopped"}, "asked to stop"),
        ({"status": "dropped"}, "dropped"),
        ({"status": "stalled"}, "stalled"),
    ],
)
def test_what_should_not_run_is_stopped_all_of_it(changes: dict[str, object], why: str) -> None:
    (action,) = planned(running("j2"), running("j1"), **changes)  # type: ignore[arg-type]
    assert isinstance(action, Stop)
    assert action.job_ids == ("j2", "j1")
    assert why in action.why


def test_a_job_whose_process_is_gone_is_given_up_and_after_a_healthy_run_replaced_at_once() -> None:
    assert planned(running(process="gone", age=HEALTHY_SECONDS)) == [
        GiveUp("public.s", "its process is gone", "j1"),
        Start("public.s", "it should run", "u1"),
    ]


def test_a_quick_death_is_followed_by_a_wait() -> None:
    given_up, wait = planned(running(process="gone", age=3.0))
    assert isinstance(given_up, GiveUp)
    assert isinstance(wait, Wait)
    assert wait.seconds == 5.0


def test_a_heart_that_stands_still_is_given_up_although_the_process_is_there() -> None:
    given_up, start = planned(running(heart_stopped=True))
    assert isinstance(given_up, GiveUp)
    assert given_up.why == "its heartbeat has stopped"
    assert isinstance(start, Start)


def test_a_job_just_recorded_may_still_be_without_a_process() -> None:
    assert planned(JobView("j1", "launching", age=29.0, process="absent")) == []
    assert isinstance(planned(JobView("j1", "launching", age=31.0, process="absent"))[0], GiveUp)


def test_one_of_two_jobs_lost_leaves_the_other_alone() -> None:
    assert planned(running("j2"), running("j1", process="gone")) == [GiveUp("public.s", "its process is gone", "j1")]


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 5), (2, 10), (3, 20), (4, 40), (7, 300), (50, 300)])
def test_the_back_off_doubles_up_to_five_minutes(failures: int, seconds: float) -> None:
    assert backoff_seconds([failed()] * failures) == seconds
    assert seconds <= BACKOFF_CAP_SECONDS


def test_a_healthy_run_or_a_clean_end_begins_the_back_off_anew() -> None:
    assert backoff_seconds([failed(), failed(ran=HEALTHY_SECONDS), failed(), failed()]) == 5
    assert backoff_seconds([failed(), JobView("j", "stopped"), failed()]) == 5
    assert backoff_seconds([failed(ran=HEALTHY_SECONDS), failed()]) == 0
    assert backoff_seconds([failed(state="fenced"), failed(state="lost")]) == 10


def test_a_start_waits_for_the_back_off_and_then_happens() -> None:
    (wait,) = planned(failed(ended_ago=4.0), failed(ended_ago=60.0))
    assert isinstance(wait, Wait)
    assert wait.seconds == pytest.approx(6.0)
    assert isinstance(planned(failed(ended_ago=11.0), failed(ended_ago=60.0))[0], Start)


def test_a_user_who_asks_for_a_start_does_not_wait() -> None:
    assert isinstance(planned(failed(), at_once=True)[0], Start)


def test_an_app_that_stopped_cleanly_is_started_at_once_when_it_should_run_again() -> None:
    assert isinstance(planned(JobView("j1", "finished", ran=1.0))[0], Start)


def test_scratch_of_ended_jobs_goes_and_the_newest_logs_stay() -> None:
    ended = [JobView(f"j{n}", "stopped", has_scratch=n < 2, has_folder=True) for n in range(KEEP_LOGS + 2)]
    live = running("live", has_scratch=True, has_folder=True)
    actions = [(a.job_id, a.whole) for a in planned(live, *ended) if isinstance(a, Tidy)]
    assert actions == [("j0", False), ("j1", False), (f"j{KEEP_LOGS}", True), (f"j{KEEP_LOGS + 1}", True)]


def test_folders_of_dropped_tables_are_removed() -> None:
    table = DroppedTable("u2", "public.t", ("u2-g1-data-ab",))
    assert plan(Overview(dropped=(table,))) == [RemoveTable("public.t", "it was dropped", table)]
    journal = DroppedJournal(JournalId("journal:00"), "public.s")
    assert plan(Overview(journals=(journal,))) == [RemoveJournal("public.s", "its source was dropped", journal)]


# ── backfills ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SUBJECT = "backfill b-1 for public.a, public.b"


def planned_backfill(
    *jobs: JobView,
    tables: tuple[str, ...] = ("public.a", "public.b"),
    status: str = "active",
    desired: str = "running",
    ready: tuple[str, ...] = (),
    at_once: bool = False,
) -> list[Action]:
    """Beside an ingestion app that runs, or should not."""
    runs = (running("ingest"),) if (status, desired) == ("active", "running") else ()
    backfill = BackfillView("b-1", tables, jobs)
    source = SourceView("u1", "public.s", status, desired, 3, runs, (backfill,), ready)
    return plan(Overview(sources=(source,)), at_once=at_once)


def test_a_backfill_is_started_once_and_takes_nothing_from_the_ingestion_app() -> None:
    assert planned_backfill() == [Start(SUBJECT, "it should run", "u1", "b-1")]
    assert planned_backfill(running()) == []
    source = SourceView("u1", "public.s", "active", "running", 3, (), (BackfillView("b-1", ("t",), (running(),)),))
    assert plan(Overview(sources=(source,))) == [Start("public.s", "it should run", "u1")], (
        "its job is no ingestion job"
    )


def test_a_backfill_goes_on_whatever_holds_its_source_up() -> None:
    assert planned_backfill(status="stalled") == [Start(SUBJECT, "it should run", "u1", "b-1")]
    assert planned_backfill(running(), status="stalled") == []


@pytest.mark.parametrize(
    ("changes", "why", "by_itself"),
    [
        ({"desired": "stopped"}, "its source was asked to stop", False),
        ({"status": "dropped"}, "the source is dropped", False),
        ({"tables": ()}, "it has ended", True),
    ],
)
def test_a_backfill_that_should_not_run_is_stopped_and_not_started(
    changes: dict[str, object], why: str, by_itself: bool
) -> None:
    assert planned_backfill(**changes) == []  # type: ignore[arg-type]
    (stop,) = planned_backfill(running("j2"), running("j1"), **changes)  # type: ignore[arg-type]
    assert isinstance(stop, Stop)
    assert (stop.why, stop.job_ids, stop.by_itself) == (why, ("j2", "j1"), by_itself)


@pytest.mark.parametrize("trouble", [{"process": "gone"}, {"heart_stopped": True}, {"process": "absent"}])
def test_a_lost_backfill_is_given_up_and_started_after_its_own_back_off(trouble: dict[str, object]) -> None:
    given_up, start = planned_backfill(running(**trouble))
    assert (type(given_up), type(start)) == (GiveUp, Start)
    given_up, wait = planned_backfill(running(**{**trouble, "age": 40.0}), failed("j0", ended_ago=50))
    assert isinstance(given_up, GiveUp)
    assert isinstance(wait, Wait)
    assert (wait.subject, wait.seconds) == (SUBJECT, 10.0)
    assert isinstance(planned_backfill(failed(), at_once=True)[0], Start)
    assert isinstance(planned_backfill(JobView("j1", "finished", ran=1.0))[0], Start), "new tables have come to it"


def died(count: int, **changes: object) -> tuple[JobView, ...]:
    """Newest first; they died long ago, so no back-off is left."""
    given = {"state": "lost", "ran": 100.0, "ended_ago": 999.0, **changes}
    return tuple(JobView(**{"job_id": f"j{n}", **given}) for n in range(count, 0, -1))  # type: ignore[arg-type]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_backfill_that_dies_time_after_time_is_split_and_of_one_table_given_up(at_once: bool) -> None:
    jobs, why = died(DEATHS), f"its app died {DEATHS} times in a row"
    assert planned_backfill(*jobs, at_once=at_once) == [Isolate(SUBJECT, why, "b-1", f"j{DEATHS}")]
    alone = planned_backfill(*jobs, tables=("public.a",), at_once=at_once)
    assert alone == [Abandon("backfill b-1 for public.a", why, "b-1", f"j{DEATHS}", DEATHS)]
    assert isinstance(planned_backfill(*jobs[1:], at_once=at_once)[0], Start), "it may be its last chance"
    assert planned_backfill(running("j9"), *jobs) == [], "one that lives is left alone"
    assert planned_backfill(*jobs, tables=()) == []
    assert planned_backfill(*jobs, desired="stopped") == []


def test_the_last_death_counts_as_soon_as_it_is_seen() -> None:
    given_up, split = planned_backfill(running("j9", process="gone", age=1.0), *died(DEATHS - 1))
    assert isinstance(given_up, GiveUp)
    assert split == Isolate(SUBJECT, f"its app died {DEATHS} times in a row", "b-1", "j9"), "and nothing is waited for"


def test_only_deaths_in_a_row_count_and_only_of_apps_that_had_not_got_on() -> None:
    assert deaths(()) == 0
    assert deaths((*died(2), *died(3, state="failed"))) == 5
    assert deaths((*died(2), *died(1, worked=True), *died(4))) == 2
    for end in ("stopped", "finished", "fenced", "stalled"):
        assert deaths((*died(2), JobView("j", end), *died(4))) == 2
    assert deaths((*died(2), *died(9, started=False), *died(1))) == 3, "one that never came up is no table's"
    worked = planned_backfill(running("j9", process="gone", worked=True), *died(DEATHS))
    assert [type(action) for action in worked] == [GiveUp, Start]


def test_an_ingestion_app_is_started_however_often_it_dies() -> None:
    assert isinstance(planned(*died(DEATHS * 2))[0], Start)


def test_what_is_close_enough_is_armed_where_it_can_be_cut_over() -> None:
    (arm,) = planned_backfill(running(), ready=("public.a",))
    assert arm == Arm("public.s", "public.a can be cut over", "u1")
    assert not [a for a in planned_backfill(status="stalled", ready=("public.a",)) if isinstance(a, Arm)]
    assert not [a for a in planned_backfill(desired="stopped", ready=("public.a",)) if isinstance(a, Arm)]


def test_the_newest_logs_of_all_backfills_of_a_source_stay_and_scratch_goes() -> None:
    """Jobs of ended backfills, the older one first."""
    old, new = (
        BackfillView(
            name, (), tuple(JobView(f"{name}{n}", "finished", age=age + n, has_folder=True) for n in range(15))
        )
        for name, age in (("old", 1000.0), ("new", 10.0))
    )
    source = SourceView("u1", "public.s", "active", "running", 1, (running(),), (old, new))
    tidied = [a.job_id for a in plan(Overview(sources=(source,))) if isinstance(a, Tidy)]
    assert tidied == [f"old{n}" for n in range(5, 15)]
    (tidy,) = planned_backfill(JobView("j1", "finished", has_scratch=True, has_folder=True), tables=())
    assert tidy == Tidy("public.s", "its run has ended", "j1")
    dropped = planned_backfill(JobView("j1", "finished", has_folder=True), tables=(), status="dropped")
    assert dropped == [Tidy("public.s", "only the newest logs are kept", "j1", True)]
