"""A format of another package, from its word in SQL to the rows, through the commands that a user has."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.catalog import new_sqlite
from tests.support.kafka import Record, create_topic, produce
from tests.support.plugins import FORMAT, python_with
from tests.support.stack import Stack

TABLE = (
    "CREATE TABLE public.people (id bigint, name text) FROM SOURCE public.events (REFERENCE {}) "
    "FORMAT PIPED INCLUDE KEY"
)


@pytest.mark.timeout(600)
def test_a_source_is_read_in_a_format_that_another_package_brings(
    kafka: EmbeddedKafka, jars: Path, tmp_path: Path
) -> None:
    stack = Stack(tmp_path, kafka, Catalog(new_sqlite(tmp_path / "catalog.db")))
    topic = create_topic(kafka, 1)
    source = stack.create("events", topic, [])
    values = [b"1|ann", b"2|", b"x|bob", b"1|2|3", None, b"4|eve\xff", b"5|zo\xc3\xab"]
    produce(kafka, topic, [Record(value, key=b"\xff", partition=0) for value in values])
    python = python_with(FORMAT, tmp_path / "python")
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ},
        **stack.env,
        "MZSHARE_JARS": str(jars),
    }

    def mzshare(*words: str) -> str:
        command = [python, "-m", "airflow_provider_mzshare.cli.main", *words]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    statement = TABLE.format(f'"{topic}"')
    mzshare("sql", statement)
    assert statement in mzshare("sql", "SHOW CREATE TABLE people", "-o", "json").replace('\\"', '"')
    try:
        mzshare("start", "events")
        stack.wait_caught_up(source, ["people"], timeout=300)
        rows = json.loads(mzshare("read", "people", "-o", "json"))
        assert [(row["id"], row["name"]) for row in rows] == [(1, "ann"), (2, None), (5, "zoë")]
        assert set(stack.rows("people")) == {
            (1, "ann", b"\xff", 0, 0),
            (2, None, b"\xff", 0, 1),
            (5, "zoë", b"\xff", 0, 6),
        }
        errors = json.loads(mzshare("read", "people", "--errors", "-o", "json"))
        assert [row["error"] for row in errors] == [
            "field 1: not valid JSON",
            "3 fields, not 2",
            "value is NULL",
            "invalid UTF-8 at byte 5",
        ]
        assert "exact" in mzshare("verify", "people")
    finally:
        mzshare("stop", "events")
    stack.catalog.close()
