"""An app in a home with an odd name: it starts, writes and is read there, and what it leaves is its user's alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.postgres import Postgres
from tests.support.waiting import wait_until

SCRIPT = """
    CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1ms', UP TO 50);
    CREATE TABLE t FROM SOURCE s;
    CREATE VIEW v AS SELECT count(*) AS n FROM t;
"""


class Home:
    """The command line in processes of their own, whose umask lets others read."""

    def __init__(self, folder: Path, catalog: str) -> None:
        self.folder = folder
        self._env = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "MZSHARE_JARS") if name in os.environ},
            "PYTHONPATH": str(ROOT),
            "MZSHARE_HOME": str(folder),
            "MZSHARE_CATALOG": catalog,
            "MZSHARE_MASTER": "local[1]",
            "TMPDIR": str(folder.parent),
        }

    def __call__(self, *argv: str) -> str:
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", *argv]
        ran = subprocess.run(command, env=self._env, umask=0o022, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def rows(self) -> int:
        return int(json.loads(self("sql", "SHOW TABLES", "-o", "json"))[0]["rows"][0]["rows"])


@pytest.fixture
def home(jars: Path, tmp_path: Path, postgres: Postgres) -> Iterator[Home]:
    folder = tmp_path / "a place" / "my home 100% ünï 漢 it's ? : &"
    folder.parent.mkdir()
    with postgres.database() as url:
        made = Home(folder, url)
        made("catalog", "upgrade")
        yield made
        made("stop", "s")


def test_an_app_works_in_a_home_of_any_name_and_leaves_nothing_to_others(home: Home) -> None:
    home("sql", SCRIPT)
    home("start", "s")
    wait_until(lambda: home.rows() == 50, 120, "the app's rows", every=1)
    assert json.loads(home("read", "v", "-o", "json")) == [{"n": 50}]
    home("stop", "s")
    made = [home.folder, *home.folder.rglob("*")]
    assert {path.parts[len(home.folder.parts)] for path in made[1:]} == {"jobs", "warehouse"}
    assert any(path.suffix == ".parquet" for path in made)
    open_to_others = {path: oct(path.stat().st_mode) for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert not open_to_others
