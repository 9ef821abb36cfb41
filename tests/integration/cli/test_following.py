"""Commands that follow what runs: status, start and stop, wait, read, logs."""

from __future__ import annotations

import csv
import io
import json
import signal
import socket
import subprocess
import time

import pytest

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.supervision.status import LAG_SECONDS
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.integration.cli.conftest import Cli
from tests.support.cli_ticks import SOURCE, TABLE, note_a_failed_job, on_terminal, stall, write_errors, write_ticks
from tests.support.kafka import create_topic, produce


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    """Of one partition: what is waited for is exact."""
    name = create_topic(kafka)
    produce(kafka, name, [b'{"n": 1}'] * 3)
    return name


def test_status_start_and_stop_before_anything_runs(broker_cli: Cli, topic: str) -> None:
    broker_cli.ok("sql", SOURCE.format(topic=topic))
    (status,) = broker_cli.ok("status", "-o", "json").json
    assert (status["name"], status["health"], status["lag"]) == ("public.s", "waiting", 3)
    assert broker_cli.ok("start", "s").out == (
        "nothing to do, source public.s is waiting: it has no tables. "
        "Try: mzshare sql 'CREATE TABLE … FROM SOURCE public.s …'\n"
    )
    broker_cli.ok("sql", TABLE)
    assert broker_cli.ok("reconcile", "--dry-run").out == "start public.s: it should run\n"
    assert broker_cli.ok("stop", "S").out == ("nothing to do, source public.s is stopped: it was asked to stop\n")
    assert broker_cli.ok("reconcile", "-o", "json").json == []
    (status,) = broker_cli.ok("status", "s", "-o", "json").json
    assert (status["name"], status["status"], status["lag"]) == ("public.t", "created", 3)
    assert (status["source_health"], status["source_reason"], status["job"]) == (
        "stopped", "it was asked to stop", None,
    )  # fmt: skip
    assert "stopped" in broker_cli.ok("status", "s").out
    told = "error: 't' is a table, not a source. Try: mzshare sql 'SHOW SOURCES'"
    assert broker_cli.error("start", "t") == told
    assert broker_cli.error("logs", "s").startswith("error: nothing has run for 's' yet")
    assert "there is no source or table 'x'" in broker_cli.error("status", "x")
    for command in ("status", "wait", "start", "read"):
        assert "'ingest-nope' is not a name; write [schema.]name" in broker_cli.error(command, "ingest-nope")
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
    assert "which is gone or never was" in broker_cli.error("read", "t", "--as-of", "1")
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
