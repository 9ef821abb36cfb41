"""Commands as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog, items, jobs
from airflow_provider_mzshare.control.catalog.models import CollectionRow
from airflow_provider_mzshare.control.catalog.ticks import CatalogTickStore
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections import Collection, create_collection
from airflow_provider_mzshare.storage.ticks.state import Done, Written
from airflow_provider_mzshare.types.ids import ItemId, JobId
from airflow_provider_mzshare.types.positions import Position
from tests.integration.cli.conftest import Cli
from tests.support.kafka import create_topic, produce

SOURCE = "CREATE SOURCE s FROM KAFKA CONNECTION broker (TOPIC '{topic}');"
TABLE = "CREATE TABLE t (n int, b text) FROM SOURCE s FORMAT JSON;"


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = create_topic(kafka)
    produce(kafka, name, [b'{"n": 1}'] * 3)
    return name


def test_the_command_starts_quickly_and_without_heavy_libraries(cli: Cli) -> None:
    script = (
        "import sys, time; began = time.process_time()\n"
        "from airflow_provider_mzshare.cli.main import run\n"
        "code = run(['--help'])\n"
        "heavy = {'airflow', 'pyspark', 'sqlalchemy', 'sqlglot', 'pyarrow', 'deltalake', 'confluent_kafka'}\n"
        "print(sorted(heavy & set(sys.modules)), time.process_time() - began, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=cli.environment, capture_output=True, text=True)
    heavy, seconds = done.stderr.rsplit(" ", 1)
    assert done.returncode == 0
    assert heavy == "[]"
    assert float(seconds) < 0.7


def test_no_command_but_one_that_needs_it_imports_airflow_or_spark(broker_cli: Cli, topic: str) -> None:
    script = (
        "import sys\nfrom airflow_provider_mzshare.cli.main import run\n"
        "for argv in (['sql', sys.argv[1]], ['status'], ['reconcile', '--dry-run'], ['read', 't']):\n"
        "    assert run(argv) == 0, argv\n"
        "assert not {'airflow', 'pyspark'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, SOURCE.format(topic=topic) + TABLE],
        env=broker_cli.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_process_of_its_own_leaves_with_the_exit_code(broker_cli: Cli, topic: str) -> None:
    def command(*argv: str) -> tuple[int, str, str]:
        done = subprocess.run(broker_cli.command(*argv), env=broker_cli.environment, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert command("sql", SOURCE.format(topic=topic)) == (0, "CREATE SOURCE public.s u1\n", "")
    code, out, err = command("sql", "DROP TABLE t")
    assert (code, out) == (1, "")
    assert err == "error: table 'public.t' does not exist. Try: mzshare sql 'SHOW TABLES'\n"
    assert command("sql")[0] == 2


def test_the_embedded_catalog_is_made_by_the_first_statement_and_not_by_a_look(cli: Cli) -> None:
    assert cli.error("status").endswith("Try: mzshare catalog upgrade")
    assert not cli.home.exists()
    assert cli.ok("sql", "SHOW TABLES", "--dry-run", "-o", "json").json[0]["rows"] == []
    assert not cli.home.exists(), "a trial leaves nothing"
    cli.ok("sql", "SHOW TABLES")
    assert (cli.home / "catalog.db").is_file()
    assert cli.home.stat().st_mode & 0o077 == 0
    assert cli.ok("status", "-o", "json").json == []


def test_a_servers_catalog_is_made_only_when_asked_for(cli: Cli, catalog_url: str) -> None:
    if not catalog_url.startswith("postgresql"):
        assert "created" in cli.ok("catalog", "upgrade").out
        return
    cli.env["MZSHARE_CATALOG"] = catalog_url
    assert cli.error("sql", "SHOW TABLES").endswith("Try: mzshare catalog upgrade")
    made = json.loads(cli.ok("catalog", "upgrade", "-o", "json").out)
    assert (made["result"], made["before"]) == ("created", None)
    assert "up to date" in cli.ok("catalog", "upgrade").out
    assert cli.ok("sql", "SHOW TABLES", "-o", "csv").out == "id,name,source,format,status,rows,errors\n"


def test_statements_come_from_an_argument_a_file_or_standard_input(broker_cli: Cli, topic: str) -> None:
    file = broker_cli.home.parent / "create.sql"
    file.write_text(SOURCE.format(topic=topic) + "-- a comment\n" + TABLE)
    assert broker_cli.ok("sql", "-f", str(file)).out == "CREATE SOURCE public.s u1\nCREATE TABLE public.t u2\n"
    answer = broker_cli.ok("sql", "-f", "-", "-o", "json", stdin="SHOW TABLES; SHOW CREATE TABLE t;")
    first, second = answer.json
    assert (first["command"], len(first["rows"])) == ("SHOW TABLES", 1)  # type: ignore[arg-type]
    assert second["rows"] == [
        {"name": "public.t", "create_sql": 'CREATE TABLE public.t (n integer, b text) FROM SOURCE public.s '
         f'(REFERENCE "{topic}") FORMAT JSON;'},
    ]  # fmt: skip
    assert broker_cli.error("sql", "-f", "nosuch.sql").startswith("error: nosuch.sql: No such file")


def test_an_error_is_one_line_and_what_was_done_before_is_told(broker_cli: Cli, topic: str) -> None:
    answer = broker_cli("sql", SOURCE.format(topic=topic) + "DROP TABLE nosuch", "-o", "json")
    assert answer.code == 1
    assert [result["message"] for result in answer.json] == ["CREATE SOURCE public.s u1"]
    assert answer.err == "error: table 'public.nosuch' does not exist. Try: mzshare sql 'SHOW TABLES'\n"
    assert broker_cli.error("sql", "CREATE TABLE\n t FROM").startswith("error: line 2, column")
    answer = broker_cli("status", env={"MZSHARE_MASTER": "yarn"})
    assert (answer.code, answer.err.count("\n")) == (2, 1)


def test_status_start_and_stop_before_anything_runs(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic))
    (status,) = broker_cli.ok("status", "-o", "json").json
    assert (status["name"], status["health"], status["lag"]) == ("public.s", "waiting", 3)
    assert "nothing was to be done" in broker_cli.ok("start", "s").out
    broker_cli.ok("sql", TABLE)
    assert broker_cli.ok("reconcile", "--dry-run").out == "start public.s: it should run\n"
    assert "nothing was to be done" in broker_cli.ok("stop", "S").out
    assert broker_cli.ok("reconcile", "-o", "json").json == []
    (status,) = broker_cli.ok("status", "s", "-o", "json").json
    assert (status["name"], status["status"], status["lag"]) == ("public.t", "created", 3)
    assert "stopped" in broker_cli.ok("status", "s").out
    assert broker_cli.error("start", "t") == "error: source 't' does not exist. Try: mzshare sql 'SHOW SOURCES'"
    assert broker_cli.error("logs", "s").startswith("error: nothing has run for 's' yet")
    assert "there is no source or table 'x'" in broker_cli.error("status", "x")


def test_a_start_that_cannot_happen_is_told_with_what_to_do(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    broker_cli.env["MZSHARE_JARS"] = str(broker_cli.home / "no-jars")
    assert broker_cli.error("start", "s").endswith("Try: mzshare jars")
    del broker_cli.env["AIRFLOW_CONN_BROKER"]
    assert "connection 'broker' is not defined" in broker_cli.error("start", "s")


def test_reading_a_table_before_and_after_its_first_tick(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    assert broker_cli.ok("read", "t", "-o", "csv").out == "n,b\n"
    assert broker_cli.ok("read", "t", "--errors", "-o", "json").json == []
    assert "no committed tick yet" in broker_cli.error("read", "t", "--tick", "1")
    times = write_ticks(broker_cli, [[(1, "a"), (2, None)], [], [(3, "\x1b[31m")]])

    assert broker_cli.ok("read", "t", "-o", "json").json == [
        {"n": 1, "b": "a"}, {"n": 2, "b": None}, {"n": 3, "b": "\x1b[31m"},
    ]  # fmt: skip
    assert "\x1b" not in broker_cli.ok("read", "t").out
    assert len(broker_cli.ok("read", "t", "--tick", "2", "-o", "json").json) == 2
    assert len(broker_cli.ok("read", "t", "--as-of", str(times[1]), "-o", "json").json) == 2
    assert len(broker_cli.ok("read", "t", "--as-of", str(times[2]), "-o", "json").json) == 3
    first = broker_cli.ok("read", "t", "--limit", "1", "--system-columns", "-o", "csv").out
    assert list(csv.reader(io.StringIO(first))) == [
        ["n", "b", "_mz_tick", "_mz_partition", "_mz_offset"], ["1", "a", "1", "0", "0"],
    ]  # fmt: skip
    assert "is not final yet" in broker_cli.error("read", "t", "--as-of", str(times[2] + 1))
    assert "is no longer there, or never was" in broker_cli.error("read", "t", "--as-of", "1")
    assert broker_cli.error("read", "s").startswith("error: table 's' does not exist")


def test_waiting_ends_when_reached_when_hopeless_or_when_time_is_up(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic))
    assert "has no tables" in broker_cli.error("wait", "s")
    broker_cli.ok("sql", TABLE)
    late = broker_cli("wait", "t", "--timeout", "0.5")
    assert late.code == 1
    assert late.err.splitlines()[-1].startswith("error: t is not live after 0.5 s: the source is waiting")
    write_ticks(broker_cli, [[(1, "a")]], job_state="running")
    assert broker_cli.ok("wait", "t").out == "t is live: 1 rows, tick 1\n"
    behind = broker_cli("wait", "s", "--for", "caught-up", "--timeout", "0.5")
    assert behind.code == 1
    write_ticks(broker_cli, [[(2, "b"), (3, "c")]])
    reached = json.loads(broker_cli.ok("wait", "s", "--for", "caught-up", "-o", "json").out)
    assert (reached["reached"], reached["rows"], reached["tables"]) == ("caught-up", 3, ["public.t"])
    note_a_failed_job(broker_cli)
    broker_cli.ok("wait", "t", "--for", "caught-up")  # all of it is there, whatever became of the app


def test_waiting_fails_at_once_with_the_apps_own_error(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    note_a_failed_job(broker_cli)
    began = time.monotonic()
    answer = broker_cli("wait", "t", "--timeout", "60")
    assert time.monotonic() - began < 30
    assert answer.code == 1
    assert answer.err.splitlines()[-1] == (
        "error: source public.s is failed: Kafka refused the credentials. Try: mzshare logs public.s"
    )


def test_logs_of_a_job_are_printed_and_followed_to_its_end(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    catalog = Catalog(f"sqlite:///{broker_cli.home / 'catalog.db'}")
    folder = broker_cli.home / "jobs" / "u1" / "j"
    folder.mkdir(parents=True)
    (folder / "log").write_text("one\ntwo\n")
    with catalog.write() as session:
        job_id = jobs.create_job(session, kind="ingest", source_id=ItemId("u1"), launcher="process", folder=str(folder))
    assert broker_cli.ok("logs", "t", "-n", "1").out == "two\n"
    assert broker_cli.ok("logs", job_id, "-o", "csv").out == f"job,line\n{job_id},one\n{job_id},two\n"
    command = broker_cli.command("logs", "s", "-f")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=broker_cli.environment) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "one\n"
        with (folder / "log").open("a") as log:
            log.write("three\n")
        assert [following.stdout.readline() for _ in range(2)] == ["two\n", "three\n"]
        with catalog.write() as session:
            jobs.set_state(session, job_id, "stopped", expect=jobs.ACTIVE)
        assert following.wait(20) == 0
    catalog.close()


def test_reconcile_in_a_loop_goes_on_until_interrupted(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    broker_cli.env["MZSHARE_JARS"] = str(broker_cli.home / "no-jars")
    command = broker_cli.command("reconcile", "--loop", "0.1")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=broker_cli.environment) as looping:
        assert looping.stderr is not None
        for _ in range(3):
            assert looping.stderr.readline().startswith("error: start public.s: jar ")
        looping.send_signal(signal.SIGINT)
        assert looping.wait(20) == 130
        assert "Traceback" not in looping.stderr.read()


def test_output_to_a_reader_that_leaves_is_no_traceback(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    write_ticks(broker_cli, [[(n, "x" * 200) for n in range(5_000)]])
    command = broker_cli.command("read", "t", "-o", "csv")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=broker_cli.environment
    ) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"n,b\n"
        reading.stdout.close()
        assert reading.stderr is not None
        assert reading.stderr.read() == b""


def test_colours_on_a_terminal_and_not_where_they_are_unwanted(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic))
    assert "\x1b[" in on_terminal(broker_cli, "sql", "SHOW SOURCES")
    assert "\x1b[" not in on_terminal(broker_cli, "sql", "SHOW SOURCES", NO_COLOR="1")
    assert "\x1b[" not in on_terminal(broker_cli, "sql", "SHOW SOURCES", "-o", "csv")


def test_doctor_finds_what_is_well_and_what_is_not(broker_cli: Cli) -> None:
    findings = {f["check"]: f for f in broker_cli.ok("doctor", "broker", "-o", "json").json}
    assert findings["storage"]["ok"] is True
    assert findings["compaction"]["ok"] is True
    assert "will be made on first use" in str(findings["catalog"]["detail"])
    assert "1 broker" in str(findings["connection broker"]["detail"])
    assert not broker_cli.home.joinpath("warehouse").exists(), "a look leaves nothing"
    broker_cli.env["MZSHARE_JARS"] = str(broker_cli.home / "no-jars")
    answer = broker_cli("doctor", "nosuch", "-o", "json")
    assert answer.code == 1
    assert [f["check"] for f in answer.json if not f["ok"]] == ["jars", "connection nosuch"]
    assert answer.err == "error: not well: jars, connection nosuch. Try: what the hints say\n"


def test_jars_are_checked_without_fetching(cli: Cli, jars: Path) -> None:
    cli.env["MZSHARE_JARS"] = str(jars)
    assert "6 jars" in cli.ok("jars", "--check", "--group", "spark").out
    listed = cli.ok("jars", "--group", "spark", "-o", "json").json
    assert {entry["status"] for entry in listed} == {"present"}
    cli.env["MZSHARE_JARS"] = str(cli.home / "none")
    assert cli.error("jars", "--check").endswith("Try: mzshare jars")
    assert "there is no jar group 'x'" in cli.error("jars", "--group", "x")


def write_ticks(cli: Cli, ticks: list[list[tuple[int, str | None]]], *, job_state: str = "") -> list[int]:
    """What the app does, for one table and one partition: mint, write, commit; give back the ticks' times."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
        collections = {
            row.role: row.id for row in session.scalars(select(CollectionRow).where(CollectionRow.table_id == table.id))
        }
    schema = pa.schema(
        [("n", pa.int32()), ("b", pa.string()), ("_mz_tick", pa.int64()), ("_mz_partition", pa.int32()),
         ("_mz_offset", pa.int64())]
    )  # fmt: skip
    warehouse = str(cli.home / "warehouse")
    create_collection(warehouse, collections["data"], schema)
    store, times = CatalogTickStore(catalog, source.id), []
    job_id = JobId("writer")
    if job_state:
        with catalog.write() as session:
            job_id = jobs.create_job(session, kind="ingest", source_id=source.id, launcher="elsewhere", folder="/none")
            jobs.note_start(session, job_id, pid=1, pid_started=1.0, host="another-machine")
            jobs.set_state(session, job_id, "running", expect={"starting"})
    holder = store.claim(job_id, stood_still=store.load().lease)
    for rows in ticks:
        lower = store.load().upper
        upper = Position({"0": lower["0"] + len(rows)})
        tick = store.mint(holder, lower=lower, upper=upper, incarnation=source.incarnation)
        written: tuple[Written, ...] = ()
        if rows:
            collection = Collection.open(warehouse, collections["data"])
            values = [
                {"n": n, "b": b, "_mz_tick": tick.number, "_mz_partition": 0, "_mz_offset": lower["0"] + i}
                for i, (n, b) in enumerate(rows)
            ]
            write_deltalake(
                collection.uri,
                pa.Table.from_pylist(values, schema),
                mode="append",
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(collections["data"], tick.mz_timestamp)]
                ),
            )
            collection.refresh()
            written = (Written(collections["data"], collection.delta_version, len(rows), "0" * 32),)
        store.commit(holder, tick.number, {table.id: Done(written, rows=len(rows))}, {})
        times.append(tick.mz_timestamp)
    catalog.close()
    return times


def note_a_failed_job(cli: Cli) -> None:
    """A job that ended badly, as the app itself would note it."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.write() as session:
        for job in jobs.active_jobs(session):
            jobs.set_state(session, job.id, "stopped", expect=jobs.ACTIVE)
        job_id = jobs.create_job(session, kind="ingest", source_id=ItemId("u1"), launcher="process", folder="/none")
        jobs.set_state(session, job_id, "failed", expect=jobs.ACTIVE, error="Kafka refused the credentials.")
    catalog.close()


def on_terminal(cli: Cli, *argv: str, **env: str) -> str:
    """Run with a pseudo-terminal as standard output, and give back what it shows."""
    master, slave = pty.openpty()
    with subprocess.Popen(cli.command(*argv), stdout=slave, env={**cli.environment, "TERM": "xterm", **env}) as running:
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65_536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    os.close(master)
    assert running.returncode == 0
    return shown.decode()
