"""Connections through a real Airflow with its own metadata database: outside of tasks, inside, and unconfigured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig

EXTRA = {"bootstrap.servers": "b:9092", "sasl.password": 'x"y\\', "socket.timeout.ms": 10}
URIS = [
    "kafka://b:9092",
    "kafka://b1%3A9092%2Cb2%3A9093",
    "kafka://a%40b:p%2Fw%3A%25@h:1/s%2Fx",
    "kafka:///?client.id=a%26b&group.id=",
    "kafka://h/?__extra__=%7B%22sasl.password%22%3A+%22x%3Fy%22%2C+%22n%22%3A+1%7D",
    "my-type://https://h:443/p",
]

OUTSIDE = """
import json, sys
from airflow_provider_mzshare.errors import UnknownConnection
from airflow_provider_mzshare.hooks.connections import default_connections

store = default_connections()
answer = {"env": store.get("from_env").to_dict(), "airflow_after_env": "airflow" in sys.modules}
answer["stored"] = store.get("stored").to_dict()
try:
    store.get("nowhere")
except UnknownConnection as error:
    answer["nowhere"] = error.line
from airflow.models.connection import Connection as Model
from airflow_provider_mzshare.connectors.connections import parse_connection
fields = ("conn_type", "host", "port", "login", "password", "schema")
answer["uris"] = [
    [
        {**{f: getattr(Model("c", uri=uri), f) or None for f in fields}, "extra": Model("c", uri=uri).extra_dejson},
        {k: v for k, v in parse_connection("c", uri).to_dict().items() if k != "name"},
    ]
    for uri in json.loads(sys.argv[1])
]
print("ANSWER" + json.dumps(answer))
"""

INSIDE = """
from pathlib import Path
from airflow.sdk import DAG, task

with DAG("asks_for_connections") as dag:

    @task
    def ask(target):
        import json
        from airflow_provider_mzshare.errors import UnknownConnection
        from airflow_provider_mzshare.hooks.connections import default_connections, in_task

        answer = {"in_task": in_task(), "stored": default_connections().get("stored").to_dict()}
        try:
            default_connections().get("nowhere")
        except UnknownConnection as error:
            answer["nowhere"] = error.line
        Path(target).write_text(json.dumps(answer))

    ask(str(Path(__file__).with_name("answer.json")))
"""


def run(home: Path, *command: str, **more: str) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "PYTHONPATH": str(Path(__file__).parents[3]),
        **more,
    }
    ran = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, f"{command}: {ran.stdout[-2000:]} {ran.stderr[-2000:]}"
    return ran.stdout


def test_connections_are_found_wherever_airflow_has_them(tmp_path: Path, airflow_template: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "asks.py").write_text(INSIDE)
    shutil.copy(airflow_template, tmp_path / "airflow.db")
    added = ["--conn-type", "kafka", "--conn-host", "Host", "--conn-port", "7", "--conn-password", "s"]
    run(tmp_path, "airflow", "connections", "add", "stored", *added, "--conn-extra", json.dumps(EXTRA))
    # Airflow keeps a type that no installed provider knows as "generic".
    stored = {
        "name": "stored", "conn_type": "generic", "host": "Host", "port": 7, "login": None, "password": "s",
        "schema": None, "extra": EXTRA,
    }  # fmt: skip

    said = run(tmp_path, sys.executable, "-c", OUTSIDE, json.dumps(URIS), AIRFLOW_CONN_FROM_ENV="kafka://elsewhere:1")
    outside = json.loads(said.rpartition("ANSWER")[2])
    assert outside["env"]["host"] == "elsewhere"
    assert outside["airflow_after_env"] is False
    assert outside["stored"] == stored
    assert KafkaConfig.from_connection(Connection.from_dict(stored | {"extra": {}})).bootstrap == "Host:7"
    assert "AIRFLOW_CONN_NOWHERE" in outside["nowhere"]
    assert len(outside["uris"]) == len(URIS)
    for airflows, ours in outside["uris"]:
        assert ours == airflows

    run(tmp_path, "airflow", "dags", "test", "asks_for_connections")
    inside = json.loads((tmp_path / "dags" / "answer.json").read_text())
    assert inside["in_task"] is True
    assert inside["stored"] == stored
    assert "'nowhere'" in inside["nowhere"]


def test_an_airflow_that_nobody_configured_is_not_even_imported(tmp_path):
    script = """
import sys
from airflow_provider_mzshare.errors import UnknownConnection
from airflow_provider_mzshare.hooks.connections import default_connections
try:
    default_connections().get("nowhere")
except UnknownConnection:
    print("airflow" in sys.modules)
"""
    assert run(tmp_path, sys.executable, "-c", script, AIRFLOW_HOME="").strip() == "False"
    assert list(tmp_path.iterdir()) == []
