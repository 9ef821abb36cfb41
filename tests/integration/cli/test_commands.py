"""Commands as a user runs them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.integration.cli.conftest import Cli
from tests.support.cli_ticks import SOURCE, TABLE, on_terminal, write_ticks
from tests.support.kafka import create_topic, produce


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    """Of one partition: what is waited for is exact."""
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


def test_a_servers_catalog_is_made_only_when_asked_for(cli: Cli, empty_url: str) -> None:
    if not empty_url.startswith("postgresql"):
        assert "created" in cli.ok("catalog", "upgrade").out
        return
    cli.env["MZSHARE_CATALOG"] = empty_url
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
    broker_cli.env["MZSHARE_HOME"] = str(broker_cli.home / "a home 100% ünï 漢")
    findings = {f["check"]: f for f in broker_cli.ok("doctor", "broker", "-o", "json").json}
    assert findings["storage"]["ok"] is True
    assert findings["compaction"]["ok"] is True
    assert findings["files"]["ok"] is True
    assert "will be created on first use" in str(findings["catalog"]["detail"])
    assert "1 broker" in str(findings["connection broker"]["detail"])
    assert re.fullmatch(r"local\[1\] starts and works; it took [0-9.]+ s", str(findings["spark"]["detail"]))
    assert not broker_cli.home.joinpath("a home 100% ünï 漢").exists(), "a look leaves nothing"
    broker_cli.env["MZSHARE_JARS"] = str(broker_cli.home / "no-jars")
    answer = broker_cli("doctor", "nosuch", "--no-spark", "-o", "json")
    assert answer.code == 1
    assert [f["check"] for f in answer.json if not f["ok"]] == ["jars", "connection nosuch"]
    assert answer.err == "error: these checks failed: jars, connection nosuch. Try: what the hints say\n"


def test_doctor_tells_a_home_that_cannot_be_made_and_leaves_nothing_of_one_that_can(broker_cli: Cli) -> None:
    place = broker_cli.home.parent / "place"
    place.write_text("a file, where a folder is wanted")
    broker_cli.env["MZSHARE_HOME"] = str(place / "home")
    answer = broker_cli("doctor", "--no-spark", "-o", "json")
    assert {"storage", "catalog"} <= {f["check"] for f in answer.json if not f["ok"]}
    place.unlink()
    findings = {f["check"]: f for f in broker_cli("doctor", "--no-spark", "-o", "json").json}
    assert findings["storage"]["ok"] is True
    assert "will be created on first use" in str(findings["storage"]["detail"])
    assert 'version "' in str(findings["java"]["detail"])
    assert not place.exists()


def test_jars_are_checked_without_fetching(cli: Cli, jars: Path) -> None:
    cli.env["MZSHARE_JARS"] = str(jars)
    assert "6 jars" in cli.ok("jars", "--check", "--group", "spark").out
    listed = cli.ok("jars", "--group", "spark", "-o", "json").json
    assert {entry["status"] for entry in listed} == {"present"}
    cli.env["MZSHARE_JARS"] = str(cli.home / "none")
    assert cli.error("jars", "--check").endswith("Try: mzshare jars")
