"""Commands as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog, items, jobs
from airflow_provider_mzshare.control.catalog.models import CollectionRow
from airflow_provider_mzshare.control.catalog.ticks import CatalogTickStore
from airflow_provider_mzshare.control.status import LAG_SECONDS
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections import Collection, create_collection
from airflow_provider_mzshare.storage.fanout.plan import errors_schema
from airflow_provider_mzshare.storage.ticks.state import Done, Left, Written
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
    assert broker_cli.ok("sql", "-f", str(file)).out == (
        "CREATE SOURCE public.s u1\nCREATE TABLE public.t u2 (joins at the next tick)\n"
    )
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
    assert broker_cli.ok("start", "s").out == (
        "nothing was to be done, source public.s is waiting: it has no tables. "
        "Try: mzshare sql 'CREATE TABLE … FROM SOURCE public.s …'\n"
    )
    broker_cli.ok("sql", TABLE)
    assert broker_cli.ok("reconcile", "--dry-run").out == "start public.s: it should run\n"
    assert broker_cli.ok("stop", "S").out == (
        "nothing was to be done, source public.s is stopped: it was asked to stop\n"
    )
    assert broker_cli.ok("reconcile", "-o", "json").json == []
    (status,) = broker_cli.ok("status", "s", "-o", "json").json
    assert (status["name"], status["status"], status["lag"]) == ("public.t", "created", 3)
    assert (status["source_health"], status["source_reason"], status["job"]) == (
        "stopped", "it was asked to stop", None,
    )  # fmt: skip
    assert "stopped" in broker_cli.ok("status", "s").out
    told = "error: source 't' does not exist: it is a table. Try: mzshare sql 'SHOW SOURCES'"
    assert broker_cli.error("start", "t") == told
    assert broker_cli.error("logs", "s").startswith("error: nothing has run for 's' yet")
    assert "there is no source or table 'x'" in broker_cli.error("status", "x")
    for command in ("status", "wait", "start", "read"):
        assert "'ingest-nope' is not a name: [schema.]name" in broker_cli.error(command, "ingest-nope")
    assert "there is no job, source or table 'ingest-nope'" in broker_cli.error("logs", "ingest-nope")


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
    (progress,) = broker_cli.ok("read", "s", "-o", "json").json
    assert progress == {"partition": 0, "offset": 3, "tick": 3, "mz_timestamp": times[2]}
    assert broker_cli.error("read", "nobody").startswith("error: ")


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
    assert broker_cli.ok("wait", "s").out == "s is live: 1 table, 3 rows, tick 2\n"


@pytest.mark.parametrize("goal", ["live", "caught-up"])
def test_waiting_fails_for_what_has_ended_although_rows_are_there(broker_cli: Cli, topic: str, goal: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    write_ticks(broker_cli, [[(1, "a"), (2, "b"), (3, "c")]], job_state="running")
    broker_cli.ok("wait", "t", "--for", goal)
    note_a_failed_job(broker_cli)
    assert broker_cli("wait", "t", "--for", goal).err.endswith(
        "error: source public.s is failed: Kafka refused the credentials. Try: mzshare logs public.s\n"
    )
    broker_cli.ok("stop", "s")
    assert "source public.s is stopped: it was asked to stop" in broker_cli.error("wait", "s", "--for", goal)
    stall(broker_cli)
    line = broker_cli.error("wait", "s", "--for", goal)
    assert line.startswith("error: source public.s is stalled: the topic was made anew. Try: mzshare sql 'DROP SOURCE")


def test_a_stalled_source_is_not_started_and_says_why(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    stall(broker_cli)
    for output in ("table", "json"):
        answer = broker_cli("start", "s", "-o", output)
        assert answer.code == 1
        assert answer.out == ("" if output == "table" else "[]\n")
        assert answer.err.startswith("error: source public.s is stalled: the topic was made anew. Try: mzshare sql")
    assert "is stalled: the topic was made anew" in broker_cli.ok("stop", "s").out


def test_a_stalled_table_is_told_everywhere(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    write_ticks(broker_cli, [[(1, "a")]], job_state="running")
    stall(broker_cli, "partition 0, offset 1: not JSON")
    (source,) = broker_cli.ok("status", "-o", "json").json
    assert (source["health"], source["reason"]) == ("running", "1 of 1 tables stalled")
    assert source["hint"] == "mzshare status public.s"
    (table,) = broker_cli.ok("status", "s", "-o", "json").json
    assert (table["status"], table["source_health"], table["job"]) == ("stalled", "running", source["job"])
    assert str(table["hint"]).startswith("mzshare sql 'ALTER TABLE public.t RESUME'")
    assert "table public.t is stalled: partition 0, offset 1: not JSON" in broker_cli.error("wait", "s")
    lines = on_terminal(broker_cli, "status", "s", NO_COLOR="1", COLUMNS="80").splitlines()
    assert lines[-1].startswith(
        "public.t: partition 0, offset 1: not JSON. Try: mzshare sql 'ALTER TABLE public.t RESUME'"
    )


def test_a_status_fits_a_terminal_of_80_columns(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    write_ticks(broker_cli, [[(1, "a"), (2, "b")]], job_state="running")
    lines = on_terminal(broker_cli, "status", "s", NO_COLOR="1", COLUMNS="80").splitlines()
    (heads, row) = (line.split() for line in lines[-3:] if "-" * 4 not in line)
    assert max(map(len, lines)) <= 80
    assert [word for word in heads if word != "|"] == ["name", "status", "rows", "errors", "lag", "position"]
    assert [word for word in row if word != "|"] == ["public.t", "live", "2", "0", "1", "0:2"]
    assert "health" in broker_cli.ok("status", "t").out, "of a table's source too"


def test_upstreams_that_do_not_answer_are_asked_together_and_leave_a_question_mark(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", "".join(SOURCE.format(topic=topic).replace("SOURCE s", f"SOURCE s{n}") for n in range(4)))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}"}}
        broker_cli.env["AIRFLOW_CONN_BROKER"] = json.dumps(connection)
        began = time.monotonic()
        rows = broker_cli.ok("status").out.splitlines()[2:6]
        seconds = time.monotonic() - began
    assert [row.split("|")[3].strip() for row in rows] == ["?"] * 4
    assert seconds < 2 * LAG_SECONDS
    assert "?" not in broker_cli.ok("status", "--no-lag").out


def test_records_that_did_not_decode_are_shown_as_the_text_they_are(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic) + TABLE)
    write_errors(broker_cli, [(b'{"n": "x\x1b"}', "n: not a number"), (b"\xff\xfe", "not UTF-8")])
    head, _, first, second = broker_cli.ok("read", "t", "--errors").out.splitlines()
    assert head.split()[0] == "error"
    assert '{"n": "x\\x1b"}' in first
    assert "\\xfffe" in second
    values = [row["value"] for row in broker_cli.ok("read", "t", "--errors", "-o", "json").json]
    assert values == ["\\x" + b'{"n": "x\x1b"}'.hex(), "\\xfffe"]


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
    (folder / "log").write_text("\tat Main\x1b\n")
    assert broker_cli.ok("logs", "t").out == "        at Main\\x1b\n"
    (folder / "log").write_text("one\ntwo\n")
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


def test_doctor_tells_a_home_that_cannot_be_made_and_leaves_nothing_of_one_that_can(broker_cli: Cli) -> None:
    place = broker_cli.home.parent / "place"
    place.write_text("a file, where a folder is wanted")
    broker_cli.env["MZSHARE_HOME"] = str(place / "home")
    answer = broker_cli("doctor", "-o", "json")
    assert {"storage", "catalog"} <= {f["check"] for f in answer.json if not f["ok"]}
    place.unlink()
    findings = {f["check"]: f for f in broker_cli("doctor", "-o", "json").json}
    assert findings["storage"]["ok"] is True
    assert "will be made on first use" in str(findings["storage"]["detail"])
    assert 'version "' in str(findings["java"]["detail"])
    assert not place.exists()


def test_jars_are_checked_without_fetching(cli: Cli, jars: Path) -> None:
    cli.env["MZSHARE_JARS"] = str(jars)
    assert "6 jars" in cli.ok("jars", "--check", "--group", "spark").out
    listed = cli.ok("jars", "--group", "spark", "-o", "json").json
    assert {entry["status"] for entry in listed} == {"present"}
    cli.env["MZSHARE_JARS"] = str(cli.home / "none")
    assert cli.error("jars", "--check").endswith("Try: mzshare jars")


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


def stall(cli: Cli, table_reason: str = "") -> None:
    """What the app does when the source cannot go on, or (with a reason for it) the table."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
    store = CatalogTickStore(catalog, source.id)
    holder = store.claim(JobId("staller"), stood_still=store.load().lease)
    if table_reason:
        lower = store.load().upper
        tick = store.mint(holder, lower=lower, upper=Position({"0": lower["0"] + 1}), incarnation=source.incarnation)
        store.commit(holder, tick.number, {table.id: Left(table_reason)}, {})
    else:
        store.stall(holder, "topic_recreated", "the topic was made anew")
    catalog.close()


