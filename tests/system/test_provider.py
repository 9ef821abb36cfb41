"""The provider in a real Airflow: found, connected, and a DAG of its operators run with real apps."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.kafka import create_topic, produce

RECORDS = 300
DAG = """
import json
from pathlib import Path

from airflow.sdk import DAG, chain, task

from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.operators.ingestion import StartIngestionOperator, StopIngestionOperator
from airflow_provider_mzshare.operators.reading import ReadTableOperator
from airflow_provider_mzshare.operators.sources import CreateSourceOperator, DropSourceOperator
from airflow_provider_mzshare.operators.tables import CreateTableFromSourceOperator
from airflow_provider_mzshare.task_groups import add_tables

HERE = Path(__file__).parent

with DAG("adds_tables", params={"table": "named_by_form"}) as dag:
    source = CreateSourceOperator(
        task_id="source", source="s", kafka_conn_id="broker", topic="@TOPIC@",
        options={"trigger_interval": "300ms", "idle_tick_interval": "1s"}, mzshare_conn_id="mz",
    )
    first = CreateTableFromSourceOperator(
        task_id="first", source="s", table="first", columns="id bigint", mzshare_conn_id="mz",
    )
    start = StartIngestionOperator(task_id="start", source="s", mzshare_conn_id="mz")

    @task.sensor(poke_interval=0.5, timeout=120)
    def all_read():
        return MzShareHook("mz").table("first").rows == @RECORDS@

    late = add_tables(
        "late", source="s", mzshare_conn_id="mz", alias="added", timeout=240,
        tables=[{"name": "late", "columns": "id bigint, word text"}, {"name": "{{ params.table }}", "format": "text"}],
    )
    reads = [
        ReadTableOperator(task_id="count", table="{{ params.table }}", count=True, mzshare_conn_id="mz"),
        ReadTableOperator(
            task_id="rows", table="late", columns=["word", "id"], max_rows=@RECORDS@, mzshare_conn_id="mz",
        ),
        ReadTableOperator(task_id="parquet", table="late", file=str(HERE / "late.parquet"), mzshare_conn_id="mz"),
        ReadTableOperator(task_id="csv", table="late", file=f"file://{HERE}/late.csv", mzshare_conn_id="mz"),
        ReadTableOperator(task_id="json", table="late", file=str(HERE / "{{ dag.dag_id }}.json"), mzshare_conn_id="mz"),
    ]

    @task
    def note(ti=None):
        tasks = ["start", "late.start_backfill", "late.converge_late", "late.verify_late", "count", "rows"]
        told = {name: ti.xcom_pull(task_ids=name) for name in tasks}
        told["link"] = ti.xcom_pull(task_ids="start", key="_link_JobLogLink")
        (HERE / "told.json").write_text(json.dumps(told))

    stop = StopIngestionOperator(task_id="stop", source="s", mzshare_conn_id="mz")
    drop = DropSourceOperator(task_id="drop", source="s", cascade=True, mzshare_conn_id="mz")
    chain(source, first, start, all_read(), late, reads, note(), stop, drop)
"""
Run = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def run(airflow_database: Path, kafka: EmbeddedKafka, tmp_path: Path) -> Run:
    (tmp_path / "dags").mkdir()
    broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MZSHARE_")},
        "AIRFLOW_HOME": str(airflow_database.parent),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__MZSHARE__STATUS_PAGE": "True",
        "AIRFLOW__API__BASE_URL": "http://airflow:8080",
        "AIRFLOW_CONN_BROKER": json.dumps(broker),
        "AIRFLOW_CONN_WRONG": "mzshare:///?master=yarn",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def ran(*command: str, code: int = 0) -> str:
        done = subprocess.run(["airflow", *command], env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == code, done.stdout[-6000:] + done.stderr[-2000:]
        return done.stdout

    return ran


@pytest.fixture(autouse=True)
def no_app_stays(home: Path) -> Iterator[None]:
    """A test that fails half-way leaves its apps to be ended here."""
    yield
    if not (home / "catalog.db").exists():
        return
    with closing(Catalog(f"sqlite:///{home}/catalog.db")) as catalog, catalog.read() as session:
        left = jobs.active_jobs(session)
    for job in left:
        if job.pid is not None:
            ProcessLauncher().kill(Handle(job.id, Path(job.folder), job.host or "", job.pid, job.pid_started))


@pytest.mark.timeout(600)
def test_a_dag_of_operators_adds_tables_to_a_running_source(
    run: Run, kafka: EmbeddedKafka, home: Path, tmp_path: Path, airflow_database: Path, jars: Path
) -> None:
    listed = json.loads(run("providers", "list", "--output", "json").splitlines()[-1])
    assert "airflow-provider-mzshare" in {provider["package_name"] for provider in listed}

    extra = {"home": str(home), "jars": str(jars), "master": "local[2]", "lease_seconds": 10}
    run("connections", "add", "mz", "--conn-type", "mzshare", "--conn-extra", json.dumps(extra))
    assert "success" in run("connections", "test", "mz")
    assert "master cannot be" in " ".join(run("connections", "test", "wrong", code=1).split())

    topic = create_topic(kafka, partitions=2)
    produce(kafka, topic, [json.dumps({"id": i, "word": f"w{i}"}).encode() for i in range(RECORDS)])
    dags = tmp_path / "dags"
    (dags / "adds.py").write_text(DAG.replace("@TOPIC@", topic).replace("@RECORDS@", str(RECORDS)))
    assert "state=success" in run("dags", "test", "adds_tables")

    told = json.loads((dags / "told.json").read_text())
    assert told["start"]["tick"] >= 1
    assert told["link"] == f"http://airflow:8080/mzshare/jobs/{told['start']['job']}/log"
    (backfill,) = told["late.start_backfill"]["jobs"]
    assert told["late.converge_late"]["backfill_id"] == backfill
    assert told["late.converge_late"]["ingestion_job"] == told["start"]["job"]
    assert told["late.verify_late"]["verdict"] == "exact"
    assert told["count"] == RECORDS
    wanted = Counter((i, f"w{i}") for i in range(RECORDS))
    assert Counter((row["id"], row["word"]) for row in told["rows"]) == wanted
    assert list(told["rows"][0]) == ["word", "id"]
    parquet = pq.read_table(dags / "late.parquet").to_pylist()
    assert Counter((row["id"], row["word"]) for row in parquet) == wanted
    lines = [json.loads(line) for line in (dags / "adds_tables.json").read_text().splitlines()]
    assert Counter((row["id"], row["word"]) for row in lines) == wanted
    assert len((dags / "late.csv").read_text().splitlines()) == RECORDS + 1

    with closing(sqlite3.connect(airflow_database)) as metadata:
        events = metadata.execute("SELECT uri, e.extra FROM asset_event e JOIN asset a ON a.id = e.asset_id").fetchall()
    found = {uri: json.loads(extra) for uri, extra in events}
    assert set(found) == {"mzshare://mz/public/late", "mzshare://mz/public/named_by_form"}
    assert found["mzshare://mz/public/late"]["rows"] == RECORDS

    with closing(Catalog(f"sqlite:///{home}/catalog.db")) as catalog, catalog.read() as session:
        assert not jobs.active_jobs(session)
        ended = {job.kind: job.state for job in jobs.last_jobs(session, None)}
    assert ended == {"ingest": "stopped", "backfill": "finished"}
