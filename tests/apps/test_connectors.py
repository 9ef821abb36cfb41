"""A source of another package's connector, from its words in SQL to verified rows, through the commands of a user."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugins import CONNECTOR, python_with
from tests.support.waiting import wait_until

LINES = 400


class Home:
    """A home of mzshare, and a Python that has the connector's package besides."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.lines, self._made = folder / "lines", 0
        self.lines.mkdir()
        (self.lines / "id").write_text("the first")
        self._python = python_with(CONNECTOR, folder / "python")
        self._env = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ},
            "MZSHARE_HOME": str(folder / "home"),
            "MZSHARE_JARS": str(jars),
            "MZSHARE_MASTER": "local[2]",
        }

    def write(self, count: int) -> None:
        """Every seventh number is no line, every tenth line no JSON."""
        for partition in range(2):
            numbers = (n for n in range(self._made, self._made + count) if n % 7 != 3)
            bodies = [f"{n} {json.dumps({'id': n, 'p': partition}) if n % 10 else '{'}\n" for n in numbers]
            with (self.lines / f"{partition}.lines").open("a") as file:
                file.write("".join(bodies))
        self._made += count

    def places(self) -> set[tuple[int, int]]:
        return {(p, n) for p in range(2) for n in range(self._made) if n % 7 != 3}

    def run(self, *words: str) -> str:
        command = [self._python, "-m", "airflow_provider_mzshare.cli.main", *words]
        ran = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, f"{words}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def rows(self, table: str, *words: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.run("read", table, "--system-columns", "-o", "json", *words))
        return rows

    def is_complete(self, table: str) -> bool:
        """Every line is a row or an error of the table, once, at its place."""
        found = [
            (row["_mz_partition"], row["_mz_offset"]) for more in ((), ("--errors",)) for row in self.rows(table, *more)
        ]
        assert len(found) == len(set(found)), "no place twice"
        return set(found) == self.places()

    def answer(self, query: str) -> list[dict[str, Any]]:
        (answered,) = json.loads(self.run("sql", query, "-o", "json"))
        rows: list[dict[str, Any]] = answered["rows"]
        return rows


@pytest.fixture
def home(tmp_path: Path, jars: Path) -> Iterator[Home]:
    made = Home(tmp_path, jars)
    made.write(LINES)
    try:
        yield made
    finally:
        made.run("stop", "log")


@pytest.mark.timeout(900)
def test_a_source_of_another_package_is_made_shown_read_added_to_and_verified(home: Home) -> None:
    source = f"CREATE SOURCE public.log FROM NUMBERED LINES (FOLDER '{home.lines}', BATCH 150)"
    home.run("sql", f"{source} WITH (TRIGGER INTERVAL '200ms', IDLE TICK INTERVAL '1s')")
    home.run("sql", "CREATE TABLE early (id bigint, p integer) FROM SOURCE log FORMAT JSON INCLUDE OFFSET")
    assert source in home.run("sql", "SHOW CREATE SOURCE log", "-o", "json")
    (shown,) = home.answer("SHOW SOURCES")
    assert (shown["kind"], shown["connection"], shown["topic"]) == ("numbered_lines", None, str(home.lines))
    (stored,) = home.answer("SELECT type, connection_id FROM mz_sources")
    assert stored == {"type": "numbered-lines", "connection_id": None}

    home.run("start", "log")
    wait_until(lambda: home.is_complete("early"), 300, "all lines", every=2)
    home.write(50)
    home.run("sql", "CREATE TABLE late (p integer) FROM SOURCE log FORMAT JSON")
    home.run("wait", "late", "--timeout", "300")
    wait_until(lambda: home.is_complete("late") and home.is_complete("early"), 300, "all lines of both", every=2)
    for table in ("early", "late"):
        assert "exact" in home.run("verify", table, "--all")
