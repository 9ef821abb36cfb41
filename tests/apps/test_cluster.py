"""The ingestion on a real Spark standalone cluster whose Python has pyarrow, but nothing of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from uv import find_uv_bin

from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports
from tests.support.kafka import Record, create_topic, produce
from tests.support.plugins import FORMAT, python_with
from tests.support.postgres import Postgres
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

SPARK = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("executors") / "venv"
    python = folder / "bin" / "python"
    packages = [f"{name}=={version(name)}" for name in ("pyarrow", "numpy", "pandas")]
    subprocess.run([find_uv_bin(), "venv", "-q", "--python", sys.executable, folder], check=True)
    subprocess.run([find_uv_bin(), "pip", "install", "-q", "--python", python, *packages], check=True)
    missing = subprocess.run([python, "-I", "-c", "import airflow_provider_mzshare"], capture_output=True, check=False)
    assert missing.returncode != 0, "the executors' Python must not know this package"
    return python


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    port, web, *worker_webs = free_ports(4)
    env = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    program = str(SPARK / "bin" / "spark-class")
    url = f"spark://{LOOPBACK}:{port}"
    master = [program, "org.apache.spark.deploy.master.Master", "--host", LOOPBACK, "--port", str(port)]
    with ExitStack() as running:
        running.enter_context(
            ServerProcess("master", [*master, "--webui-port", str(web)], log=folder / "master.log", env=env)
        )
        wait_until(lambda: "I have been elected leader" in (folder / "master.log").read_text(), 60, "the master")
        for number, worker_web in enumerate(worker_webs):
            worker = [program, "org.apache.spark.deploy.worker.Worker", "--host", LOOPBACK, "--cores", "1"]
            options = ["--memory", "1g", "--webui-port", str(worker_web), "--work-dir", str(folder / f"work-{number}")]
            running.enter_context(
                ServerProcess(f"worker {number}", [*worker, *options, url], log=folder / f"{number}.log", env=env)
            )
        wait_until(
            lambda: all("Successfully registered" in (folder / f"{n}.log").read_text() for n in range(2)), 60, "workers"
        )
        yield url


def test_two_workers_write_what_the_model_says(
    kafka: EmbeddedKafka,
    postgres: Postgres,
    cluster: str,
    bare_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the catalog on Postgres, as it would be with a cluster; and a format that only the driver's Python has."""
    stack = Stack(tmp_path, kafka, Catalog(postgres.url(postgres.create_database())))
    tables = [Table("numbers", (("n", "bigint"),)), Table("raw", format="bytes", include=("key", "timestamp"))]
    piped = Table("piped", (("whole", "jsonb"),), format="piped")
    names = [t.name for t in (*tables, piped)]
    topic = create_topic(kafka, 4)
    # More than one task's worth, so that both workers get something to do.
    values = (Record(json.dumps({"n": n}).encode(), key=b"k", partition=n % 4) for n in range(150_000))
    produce(kafka, topic, values)
    source = stack.create("events", topic, [*tables, piped])
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare_python))
    monkeypatch.setattr(sys, "executable", str(python_with(FORMAT, tmp_path / "driver")))
    handle = stack.launch(
        source, master=cluster, spark_conf={"spark.driver.host": LOOPBACK, "spark.executor.memory": "512m"}
    )
    try:
        stack.wait_caught_up(source, names, timeout=150)
        produce(kafka, topic, [Record(b'{"n": "bad"}', partition=1)])
        stack.wait_caught_up(source, names)
        assert stack.launcher.status(handle) == "alive"
    except AssertionError as error:
        raise AssertionError(f"{error}\n{stack.log(handle)}") from error
    finally:
        stack.launcher.request_stop(handle)
        wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the driver's end")
        stack.launcher.kill(handle)
    stack.check(topic, tables)
    found = Counter(row[0] for row in stack.rows("piped"))
    assert found == Counter([*(f'{{"n":{n}}}' for n in range(150_000)), '{"n":"bad"}'])
    assert {t["spark_jobs"] for t in stack.tick_stats(source) if "spark_jobs" in t} == {1}
    stack.catalog.close()
