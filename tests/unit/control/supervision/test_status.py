"""How a source is, judged from what was found."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.objects.items import SourceItem
from airflow_provider_mzshare.control.catalog.queries.overviews import SourceOverview, TickOverview
from airflow_provider_mzshare.control.supervision.status import judge
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.state import Lease

ITEM = SourceItem(
    id=ItemId("u1"),
    name=("public", "s"),
    spec=KafkaSourceSpec(connection="k", topic="t"),
    settings=SourceSettings(),
    incarnation="x",
    start=Position(),
    status="active",
    reason=None,
    message=None,
    desired="running",
    lease=Lease(),
    created_at=0,
)
JOB = Job(
    id=JobId("ingest-1"),
    kind="ingest",
    source_id=ItemId("u1"),
    state="running",
    launcher="process",
    master=None,
    host="h",
    pid=1,
    pid_started=1.0,
    folder="/x",
    created_at=0,
    started_at=0,
    ended_at=None,
    stop_requested=False,
    error=None,
    exit_code=None,
)
TICK = TickOverview(1, Position(), Position({"0": 5}), 100, 100, 101, 1, False, {})
EMPTY_TICK = replace(TICK, lower=Position({"0": 5}))


def overview(item: SourceItem = ITEM, job: Job | None = JOB, **changes: object) -> SourceOverview:
    values = {
        "position": Position(), "last_tick": TICK, "pending_tick": None, "age_ms": 500, "rate": 1.0,
        "tables": {"live": 1}, **changes,
    }  # fmt: skip
    return SourceOverview(item=item, job=job, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["launching", "starting"])
def test_starting(state: str) -> None:
    assert judge(overview(job=replace(JOB, state=state)), True).health == "starting"  # type: ignore[arg-type]


@pytest.mark.parametrize("alive", [True, None])
def test_running_also_where_the_process_is_on_another_machine(alive: bool | None) -> None:
    assert judge(overview(), alive).health == "running"


def test_idle_when_the_last_tick_had_nothing_in_it() -> None:
    assert judge(overview(last_tick=EMPTY_TICK), True).health == "idle"
    assert judge(overview(last_tick=EMPTY_TICK, pending_tick=TICK), True).health == "running"


def test_a_running_app_without_ticks_for_long_says_so() -> None:
    verdict = judge(overview(age_ms=120_000), True)
    assert verdict.health == "running"
    assert "120 s old" in verdict.reason
    assert verdict.hint == "mzshare logs public.s"


def test_lost_when_the_process_is_gone_without_an_end() -> None:
    verdict = judge(overview(), False)
    assert (verdict.health, verdict.hint) == ("lost", "mzshare reconcile")
    assert judge(overview(job=replace(JOB, state="lost", error="its process is gone")), False).health == "lost"


def test_failed_with_the_apps_own_error() -> None:
    verdict = judge(overview(job=replace(JOB, state="failed", error="Kafka refused us.")), False)
    assert (verdict.health, verdict.reason, verdict.hint) == ("failed", "Kafka refused us.", "mzshare logs public.s")


@pytest.mark.parametrize(
    ("reason", "hint"), [("catalog_behind", "mzshare catalog repair"), ("topic_recreated", "DROP SOURCE public.s")]
)
def test_stalled_says_why_and_what_to_do_whatever_the_job_does(reason: str, hint: str) -> None:
    stalled = replace(ITEM, status="stalled", reason=reason, message="the reason in words")
    verdict = judge(overview(item=stalled), True)
    assert (verdict.health, verdict.reason) == ("stalled", "the reason in words")
    assert hint in verdict.hint


def test_stopped_only_when_asked_to() -> None:
    stopped = replace(ITEM, desired="stopped")
    assert judge(overview(item=stopped, job=replace(JOB, state="stopped")), False).health == "stopped"
    assert judge(overview(item=stopped), True).health == "running", "until it has ended"


def test_waiting_for_tables_or_for_a_start() -> None:
    assert "no tables" in judge(overview(job=None, tables={}), None).reason
    verdict = judge(overview(job=None), None)
    assert (verdict.health, verdict.hint) == ("waiting", "mzshare start public.s")


@pytest.mark.parametrize(("state", "health"), [("starting", "starting"), ("running", "running")])
def test_what_holds_an_active_app_up_is_its_reason(state: str, health: str) -> None:
    job = replace(JOB, state=state, error="Kafka does not answer.")  # type: ignore[arg-type]
    verdict = judge(overview(job=job, last_tick=EMPTY_TICK), True)
    assert (verdict.health, verdict.reason) == (health, "Kafka does not answer.")
    assert verdict.hint == "mzshare logs public.s"


@pytest.mark.parametrize("job", [replace(JOB, state="failed"), JOB])
def test_the_next_step_an_app_noted_itself_comes_first(job: Job) -> None:
    verdict = judge(overview(job=replace(job, error="A jar is missing. Try: mzshare jars")), job.is_active)
    assert (verdict.reason, verdict.hint) == ("A jar is missing", "mzshare jars, or mzshare logs public.s")


def test_stalled_tables_are_told_by_a_source_that_goes_on() -> None:
    verdict = judge(overview(last_tick=EMPTY_TICK, tables={"live": 2, "stalled": 1}), True)
    assert (verdict.health, verdict.reason) == ("idle", "1 of 3 tables stalled")
    assert verdict.hint == "mzshare status public.s"
    assert judge(overview(tables={"live": 3}), True).reason == ""
    trouble = replace(JOB, error="Kafka does not answer.")
    assert judge(overview(job=trouble, tables={"stalled": 1}), True).reason == "Kafka does not answer."


def test_indexes_on_disk_are_told_unless_something_is_worse() -> None:
    verdict = judge(overview(indexes_on_disk=1), True)
    assert verdict.health == "running"
    assert verdict.reason == (
        "the index of 1 keyed table is on disk, which is slower: MZSHARE_KEY_INDEX_MB is too small for all"
    )
    assert judge(overview(indexes_on_disk=2), True).reason.startswith("the indexes of 2 keyed tables are on disk")
    assert judge(overview(indexes_on_disk=1, tables={"stalled": 1}), True).reason == "1 of 1 tables stalled"
    assert judge(overview(indexes_on_disk=1), False).health == "lost"


@pytest.mark.parametrize(
    ("item", "job"),
    [
        (ITEM, None),
        (replace(ITEM, desired="stopped"), None),
        (ITEM, replace(JOB, state="failed")),
        (ITEM, replace(JOB, error="away")),
        (replace(ITEM, status="stalled", reason="history_gone"), None),
    ],
)
def test_hints_survive_a_shell(item: SourceItem, job: Job | None) -> None:
    odd = replace(item, name=("public", 'it\'s "mine" $x'))
    words = shlex.split(judge(overview(item=odd, job=job), job is not None and job.is_active).hint)
    assert any('public."it\'s ""mine"" $x"' in word for word in words), words
