"""No more backfills have an app than may, they get one in turn, and those of a source that wait become one."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.catalog.log.queue import places
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.actions import Merge, Start
from airflow_provider_mzshare.control.supervision.apps_wait import await_backfills
from airflow_provider_mzshare.control.supervision.live_wait import Waiter
from airflow_provider_mzshare.control.supervision.reconciler import Outcome
from airflow_provider_mzshare.control.supervision.retiring import retire_backfills
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.control.supervision.status import StatusReader, TableStatus
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.errors import JobFailed
from tests.integration.launcher.conftest import Home, done
from tests.support.waiting import wait_until


def late(home: Home, name: str, *tables: str, connection: str = "broker") -> tuple[ItemId, list[BackfillId]]:
    """A stalled source, so that no ingestion app is started, with tables that were created one by one."""
    source_id = home.source(name, connection=connection)
    home.tick(source_id, 3)
    home.stall(source_id)
    return source_id, [home.late_tables(source_id, table) for table in tables]


def finish(home: Home, source_id: ItemId, table: str) -> None:
    """Its only table is gone and its app has ended."""
    (job,) = [job for job in home.jobs(source_id, "backfill") if job.is_active]
    if (run := run_of(job, home.launchers)) is not None:
        run.kill()
    with home.catalog.write() as session:
        items.drop_table(session, home.table(table).id)
        # Unless whoever waits beside this test has seen first that it is gone.
        if not jobs.set_state(session, job.id, "finished", expect=jobs.ACTIVE):
            assert not jobs.get_job(session, job.id).is_active


def running(home: Home) -> list[jobs.Job]:
    with home.catalog.read() as session:
        return list(jobs.active_jobs(session, kind="backfill"))


def status(home: Home, name: str) -> TableStatus:
    return StatusReader(home.catalog, home.launchers).table(home.table(name))[1]


def test_twelve_tables_created_one_by_one_are_read_for_by_one_app(home: Home) -> None:
    names = [f"t{n:02}" for n in range(12)]
    source_id, asked = late(home, "s", *names)
    assert len(set(asked)) == 12
    merge, start = home.reconciler(max_backfills=2).plan()
    assert (type(merge), type(start)) == (Merge, Start), "one app is planned, not twelve"
    outcomes = home.reconciler(max_backfills=2).run()
    assert done(outcomes) == [("merge", "public.s"), ("start", start.subject)]
    assert [job.backfill_id for job in running(home)] == [asked[-1]]
    with home.catalog.read() as session:
        (one,) = active_backfills(session, source_id)
    assert ([arrival.name[1] for arrival in one.tables], one.id) == (names, asked[-1])

    home.late_tables(source_id, "later")
    assert [verb for verb, _ in done(home.reconciler(max_backfills=2).run())] == ["start"], "an app that runs is left"
    assert len(running(home)) == 2
    for name in ("again", "and_again"):
        home.late_tables(source_id, name)
    assert [verb for verb, _ in done(home.reconciler(max_backfills=2).run())] == ["merge", "queue"]
    assert len(running(home)) == 2
    assert (status(home, "again").queue_place, status(home, "and_again").queue_length) == (1, 1)


@pytest.mark.usefixtures("catalog_url")
def test_however_many_reconcile_at_once_no_more_backfills_run_than_may(home: Home) -> None:
    """Each of its own source: only the lock that is counted behind can hold them back."""
    for number in range(6):
        late(home, f"s{number}", f"t{number}")
    plans = [home.reconciler(max_backfills=2) for _ in range(6)]
    actions = [[one for one in plan.plan(only=None) if isinstance(one, Start)] for plan in plans]
    assert all(len(starts) == 2 for starts in actions)
    together, outcomes = threading.Barrier(6), list[Outcome]()

    def start(number: int) -> None:
        """One source each, as if the look had shown nothing of the others."""
        source = home.table(f"t{number}")
        assert source.backfill_id is not None
        together.wait()
        action = Start("backfill", "", source.source_id, source.backfill_id)
        outcomes.extend(plans[number]._carry_out([action]))

    threads = [threading.Thread(target=start, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(outcome.ok for outcome in outcomes)
    assert len(running(home)) == 2
    told = sorted(outcome.detail for outcome in outcomes if outcome.detail.startswith("queued"))
    assert len(told) == 4
    with home.catalog.read() as session:
        waiting = places(session)
    assert sorted(place.number for place in waiting.values()) == [1, 2, 3, 4]


def test_they_get_an_app_in_turn_as_others_end_and_one_that_cannot_start_goes_to_the_end(home: Home) -> None:
    first, _ = late(home, "first", "a")
    late(home, "second", "b", connection="nowhere")
    third, (c,) = late(home, "third", "c")
    fourth, (d,) = late(home, "fourth", "d")
    reconciler = home.reconciler(max_backfills=1)
    assert [verb for verb, _ in done(reconciler.run())] == ["start", "queue", "queue", "queue"]
    assert [status(home, name).queue_place for name in "abcd"] == [None, 1, 2, 3]
    c_is = status(home, "c")
    assert c_is.held_up == "queued, 2nd of 3: it starts when its turn comes"
    assert (c_is.hint, c_is.queue_length) == ("mzshare wait public.c", 3)
    assert await_backfills(home.catalog, [home.table("c").id], timeout=0, poll=1).queued == {c: "queued, 2nd of 3"}
    hurried = home.reconciler(max_backfills=1).run(only=fourth, at_once=True)
    assert done(hurried) == [("queue", f"backfill {d} for public.d")], "nobody is passed by asking for it"

    finish(home, first, "a")
    assert [(o.action, o.ok) for o in reconciler.start_queued()] == [("start", False)]
    assert [status(home, name).queue_place for name in "bcd"] == [3, 1, 2], "its connection is known elsewhere only"
    assert done(reconciler.start_queued()) == [("start", f"backfill {c} for public.c")]
    assert reconciler.start_queued() == []
    assert [status(home, name).queue_place for name in "bcd"] == [2, None, 1]
    assert [job.source_id for job in running(home)] == [third]


def test_one_who_is_passed_over_starts_those_who_come_first(home: Home) -> None:
    busy, _ = late(home, "busy", "a")
    older, (b,) = late(home, "older", "b")
    newer, (c,) = late(home, "newer", "c")
    reconciler = home.reconciler(max_backfills=1)
    for source_id in (busy, older):
        reconciler.run(only=source_id)
    finish(home, busy, "a")
    hurried = done(reconciler.run(only=newer, at_once=True))
    assert hurried == [("queue", f"backfill {c} for public.c"), ("start", f"backfill {b} for public.b")]
    assert [job.source_id for job in running(home)] == [older]


def test_who_ends_a_backfill_gives_its_room_to_the_next_and_one_that_is_queued_leaves_the_queue(home: Home) -> None:
    busy, _ = late(home, "busy", "a")
    queued, (b,) = late(home, "queued", "b")
    _, (c,) = late(home, "last", "c")
    reconciler = home.reconciler(max_backfills=1, stop_seconds=0.1, term_seconds=0.1)
    reconciler.run()
    outcomes = retire_backfills(home.catalog, reconciler, [home.table("b").id])
    assert done(outcomes) == [("retire", f"backfill {b}")]
    assert (home.table("b").status, status(home, "b").queue_place) == ("stalled", None)
    assert [status(home, name).queue_place for name in "ac"] == [None, 1]
    outcomes = retire_backfills(home.catalog, reconciler, [home.table("a").id])
    assert done(outcomes, "retire", "start") == [
        ("retire", f"backfill {home.jobs(busy, 'backfill')[0].backfill_id}"),
        ("start", f"backfill {c} for public.c"),
    ]
    assert home.jobs(queued, "backfill") == []


def test_tables_that_were_merged_are_retired_by_those_who_asked_for_them(home: Home) -> None:
    source_id, _ = late(home, "s", "mine", "theirs")
    reconciler = home.reconciler(max_backfills=1)
    reconciler.run()
    (job,) = running(home)
    (outcome,) = retire_backfills(home.catalog, reconciler, [home.table("mine").id])
    assert outcome.detail == "not live yet: mine; it goes on for theirs"
    assert (home.table("mine").status, home.table("theirs").status) == ("stalled", "backfilling")
    assert [one.id for one in running(home)] == [job.id]
    assert not home.jobs(source_id, "backfill")[0].stop_requested
    (again,) = retire_backfills(home.catalog, reconciler, [home.table("mine").id])
    assert again.detail == "it goes on for theirs"


def test_one_who_waits_starts_what_is_queued_when_its_turn_comes(home: Home) -> None:
    busy, _ = late(home, "busy", "a")
    waiting, (b,) = late(home, "waiting", "b")
    unasked, _ = late(home, "unasked", "c")
    reconciler = home.reconciler(max_backfills=1)
    reconciler.run(only=busy)
    reconciler.run(only=waiting)
    notes: list[str] = []
    with home.catalog.write() as session:
        items.clear_stall(session, waiting, expect="catalog_behind")
    waiter = Waiter(
        home.catalog,
        StatusReader(home.catalog, home.launchers),
        home.connections,
        home.table("b"),
        "live",
        report=lambda progress: notes.append(progress.note),
        start_queued=reconciler.start_queued,
    )

    def wait() -> None:
        with suppress(JobFailed):
            waiter.wait(60)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: any("queued, 1st of 1" in note for note in notes), 120, "it to say that it is queued")
    finish(home, busy, "a")
    wait_until(lambda: bool(home.jobs(waiting, "backfill")), 120, "its own to be started")
    assert home.jobs(unasked, "backfill") == [], "nobody asked for that one"
    with home.catalog.write() as session:
        arrivals.retire_backfill(session, b)
    thread.join(20)
    assert not thread.is_alive()
