"""Detached backfill apps, killed and stopped at every labelled point: the tables are exact all the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog.jobs import last_jobs
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.decisions import DEATHS
from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.crashpoints import BACKFILL_LABELS, VARIABLE
from tests.support.arrivals import LATE, NUMBERS, SIBLING, check_logs, check_same_as_sibling, in_ticks, mint, records
from tests.support.kafka import create_topic, groups, produce
from tests.support.processes import stop_holding_no_lock
from tests.support.stack import Stack
from tests.support.waiting import wait_until

QUICK = ("between_commits", "converging")
"""What ``make test`` tries; the rest takes its time."""

NAMES = ["late", "numbers"]


@pytest.fixture
def source(stack: Stack, kafka: EmbeddedKafka) -> ItemId:
    """Three ticks of history, and two tables that come later. No ingestion app runs."""
    made = stack.create("events", create_topic(kafka, 2), [SIBLING])
    with stack.running(made):
        in_ticks(stack, made, ["sibling"], count=3)
    stack.add(made, [LATE, NUMBERS])
    return made


@contextmanager
def launched(stack: Stack, crash: str) -> Iterator[Handle]:
    """A backfill that meets its end at a label. Nothing else of ours may run in this process meanwhile."""
    with crashing(crash):
        handle = stack.launch_backfill("late")
    try:
        yield handle
    finally:
        stack.launcher.kill(handle)


@contextmanager
def crashing(crash: str) -> Iterator[None]:
    """What is launched meanwhile meets its end there."""
    os.environ[VARIABLE] = crash
    try:
        yield
    finally:
        del os.environ[VARIABLE]


@contextmanager
def reconciled(stack: Stack, source: ItemId) -> Iterator[Reconciler]:
    """All apps are started by the reconciler, and stopped at the end."""
    settings = Settings.from_environment({**stack.env, "MZSHARE_JARS": str(jars.default_folder())})
    reconciler = Reconciler(stack.catalog, settings, EnvConnections(stack.env), stack.launchers)
    try:
        yield reconciler
    finally:
        with stack.catalog.write() as session:
            items.set_desired(session, source, "stopped")
        reconciler.run()


def die_until(reconciler: Reconciler, stack: Stack, source: ItemId, names: list[str], action: str) -> None:
    """Backfills are started again and again, and killed where they plan their first group, until this was done."""
    wanted = {f"backfill {stack.backfill_id(name)}" for name in names}
    done: set[str] = set()
    while done != wanted:
        with crashing("backfill_reading"):
            outcomes = reconciler.run(at_once=True)
        done |= {outcome.subject.partition(" for ")[0] for outcome in outcomes if outcome.action == action}
        with stack.catalog.read() as session:
            jobs = last_jobs(session, source, 100, kind="backfill")
        assert len(jobs) <= 3 * DEATHS
        runs = [run for job in jobs if (run := run_of(job, stack.launchers)) is not None]
        wait_until(lambda: {run.status() for run in runs} == {"gone"}, 180, "their deaths")  # noqa: B023


def wait_history(stack: Stack, source: ItemId) -> None:
    upper = stack.store(source).load().upper
    wait_until(lambda: all(stack.table(name).position == upper for name in NAMES), 180, "the history")


def drive_to(label: str, stack: Stack, source: ItemId) -> None:
    """What has to happen before a backfill passes the label."""
    if label not in ("following", "converging"):
        return
    wait_history(stack, source)
    if label == "converging":
        for name in NAMES:
            stack.arm(name)
    produce(stack.kafka, stack.topic(source), records(300, 100))
    mint(stack, source)


def finish(stack: Stack, source: ItemId) -> None:
    """Another backfill, if there is still something to do, and the cutover."""
    topic = stack.topic(source)
    produce(stack.kafka, topic, records(400, 100))
    with stack.running(source):
        backfill = stack.start_backfill("late") if stack.arrival("late") else None
        stack.wait_cut_over(NAMES, timeout=90)
        if backfill:
            assert backfill.join().state == "finished"
        produce(stack.kafka, topic, records(500, 100))
        stack.wait_caught_up(source, ["sibling", *NAMES])
    check_same_as_sibling(stack, source)
    stack.check(topic, [NUMBERS])
    check_logs(stack, source, NAMES)
    assert not [g for g in groups(stack.kafka) if g.startswith("spark-kafka")], "a consumer group is left"


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(label, marks=() if label in QUICK else pytest.mark.full(seconds=40))
        for label in BACKFILL_LABELS
        if label != "fenced"
    ],
)
def test_killed_at_a_labelled_point(stack: Stack, source: ItemId, label: str) -> None:
    with launched(stack, label) as handle:
        drive_to(label, stack, source)
        wait_until(lambda: stack.launcher.status(handle) == "gone", 180, f"death at {label}")
        assert "holds b-" in stack.log(handle), stack.log(handle)
    finish(stack, source)


@pytest.mark.full(seconds=40)
def test_killed_when_it_has_just_found_itself_without_tables(stack: Stack, source: ItemId) -> None:
    with launched(stack, "fenced") as handle:
        with stack.running(source):
            stack.wait_cut_over(NAMES, timeout=180)
            wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "death at its end")
        assert stack.job(handle.job_id).is_active, "it could not say how it ended"
    finish(stack, source)


@pytest.mark.full(seconds=40)
def test_a_stopped_backfill_that_wakes_up_after_the_cutover_changes_nothing(stack: Stack, source: ItemId) -> None:
    # It is stopped with the files of the followed tick written and nothing committed.
    held = stack.folder / "held"
    with launched(stack, f"files_written@2:hold={held}") as zombie:
        drive_to("following", stack, source)
        assert zombie.pid is not None
        wait_until(held.exists, 60, "the backfill to have the files of its second group")
        stop_holding_no_lock(zombie.pid, stack.folder / "catalog.db")
        held.unlink()
        finish(stack, source)
        os.kill(zombie.pid, signal.SIGCONT)
        wait_until(lambda: stack.launcher.status(zombie) == "gone", 60, "the zombie to end")
        assert stack.job(zombie.job_id).state == "finished", stack.log(zombie)
    check_same_as_sibling(stack, source)
    check_logs(stack, source, NAMES)


@pytest.mark.full(seconds=40)
@pytest.mark.timeout(1800)
def test_an_app_that_dies_at_every_start_is_given_up_table_by_table_and_a_resume_makes_all_exact(
    stack: Stack, source: ItemId
) -> None:
    topic, shared = stack.topic(source), stack.backfill_id("late")
    with reconciled(stack, source) as reconciler:
        die_until(reconciler, stack, source, ["late"], "isolate")
        assert len({shared, *(stack.backfill_id(name) for name in NAMES)}) == 3, "each has one of its own"
        die_until(reconciler, stack, source, NAMES, "abandon")
        assert [stack.table(name).status for name in NAMES] == ["stalled", "stalled"]
        for name in NAMES:
            assert f"died {DEATHS} times in a row" in (stack.table(name).reason or "")
        assert stack.table("sibling").status == "live"
        produce(stack.kafka, topic, records(300, 100))
        stack.wait_caught_up(source, ["sibling"])

        with stack.catalog.write() as session:
            for name in NAMES:
                arrivals.resume_table(session, stack.table(name).id)
        assert stack.backfill_id("late") == stack.backfill_id("numbers")
        reconciler.run()
        stack.wait_cut_over(NAMES, timeout=180)
        produce(stack.kafka, topic, records(400, 100))
        stack.wait_caught_up(source, ["sibling", *NAMES])
    check_same_as_sibling(stack, source)
    stack.check(topic, [NUMBERS])
    check_logs(stack, source, NAMES)
