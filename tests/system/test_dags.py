"""The example DAGs import, and do what they say on a real Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_dag_imports_and_the_reconciler_runs(airflow_home: Path, tmp_path: Path) -> None:
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(airflow_home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "MZSHARE_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(*command: str) -> str:
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    def listed(*command: str) -> list[dict[str, str]]:
        """Airflow logs to stdout as well: the answer is the last line."""
        answer: list[dict[str, str]] = json.loads(run(*command, "--output", "json").splitlines()[-1])
        return answer

    run("airflow", "db", "migrate")
    run("airflow", "dags", "reserialize")
    assert listed("airflow", "dags", "list-import-errors") == []
    dags = listed("airflow", "dags", "list")
    assert {dag["dag_id"] for dag in dags} == {path.stem for path in (ROOT / "dags").glob("*.py")}
    run("mzshare", "catalog", "upgrade")
    assert "state=success" in run("airflow", "dags", "test", "mzshare_reconcile")
