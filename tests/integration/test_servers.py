"""The fixtures themselves: fresh databases, a Postgres that survives its restart, and a check that finds leftovers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, inspect, text

from tests.support.postgres import Postgres
from tests.support.processes import left_behind


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_gets_an_empty_catalog_database(catalog_url: str, turn: int) -> None:
    engine = create_engine(catalog_url)
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
    detached = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]], start_new_session=True)"
    wait = ["-c", "import time; time.sleep(60)", str(tmp_path)]
    subprocess.run([sys.executable, "-c", detached, *wait], check=True)
    assert any("time.sleep(60)" in line for line in left_behind(tmp_path, patience=0))
    assert not [line for line in left_behind(tmp_path, patience=5) if "time.sleep(60)" in line]
