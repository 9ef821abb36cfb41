"""The example DAGs import, and do what they say on a real Airflow."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_dag_imports_and_the_reconciler_runs(airflow_database: Path, tmp_path: Path) -> None:
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(airflow_database.parent),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MZSHARE_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(*command: str) -> str:
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    run("airflow", "dags", "reserialize")
    with closing(sqlite3.connect(airflow_database)) as database:
        assert database.execute("SELECT filename, stacktrace FROM import_error").fetchall() == []
        found = {dag for (dag,) in database.execute("SELECT dag_id FROM dag")}
    assert found == {path.stem for path in (ROOT / "dags").glob("*.py")}
    run("mzshare", "catalog", "upgrade")
    assert "state=success" in run("airflow", "dags", "test", "mzshare_reconcile")
