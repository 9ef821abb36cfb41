"""Starts a broker and an Airflow of its own, tells the story, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.launchers.environment import package_root
from airflow_provider_mzshare.demo.measuring import Gauge
from airflow_provider_mzshare.demo.producer import Writer
from airflow_provider_mzshare.demo.story import PARTITIONS, PER_SECOND, SOURCE, TOPIC, Story, Stuck
from airflow_provider_mzshare.demo.telling import addresses, next_steps
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.embedded.sweeper import SIGNALS, SweptFolder
from airflow_provider_mzshare.errors import MzShareError

_SHOW_CURSOR = "\x1b[?25h"


def main() -> int:
    console = Console()
    folder_of_jars = jars.default_folder()
    jars.fetch(jars.GROUPS, folder_of_jars)
    with SweptFolder("mzshare-demo-") as folder:
        _leave_on_signals(folder)
        try:
            code = _show(folder.path, folder_of_jars, console, keep=os.environ.get("KEEP") == "1")
        except MzShareError as error:
            console.print(f"error: {error.line}", markup=False)
            code = 1
        _deaf()
    return code


def _leave_on_signals(folder: SweptFolder) -> None:
    """A signal may come at any moment: everything is killed and the folder is removed, so nothing is left to undo."""

    def leave(number: int, _: FrameType | None) -> None:
        _deaf()
        folder.sweep()
        cursor = _SHOW_CURSOR if sys.stdout.isatty() else ""
        print(f"{cursor}\nInterrupted: everything was stopped and its folder is removed.", file=sys.stderr, flush=True)
        os._exit(128 + number)

    for number in SIGNALS:
        # A signal that is ignored stays ignored: under nohup the demo goes on.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def _deaf() -> None:
    """Ignore further signals: an interrupted end would leave something behind."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _show(folder: Path, folder_of_jars: Path, console: Console, *, keep: bool) -> int:
    console.print("Starting a Kafka broker …")
    with EmbeddedKafka(folder / "kafka", jars=folder_of_jars, jmx=True) as broker:
        env = _settings(folder, folder_of_jars, broker)
        console.print("Starting Airflow …")
        airflow = EmbeddedAirflow(folder / "airflow", dags=_dags(), env=env)
        with _apps_stopped_at_the_end({**os.environ, **env}, console), airflow, closing(Gauge(env, SOURCE)) as gauge:
            writer = Writer(broker.bootstrap, TOPIC, partitions=PARTITIONS, per_second=PER_SECOND)
            console.print(addresses(airflow), soft_wrap=True)
            try:
                exact = Story(console, broker, airflow, gauge, writer).tell()
            except Stuck as stuck:
                console.print(f"\n[red]{stuck}[/red]")
                exact = False
            console.print(next_steps(env, broker, airflow, keep=keep), soft_wrap=True, markup=False, highlight=False)
            if keep:
                threading.Event().wait()
    return 0 if exact else 1


def _settings(folder: Path, folder_of_jars: Path, broker: EmbeddedKafka) -> dict[str, str]:
    """Settings of mzshare and Airflow. Everybody who reaches Airflow sees the status page: only this machine does."""
    (folder / "tmp").mkdir()
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
    return {
        "MZSHARE_HOME": str(folder / "home"),
        "MZSHARE_JARS": str(folder_of_jars),
        "AIRFLOW_CONN_DEMO_KAFKA": json.dumps(connection),
        "AIRFLOW__MZSHARE__STATUS_PAGE": "True",
        "TMPDIR": str(folder / "tmp"),
    }


def _dags() -> Path:
    """Beside the package in a checkout, inside it where it was installed."""
    beside = package_root().parent / "dags"
    return beside if beside.is_dir() else package_root() / "example_dags"


@contextmanager
def _apps_stopped_at_the_end(env: Mapping[str, str], console: Console) -> Iterator[None]:
    try:
        yield
    finally:
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", "stop", SOURCE]
        ended = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False)
        console.print(f"\n[bold]mzshare stop {SOURCE}[/bold]\n{ended.stdout or ended.stderr}")


if __name__ == "__main__":
    sys.exit(main())
