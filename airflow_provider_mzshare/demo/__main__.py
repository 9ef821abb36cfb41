"""Starts a broker and an Airflow of its own, tells the story, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.launchers.environment import package_root
from airflow_provider_mzshare.demo.measuring import Gauge
from airflow_provider_mzshare.demo.producer import Writer
from airflow_provider_mzshare.demo.story import PARTITIONS, PER_SECOND, SOURCE, TOPIC, Story
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka


def main() -> int:
    console = Console()
    folder_of_jars = jars.default_folder()
    jars.fetch(jars.GROUPS, folder_of_jars)
    try:
        with tempfile.TemporaryDirectory(prefix="mzshare-demo-", ignore_cleanup_errors=True) as name:
            return _show(Path(name), folder_of_jars, console)
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        return 130


def _show(folder: Path, folder_of_jars: Path, console: Console) -> int:
    console.print("Starting a Kafka broker …")
    with EmbeddedKafka(folder / "kafka", jars=folder_of_jars, jmx=True) as broker:
        env = {
            "MZSHARE_HOME": str(folder / "home"),
            "MZSHARE_JARS": str(folder_of_jars),
            "AIRFLOW_CONN_DEMO_KAFKA": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
            ),
        }
        console.print("Starting Airflow …")
        airflow = EmbeddedAirflow(folder / "airflow", dags=_dags(), env=env)
        with _apps_stopped_at_the_end({**os.environ, **env}, console), airflow, closing(Gauge(env, SOURCE)) as gauge:
            writer = Writer(broker.bootstrap, TOPIC, partitions=PARTITIONS, per_second=PER_SECOND)
            exact = Story(console, broker, airflow, gauge, writer).tell()
            if os.environ.get("KEEP") == "1":
                console.print(f"\nAirflow: {airflow.url}  user {airflow.user}  password {airflow.password}")
                console.print("Ctrl-C stops everything.")
                threading.Event().wait()
    return 0 if exact else 1


def _dags() -> Path:
    """Beside the package in a checkout, inside it where it was installed."""
    beside = package_root().parent / "dags"
    return beside if beside.is_dir() else package_root() / "example_dags"


@contextmanager
def _apps_stopped_at_the_end(env: dict[str, str], console: Console) -> Iterator[None]:
    try:
        yield
    finally:
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", "stop", SOURCE]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        console.print(f"[bold]mzshare stop {SOURCE}[/bold]\n{ended.stdout or ended.stderr}")


if __name__ == "__main__":
    sys.exit(main())
