"""Tables that arrive later, as a user sees and awaits them: what an app would do is done here by hand."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.supervision.live_wait import Waiter
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Outcome
from airflow_provider_mzshare.core.ticklog.stores import Reading
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings
from tests.integration.cli.conftest import Cli
from tests.support.cli_ticks import SOURCE, TABLE, write_ticks
from tests.support.kafka import create_topic, produce
from tests.support.waiting import wait_until

LATE = "CREATE TABLE late (n int) FROM SOURCE s FORMAT JSON;"


class Arriving:
    """A source with a live table ``t`` and three ticks, and a table ``late`` that has none of them."""

    def __init__(self, cli: Cli, topic: str) -> None:
        self.cli = cli
        cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
        write_ticks(cli, [[(1, "a")], [(2, "b")], [(3, "c")]], job_state="running")
        cli.ok("sql", LATE)
        self.catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
        self.folder = cli.home / "jobs" / "u1" / "b"
        self.job_id: JobId | None = None

    def table(self, name: str = "late") -> items.TableItem:
        with self.catalog.read() as session:
            return items.find_table(session, ("public", name))

    def store(self) -> CatalogBackfillStore:
        backfill_id = self.table().backfill_id
        assert backfill_id is not None
        return CatalogBackfillStore(self.catalog, self.table().source_id, backfill_id)

    def start(self) -> JobId:
        """A backfill that runs on another machine, with its log here."""
        table = self.table()
        with self.catalog.write() as session:
            self.job_id = jobs.create_job(
                session, kind="backfill", source_id=table.source_id, backfill_id=table.backfill_id,
                launcher="process", folder=str(self.folder),
            )  # fmt: skip
            jobs.note_start(session, self.job_id, pid=1, pid_started=1.0, host="another-machine")
            jobs.set_state(session, self.job_id, "running", expect={"starting"})
        return self.job_id

    def end(self, state: jobs.JobState, error: str) -> None:
        assert self.job_id is not None
        with self.catalog.write() as session:
            jobs.set_state(session, self.job_id, state, expect=jobs.ACTIVE, error=error)

    def follow(self, to: int, outcome: Outcome = Done()) -> None:  # noqa: B008
        store, first = self.store(), self.table().next_tick
        (*_, last) = store.ticks(first, to + 1 - first)
        holder = store.claim(JobId("follower"), stood_still=store.lease())
        store.follow(holder, first=first, last=last, outcomes={self.table().id: outcome}, stats={"busy_ms": 4})

    def read(self) -> None:
        """Two records of the first group; it is not done yet."""
        store = self.store()
        holder = store.claim(JobId("reader"), stood_still=store.lease())
        store.note_reading(holder, Reading(1, frozenset({self.table().id}), 2))

    def arrive(self) -> None:
        with self.catalog.write() as session:
            assert arrivals.arm_table(session, self.table().id) or self.table().status == "converging"
        _tick_of_all(self)

    def status(self, name: str = "late") -> dict[str, object]:
        (row,) = self.cli.ok("status", name, "--no-lag", "-o", "json").json
        return row

    def wait_fails(self, *options: str) -> str:
        answer = self.cli("wait", "late", *options)
        assert answer.code == 1, answer.out
        return answer.err.splitlines()[-1]


@pytest.fixture
def arriving(broker_cli: Cli, kafka: EmbeddedKafka) -> Iterator[Arriving]:
    topic = create_topic(kafka)
    produce(kafka, topic, [b'{"n": 1}'] * 4)
    found = Arriving(broker_cli, topic)
    yield found
    found.catalog.close()


def test_a_status_says_how_far_a_backfill_is_how_fast_and_what_holds_it_up(arriving: Arriving) -> None:
    row = arriving.status()
    assert (row["status"], row["ticks_behind"], row["behind"], row["backfill_job"]) == ("backfilling", 3, 3, None)
    assert row["reason"] == "3 ticks behind, 0 of 3 offsets, nothing has started its backfill yet"
    assert row["hint"] == "mzshare start public.s"
    assert "start backfill b-" in arriving.cli.ok("reconcile", "--dry-run").out

    job_id = arriving.start()
    arriving.follow(2)
    row = arriving.status()
    assert (row["backfill_job"], row["backfill"]) == (job_id, arriving.table().backfill_id)
    assert (row["done"], row["total"], row["ticks_behind"], row["behind"]) == (2, 3, 1, 1)
    assert (row["backfill_rate"], row["rate"]) == (500.0, 500.0)
    assert arriving.status("t")["job"] == row["job"] != job_id, "the source's own app is another"
    assert "public.late: 1 tick behind, 2 of 3 offsets, 500/s" in arriving.cli.ok("status", "s").out

    arriving.cli.ok("sql", "ALTER SOURCE s SET (BACKFILL RATE 0)")
    paused = arriving.status()
    assert str(paused["reason"]).endswith("paused: the source's BACKFILL RATE is 0")
    assert paused["hint"] == "mzshare sql 'ALTER SOURCE public.s RESET (BACKFILL RATE)'"
    arriving.end("failed", "Kafka refused the credentials.")
    assert str(arriving.status()["reason"]).endswith("its backfill failed: Kafka refused the credentials.")
    (source,) = arriving.cli.ok("status", "--no-lag", "-o", "json").json
    assert source["health"] == "running", "the source is not what failed"


def test_waiting_for_live_lets_the_table_converge_and_ends_with_the_cutover(arriving: Arriving) -> None:
    arriving.start()
    arriving.follow(1)
    late = arriving.cli("wait", "late", "--timeout", "0.5", "--max-lag", "0")
    assert late.err.splitlines()[0] == "1 of 3 offsets, 250/s, 0 s left, public.late is backfilling, 2 ticks behind"
    assert late.err.splitlines()[-1].startswith("error: late is not live after 0.5 s: public.late is backfilling")
    assert arriving.table().status == "backfilling", "it is not close enough"

    command = arriving.cli.command("wait", "late", "--for", "live", "-o", "json")
    arriving.follow(3)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=arriving.cli.environment
    ) as waiting:
        wait_until(lambda: arriving.table().status == "converging", 60, "the wait to arm the cutover")
        assert waiting.poll() is None, "it is not live yet"
        _tick_of_all(arriving)
        out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert json.loads(out)["reached"] == "live"
    assert arriving.table().status == "live"


def test_the_progress_of_a_wait_only_grows_and_ends_with_all(arriving: Arriving) -> None:
    """Within a group, over the cutover, and for all tables of a source together."""
    seen: list[tuple[int, int]] = []
    steps = iter((arriving.read, lambda: arriving.follow(3), arriving.arrive, lambda: None))

    def report(progress: Progress) -> None:
        seen.append((progress.done, progress.total))
        next(steps)()

    arriving.start()
    store = EnvConnections(arriving.cli.environment)
    reader = StatusReader(arriving.catalog, Launchers(Settings.from_environment(arriving.cli.environment)))
    with arriving.catalog.read() as session:
        item = items.find_source(session, ("public", "s"))
    Waiter(arriving.catalog, reader, store, item, "live", report=report).wait(60)
    assert seen == [(0, 3), (2, 3), (3, 3), (3, 3)]


def test_waiting_fails_at_once_with_the_backfills_error_and_waits_on_for_a_lost_one(arriving: Arriving) -> None:
    arriving.start()
    arriving.end("lost", "its process is gone")
    line = arriving.wait_fails("--timeout", "0.5")
    assert "public.late is backfilling, 3 ticks behind (its backfill was lost and must be started again" in line
    arriving.start()
    arriving.end("failed", "the topic cannot be read.")
    began = time.monotonic()
    line = arriving.wait_fails("--timeout", "60")
    assert time.monotonic() - began < 30
    assert line.startswith("error: backfill b-")
    assert "failed: the topic cannot be read. Try: mzshare logs late" in line

    arriving.start()
    arriving.follow(1, Left("the disk is full"))
    line = arriving.wait_fails("--timeout", "60")
    assert line == (
        "error: table public.late is stalled: the disk is full. "
        "Try: mzshare sql 'ALTER TABLE public.late RESUME', when the cause is gone; "
        "mzshare logs public.late shows more"
    )


def test_a_new_generation_is_shown_beside_the_current_one_and_awaited(arriving: Arriving) -> None:
    with arriving.catalog.write() as session:
        arrivals.resnapshot_table(session, items.find_table(session, ("public", "t")).id)
    row = arriving.status("t")
    assert (row["status"], row["generation"], row["new_generation"], row["new_status"]) == ("live", 1, 2, "backfilling")
    assert str(row["reason"]).startswith("generation 2: backfilling, 3 ticks behind, 0 of 3 offsets, nothing has")
    answer = arriving.cli("wait", "t", "--timeout", "0.5")
    assert answer.code == 1, "the current one is live, the new one is not"
    assert "generation 2 of public.t is backfilling, 3 ticks behind" in answer.err


def test_a_backfill_is_retired_by_the_names_of_its_tables(arriving: Arriving) -> None:
    backfill_id, cli = arriving.table().backfill_id, arriving.cli
    assert cli.ok("retire", "t").out == "nothing to do: none of these tables ever had a backfill\n"
    assert cli.ok("retire", "t", "-o", "json").json == []
    assert "table 'nope' does not exist" in cli.error("retire", "late", "nope")
    assert arriving.table().status == "backfilling", "all names are looked at first"
    assert "is a source, not a table" in cli.error("retire", "s")

    assert cli.ok("retire", "late", "t", "public.late").out == f"retire backfill {backfill_id}: not live yet: late\n"
    assert arriving.status()["reason"] == "its backfill was retired before the cutover"
    (again,) = cli.ok("retire", "late", "-o", "json").json
    assert (again["action"], again["detail"], again["ok"]) == ("retire", "it has ended", True)
    cli.ok("sql", "ALTER TABLE late RESUME")
    assert arriving.table().backfill_id not in (None, backfill_id)


def test_start_status_wait_and_retire_say_the_same_of_a_backfill_that_is_queued(arriving: Arriving) -> None:
    cli = arriving.cli
    cli.env["MZSHARE_MAX_BACKFILLS"] = "1"
    arriving.start()
    for name in ("one", "two"):
        cli.ok("sql", LATE.replace("late", name))
    planned = cli.ok("start", "s").out.splitlines()
    merged = arriving.table("two").backfill_id
    assert [line.partition(" ")[0] for line in planned] == ["merge", "queue"]
    assert planned[1] == (
        f"queue backfill {merged} for public.one, public.two: queued, 1st of 1: "
        "at most 1 backfill may run at once (MZSHARE_MAX_BACKFILLS)"
    )
    for name in ("one", "two"):
        row = arriving.status(name)
        assert (row["backfill"], row["queue_place"], row["queue_length"]) == (merged, 1, 1)
        assert row["reason"] == "3 ticks behind, 0 of 3 offsets, queued, 1st of 1: it starts when its turn comes"
        assert row["hint"] == f"mzshare wait public.{name}"
    assert "public.two: 3 ticks behind, 0 of 3 offsets, queued, 1st of 1" in cli.ok("status", "s").out
    assert arriving.status()["queue_place"] is None, "it has an app"
    answer = cli("wait", "one", "--timeout", "0.5")
    assert answer.code == 1
    assert "(queued, 1st of 1: it starts when its turn comes)" in answer.err

    assert cli.ok("retire", "one").out == f"retire backfill {merged}: not live yet: one; it goes on for two\n"
    assert (arriving.status("one")["status"], arriving.status("one")["queue_place"]) == ("stalled", None)
    assert (arriving.status("two")["status"], arriving.status("two")["queue_place"]) == ("backfilling", 1)
    assert cli.ok("retire", "two").out == f"retire backfill {merged}: not live yet: two\n"
    (shown,) = cli.ok("sql", "SELECT id, state FROM mz_backfills", "-o", "json").json
    assert shown["rows"] == [{"id": arriving.table().backfill_id, "state": "running"}]


def test_logs_of_a_table_that_stalled_on_its_way_are_those_of_the_backfill(arriving: Arriving) -> None:
    job_id = arriving.start()
    arriving.folder.mkdir(parents=True)
    Path(arriving.folder / "log").write_text("the last words\n")
    arriving.follow(1, Left("the disk is full"))
    assert arriving.cli.ok("logs", "late").out == "the last words\n"
    arriving.end("stalled", "the disk is full")
    assert [line["job"] for line in arriving.cli.ok("logs", "late", "-o", "json").json] == [job_id]
    arriving.cli.ok("sql", "ALTER TABLE late RESUME")
    assert arriving.cli.ok("logs", "late", "-o", "json").json == [], "the new one has not begun: the source's app"


def test_logs_of_a_table_are_those_of_its_backfill_while_it_arrives(arriving: Arriving) -> None:
    job_id = arriving.start()
    arriving.folder.mkdir(parents=True)
    Path(arriving.folder / "log").write_text("group 1\n")
    assert arriving.cli.ok("logs", "late").out == "group 1\n"
    assert arriving.cli.ok("logs", job_id).out == "group 1\n"
    assert arriving.cli.ok("logs", "t", "-o", "json").json == [], "those of the source's app, which is elsewhere"
    assert arriving.cli.ok("logs", "s", "-o", "json").json == []


def test_waiting_for_a_table_that_is_dropped_meanwhile_ends(arriving: Arriving) -> None:
    command = arriving.cli.command("wait", "late", "--timeout", "60")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=arriving.cli.environment) as waiting:
        assert waiting.stderr is not None
        assert "public.late is backfilling" in waiting.stderr.readline()
        arriving.cli.ok("sql", "DROP TABLE late")
        assert waiting.wait(60) == 1
        assert "table 'late' does not exist" in waiting.stderr.read()


def _tick_of_all(arriving: Arriving) -> None:
    """One more tick of the source, with whoever is a member then."""
    store = CatalogTickStore(arriving.catalog, arriving.table().source_id)
    with arriving.catalog.read() as session:
        incarnation = items.get_source_item(session, arriving.table().source_id).incarnation
    holder = store.claim(JobId("ticker"), stood_still=store.load().lease)
    lower = store.load().upper
    tick = store.mint(holder, lower=lower, upper=Position({"0": lower["0"] + 1}), incarnation=incarnation)
    store.commit(holder, tick.number, {member.table_id: Done() for member in store.members()}, {})