def write_errors(cli: Cli, records: list[tuple[bytes, str]]) -> None:
    """One tick of records that did not decode."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
        query = select(CollectionRow.id).where(CollectionRow.table_id == table.id, CollectionRow.role == "errors")
        collection_id = session.scalars(query).one()
    store, warehouse = CatalogTickStore(catalog, source.id), str(cli.home / "warehouse")
    holder = store.claim(JobId("writer"), stood_still=store.load().lease)
    upper = Position({"0": len(records)})
    tick = store.mint(holder, lower=store.load().upper, upper=upper, incarnation=source.incarnation)
    create_collection(warehouse, collection_id, errors_schema())
    collection = Collection.open(warehouse, collection_id)
    rows = [
        {"timestamp": datetime.now(timezone.utc), "key": None, "value": value, "error": error,
         "_mz_tick": tick.number, "_mz_partition": 0, "_mz_offset": offset}
        for offset, (value, error) in enumerate(records)
    ]  # fmt: skip
    done = CommitProperties(app_transactions=[Transaction(collection_id, tick.mz_timestamp)])
    batch = pa.Table.from_pylist(rows, errors_schema())
    write_deltalake(collection.uri, batch, mode="append", commit_properties=done)
    collection.refresh()
    written = Written(collection_id, collection.delta_version, len(rows), "0" * 32)
    store.commit(holder, tick.number, {table.id: Done((written,), errors=len(rows))}, {})
    catalog.close()


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
