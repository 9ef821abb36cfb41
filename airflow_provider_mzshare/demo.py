"""``make demo``: a real broker, a producer that keeps writing, three tables from one shared read, and a check.

It drives the same ``mzshare`` command a user has, on a home of its own that is thrown away.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.live import Live
from rich.table import Table

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.reading import Query, read_table
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings

TOPIC, PARTITIONS, HISTORY, PER_SECOND, SECONDS = "orders", 4, 100_000, 2_000, 20

STATEMENTS = f"""
BEGIN;
CREATE SOURCE shop FROM KAFKA CONNECTION demo_kafka (TOPIC '{TOPIC}');
CREATE TABLE orders (id bigint, customer text, amount numeric(12,2)) FROM SOURCE shop FORMAT JSON INCLUDE TIMESTAMP;
CREATE TABLE amounts (amount double precision) FROM SOURCE shop FORMAT JSON;
CREATE TABLE documents FROM SOURCE shop FORMAT JSON INCLUDE PARTITION, OFFSET, KEY;
COMMIT;
"""
NAMES = ("orders", "amounts", "documents")


class Writer(threading.Thread):
    """Produces history at once, then a steady trickle until told to stop."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
        self._stopped = threading.Event()
        self.sent = 0

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            value = {"id": number, "customer": f"c{number % 997}", "amount": (number % 10_000) / 100}
            self._producer.produce(TOPIC, json.dumps(value), key=str(number), partition=number % PARTITIONS)
            if number % 10_000 == 0:
                self._producer.flush()
        self._producer.flush()
        self.sent += count

    def run(self) -> None:
        while not self._stopped.wait(0.1):
            self.send(PER_SECOND // 10)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


class Demo:
    def __init__(self, folder: Path, broker: EmbeddedKafka, console: Console) -> None:
        self._broker, self._console = broker, console
        self._env = {
            **os.environ,
            "MZSHARE_HOME": str(folder / "home"),
            "AIRFLOW_CONN_DEMO_KAFKA": json.dumps(
                {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
            ),
        }

    def command(self, *arguments: str) -> str:
        """Run ``mzshare`` as a user would; its error is the demo's error."""
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", *arguments]
        ran = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"mzshare {arguments[0]}: {ran.stderr.strip()}")
        return ran.stdout

    def rows_of(self, *arguments: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = json.loads(self.command(*arguments, "--output", "json"))
        return answer

    def run(self) -> bool:
        say = self._console.print
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        writer = Writer(self._broker.bootstrap)
        writer.send(HISTORY)
        say(f"A topic with {HISTORY:,} records in {PARTITIONS} partitions, and {PER_SECOND:,} more every second.")
        writer.start()
        say(f"[bold]mzshare sql[/bold]{STATEMENTS}")
        say(self.command("sql", STATEMENTS))
        say("[bold]mzshare start shop[/bold]")
        say(self.command("start", "shop"))
        with self._stopped_at_the_end():
            self._watch(writer)
            writer.stop()
            say("The producer has stopped. [bold]mzshare wait shop --for caught-up[/bold]")
            self.command("wait", "shop", "--for", "caught-up", "--timeout", "120")
            return self._summary(writer.sent)

    @contextmanager
    def _stopped_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._console.print(f"[bold]mzshare stop shop[/bold]\n{self.command('stop', 'shop')}")

    def _watch(self, writer: Writer) -> None:
        """Until the tables have followed the producer for a while."""
        live_since: float | None = None
        with Live(console=self._console, refresh_per_second=4) as screen:
            while live_since is None or time.monotonic() - live_since < SECONDS:
                tables = self.rows_of("status", "shop", "--no-lag")
                screen.update(self._picture(tables, writer.sent))
                if live_since is None and all(t["rows"] for t in tables):
                    live_since = time.monotonic()
                time.sleep(0.5)
        self._console.print()

    def _picture(self, tables: Sequence[dict[str, Any]], sent: int) -> Table:
        picture = Table("table", "status", "rows", "errors", "behind", "next offsets")
        for t in tables:
            behind = f"{max(0, sent - t['rows'] - t['errors']):,}"
            name, places = t["name"].removeprefix("public."), " ".join(map(str, t["position"].values()))
            picture.add_row(name, t["status"], f"{t['rows']:,}", f"{t['errors']:,}", behind, places)
        return picture

    def _ids(self) -> list[int]:
        """What ``orders`` really holds, read from its Delta table."""
        chosen = Settings.from_environment(self._env)
        catalog = Catalog(chosen.catalog_url)
        try:
            read = read_table(catalog, chosen.warehouse, "orders", Query(columns=["id"]))
        finally:
            catalog.close()
        return [int(number) for number in read.column("id").to_pylist()]

    def _summary(self, sent: int) -> bool:
        tables = {t["name"].removeprefix("public."): t for t in self.rows_of("status", "shop", "--no-lag")}
        sent_bytes, topic_bytes = self._broker.bytes_out(TOPIC), self._broker.bytes_in(TOPIC)
        exact = all(tables[name]["rows"] == sent and tables[name]["errors"] == 0 for name in NAMES)
        exact = exact and sorted(self._ids()) == list(range(sent))
        say = self._console.print
        say(f"{len(NAMES)} tables, each with {sent:,} rows: {'exactly the topic' if exact else 'NOT the topic'}")
        say(f"bytes from the broker per topic byte: {sent_bytes / topic_bytes:.2f} (one read, whatever the tables)")
        return exact


def main() -> int:
    console = Console()
    folder_of_jars = jars.default_folder()
    jars.fetch(jars.GROUPS, folder_of_jars)
    try:
        with tempfile.TemporaryDirectory(prefix="mzshare-demo-") as name:
            folder = Path(name)
            console.print("Starting a Kafka broker …")
            with EmbeddedKafka(folder / "kafka", jars=folder_of_jars, jmx=True) as broker:
                exact = Demo(folder, broker, console).run()
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        return 130
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
