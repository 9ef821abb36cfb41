"""How steady a live source is: 8 tables, 2,000 records a second, a one-second trigger. Prints the gaps between commits.

Run by hand: ``python -m tests.perf.bench_live [seconds] [tables]``.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

from sqlalchemy import select

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.apps.test_shared_read import COLUMNS, record
from tests.support.kafka import create_topic, produce
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

PER_SECOND = 2_000


def feed(kafka: EmbeddedKafka, topic: str, stop: threading.Event) -> None:
    sent, began = 0, time.monotonic()
    while not stop.wait(max(0.0, began + sent / PER_SECOND - time.monotonic())):
        produce(kafka, topic, (record(n) for n in range(sent, sent + PER_SECOND // 10)))
        sent += PER_SECOND // 10


def main(seconds: float, count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="mzshare-live-") as name:
        folder = Path(name)
        with EmbeddedKafka(folder / "kafka", jars=default_folder()) as kafka:
            stack = Stack(folder / "home", kafka, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
            topic = create_topic(kafka, 4)
            tables = [Table(f"t{n}", COLUMNS) for n in range(count)]
            source = stack.create("live", topic, tables, SourceSettings())
            stop = threading.Event()
            feeder = threading.Thread(target=feed, args=(kafka, topic, stop))
            feeder.start()
            handle = stack.launch(source)
            store = stack.store(source)
            wait_until(lambda: store.load().last_number > 20, 120, "a warm app")
            first = store.load().last_number
            time.sleep(seconds)
            stop.set()
            feeder.join()
            stack.launcher.request_stop(handle)
            wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the app's end")
            query = select(TickRow.committed_at).where(TickRow.source_id == source, TickRow.number > first)
            with stack.catalog.read() as session:
                times = [at for at in session.scalars(query.order_by(TickRow.number)) if at]
            stats = stack.tick_stats(source)[first:]
            slow = sorted((s for s in stats if "write_ms" in s), key=lambda s: -s["write_ms"] - s["commit_ms"])[:3]
            print("slowest ticks:", *slow, sep="\n  ")
    gaps = [(b - a) / 1000 for a, b in pairwise(times)]
    busy = [(s["write_ms"] + s["commit_ms"]) / 1000 for s in stats if "write_ms" in s]
    print(
        f"{count} tables, {PER_SECOND} records/s, {len(gaps)} ticks: mean tick {statistics.mean(busy):.2f} s, "
        f"mean gap {statistics.mean(gaps):.2f} s, longest gap {max(gaps):.2f} s"
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else 8)
