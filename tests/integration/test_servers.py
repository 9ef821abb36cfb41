"""The fixtures themselves: fresh databases, a Postgres that survives its restart, and a check that finds leftovers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, inspect, text

from tests.support.postgres import Postgres

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_gets_an_empty_catalog_database(empty_url: str, turn: int) -> None:
    engine = create_engine(empty_url)
    assert inspect(engine).get_table_names() == []
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE mark (turn INTEGER)"))
    engine.dispose()


def test_postgres_keeps_its_data_over_a_restart(postgres: Postgres) -> None:
    name = postgres.create_database()
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    postgres.stop()
    with pytest.raises(psycopg.OperationalError):
        postgres.connect(name)
    postgres.start()
    with postgres.connect(name) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
    postgres.drop_database(name)


def test_a_process_left_behind_is_found_and_ended(tmp_path: Path) -> None:
    """In a process of its own: what counts as left behind here are all children of this session, servers included."""
    detached = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True)"
    wait = ["-c", "import time; time.sleep(60)", str(tmp_path)]
    subprocess.run([sys.executable, "-c", detached, *wait], check=True)
    look = (
        "import sys; from pathlib import Path; from tests.support.processes import left_behind;"
        "print(left_behind(Path(sys.argv[1]), patience=0)); print(left_behind(Path(sys.argv[1]), patience=5))"
    )
    seen = subprocess.run(
        [sys.executable, "-c", look, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "time.sleep(60)" in seen[0]
    assert "time.sleep(60)" not in seen[1]
