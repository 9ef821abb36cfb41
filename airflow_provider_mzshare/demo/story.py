"""The demo's steps: quickstart, a look at the steady state, two tables added by their DAG, and the summary."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live

from airflow_provider_mzshare.demo.measuring import Gauge, now_ms
from airflow_provider_mzshare.demo.producer import Writer
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka

TOPIC, SOURCE, PARTITIONS, HISTORY, PER_SECOND = "orders", "shop", 4, 300_000, 2_000
OLD, NEW, KEYED = (f"{SOURCE}_rows", f"{SOURCE}_documents"), f"{SOURCE}_amounts", f"{SOURCE}_customers"
STEADY_SECONDS, RUN_SECONDS = 30.0, 600.0
RESULT = f"[green]exact[/green]: every record is in every table once, and {KEYED} has each customer's last order"


class Stuck(Exception):
    """The demo cannot go on; the message says where to look."""


class Story:
    def __init__(
        self, console: Console, broker: EmbeddedKafka, airflow: EmbeddedAirflow, gauge: Gauge, writer: Writer
    ) -> None:
        self._say, self._console = console.print, console
        self._broker, self._airflow, self._gauge, self._writer = broker, airflow, gauge, writer

    def tell(self) -> bool:
        say = self._say
        self._writer.send(HISTORY)
        self._writer.start()
        say(f"A topic with {HISTORY:,} records in {PARTITIONS} partitions, and {PER_SECOND:,} more every second.")
        self._run("mzshare_quickstart", [{"kafka_conn_id": "demo_kafka", "topic": TOPIC, "source": SOURCE}])
        self._watch(lambda: self._are_at(self._writer.sent - 5 * PER_SECOND))
        say(f"Two tables live from one read. {STEADY_SECONDS:.0f} s of that, to compare with:")
        steady = now_ms()
        self._watch(lambda: now_ms() - steady >= STEADY_SECONDS * 1000)
        read_before = self._broker.bytes_out(TOPIC)
        added = now_ms()
        say("Two more are added while it goes on: one with a row for every order, one with a row for every customer.")
        last_order = {"columns": "id bigint, amount numeric(12,2)", "include": "key", "envelope": "upsert"}
        of_each = {"source": SOURCE, "table": KEYED, **last_order}
        self._run("mzshare_add_table", [{"source": SOURCE, "table": NEW}, of_each])
        done = now_ms()
        history_bytes = self._broker.bytes_out(TOPIC) - read_before
        self._writer.stop()
        say("The producer has stopped; the tables catch up.")
        self._watch(lambda: self._are_at(self._writer.sent), limit=120.0)
        before, during = self._gauge.longest_gap(steady, added), self._gauge.longest_gap(added, done)
        return self._summary(before, during, history_bytes)

    def _run(self, dag_id: str, confs: Sequence[Mapping[str, Any]]) -> None:
        """Trigger a DAG as its form does, once for each of these, and show the tables until all have ended."""
        self._airflow.wait_for_dag(dag_id)
        for conf in confs:
            self._say(f"\n[bold]{dag_id}[/bold] {dict(conf)}")
        runs = [self._airflow.trigger(dag_id, conf) for conf in confs]

        def states() -> set[str | None]:
            return {self._airflow.state(dag_id, run_id) for run_id in runs}

        self._watch(lambda: states() <= {"success", "failed"}, limit=RUN_SECONDS)
        for run_id in runs:
            tasks = self._airflow.tasks(dag_id, run_id)
            self._say("  " + ", ".join(f"{name.rpartition('.')[2]}: {state}" for name, state in tasks.items()))
        if states() != {"success"}:
            raise Stuck(f"{dag_id} failed. Its logs are in Airflow; to keep Airflow running: KEEP=1 make demo")

    def _watch(self, over: Callable[[], bool], limit: float = RUN_SECONDS) -> None:
        deadline = time.monotonic() + limit
        with Live(console=self._console, refresh_per_second=4) as screen:
            while not over():
                for _ in range(3):
                    screen.update(self._gauge.picture(self._writer.sent))
                    time.sleep(0.7)
                if time.monotonic() > deadline:
                    raise Stuck(f"this took more than {limit:.0f} s, so the demo gave up")
            screen.update(self._gauge.picture(self._writer.sent))

    def _are_at(self, record: int) -> bool:
        """Whether every table has got so many records."""
        return all(sum(t.position[one] for one in t.position) >= record for t in self._gauge.tables())

    def _summary(self, before: float, during: float, history_bytes: int) -> bool:
        sent, gauge = self._writer.sent, self._gauge
        tables = {t.name.removeprefix("public."): t for t in gauge.tables()}
        proofs = {table: gauge.certificate(table) for table in (NEW, KEYED)}
        exact = {
            "three tables have a row for every record": all(tables[one].rows == sent for one in (*OLD, NEW)),
            f"{OLD[0]} holds each id once": gauge.holds(OLD[0], "id", range(sent)),
            f"{KEYED} holds the last id of each of the customers": gauge.holds(KEYED, "id", self._writer.last_orders()),
            f"{NEW} and {KEYED} were cut over, with certificates": None not in proofs.values(),
            "the shared app was started once": gauge.ingestion_starts() == 1,
        }
        self._say(f"\n{len(tables)} tables of one topic with {sent:,} records")
        for what, holds in exact.items():
            self._say(f"  {'yes' if holds else '[red]NO[/red]'}  {what}")
        for table, proof in proofs.items():
            if proof is not None:
                rows = f"the backfill wrote {proof.rows:,} rows, hash {proof.data_hash}"
                self._say(f"  {table}: cutover at tick {proof.tick}; {rows}")
        topic = self._broker.bytes_in(TOPIC)
        self._say(f"  bytes from the broker per topic byte: {self._broker.bytes_out(TOPIC) / topic:.2f}")
        self._say(
            f"    (one shared read, the backfills and the proofs; {history_bytes / topic:.2f} while they were added)"
        )
        self._say(pace(before, during))
        self._say(f"\nResult: {RESULT if all(exact.values()) else '[red]NOT exact[/red], see above'}")
        return all(exact.values())


def pace(before: float, during: float) -> str:
    """Two numbers of one run, on a machine that does other things too: they are shown, and judge nothing."""
    if not before or not during:
        return "  pace: too few commits to compare"
    ratio, cores = during / before, os.cpu_count() or 1
    return (
        f"  pace, for information only: the longest pause between two commits of the old tables was {before:.2f} s,\n"
        f"    and {during:.2f} s while two tables were added: {ratio:.2f} times as long. This depends on the\n"
        f"    backfill, and on what else this machine's {cores} cores had to do; with free cores it is 1.3 or less"
    )
