"""One topic into N tables: ours beside plain Python, ``foreachBatch`` and N queries, by the CPU of all their processes.

What a record costs is the difference between a long and a short run, so what a start costs is not in it. Run by hand:
``python -m tests.perf.bench_fanout [--records 600000,3000000] [--tables 1,16,64] [--sides ours,plain,foreach]``.
``--limit foreach=300`` leaves out a side's runs that take, or after a shorter run would take, more than 300 seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from confluent_kafka import Producer
from deltalake import DeltaTable

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.perf.measuring import PARTS, Usage, adopt_orphans, kill_new, measured
from tests.perf.peers.ours import Ours
from tests.perf.peers.task import Task, values
from tests.support.kafka import create_topic, positions

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
BATCH = 500_000  # the most of one tick of ours, unless a source says otherwise
LIMIT_SECONDS = 1_800.0
PEERS = {"plain": "plain", "foreach": "foreach_batch", "queries": "queries"}
SIDES = ("ours", *PEERS)
NAMES = {
    "ours": "ours",
    "plain": "plain Python (msgspec)",
    "foreach": "foreachBatch, 8 threads",
    "queries": "N queries",
}


@dataclass
class Run:
    usage: Usage
    broker_mb: float
    note: str = ""


# ── the topics ────────────────────────────────────────────────────────────────────────────────────────────────────────


def fill(kafka: EmbeddedKafka, records: int) -> str:
    """A topic of its own for each number of records: every side reads it from the beginning to the end."""
    topic = create_topic(kafka, PARTITIONS, name=f"records-{records}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 50, "log_level": 0})
    size = 0
    for number, value in enumerate(islice(values(), records)):
        size += len(value)
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0
    assert sum(positions(kafka, topic).values()) == records
    print(f"{topic}: {records:,} records of {size / records:.0f} bytes, {PARTITIONS} partitions", flush=True)
    return topic


# ── one run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(side: str, task: Task, kafka: EmbeddedKafka, limit: float) -> Run:
    sent = kafka.bytes_out(task.topic)
    note = ""
    if side == "ours":
        ours = Ours(task, kafka)
        with measured() as usage:
            ours.run(limit)
        paths, note = ours.paths(), f"{sum('records' in tick for tick in ours.tick_stats())} ticks"
        ours.close()
    else:
        with measured() as usage:
            run_peer(side, task, limit)
        paths = [task.path(number) for number in range(task.tables)]
    check(task, paths)
    return Run(usage, (kafka.bytes_out(task.topic) - sent) / 1e6, note)


def run_peer(side: str, task: Task, limit: float) -> None:
    folder = Path(task.folder)
    folder.mkdir(parents=True)
    before = {child.pid for child in psutil.Process().children()}
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-m", f"tests.perf.peers.{PEERS[side]}", task.to_json()]
        peer = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = peer.wait(limit)
        except BaseException:
            kill_new(before)
            raise
    assert code == 0, (folder / "log").read_text()[-3000:]


def check(task: Task, paths: list[str]) -> None:
    """Every table has every record: by the files' own footers, and by the sum of the ids in the first and the last."""
    assert len(paths) == task.tables
    for number, path in enumerate(paths):
        files = DeltaTable(path).file_uris()
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        assert rows == task.records, f"{path}: {rows} rows of {task.records} records"
        if number in (0, task.tables - 1):
            total = sum(pq.read_table(file, columns=["id"]).column("id").to_numpy().sum() for file in files)
            assert total == task.records * (task.records - 1) // 2, f"{path}: other records"


# ── all runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bench:
    def __init__(self, asked: argparse.Namespace, kafka: EmbeddedKafka, folder: Path) -> None:
        self._asked, self._kafka, self._folder = asked, kafka, folder
        self._limits = dict(each.split("=") for each in asked.limit)
        self._topics = {records: fill(kafka, records) for records in asked.records}
        self.runs: dict[tuple[str, int, int], Run | None] = {}

    def all(self) -> None:
        heading = (
            "side",
            "tables",
            "records",
            "wall s",
            "CPU s",
            *(f"{part} s" for part in PARTS),
            "RSS MB",
            "sent MB",
        )
        print("\n" + row(heading), flush=True)
        for tables in self._asked.tables:
            for side in self._asked.sides:
                for records in sorted(self._asked.records):
                    self.runs[side, tables, records] = self._best(side, tables, records)

    def _best(self, side: str, tables: int, records: int) -> Run | None:
        """The cheapest of the repeats: other work on the machine only adds."""
        limit = float(self._limits.get(side, LIMIT_SECONDS))
        shorter = [each for each in self._asked.records if each < records]
        before = self.runs[side, tables, max(shorter)] if shorter else None
        if shorter and (before is None or before.usage.wall * records / max(shorter) > limit):
            print(row((NAMES[side], tables, f"{records:,}", "not run")), flush=True)
            return None
        found = []
        for _ in range(self._asked.repeats):
            one = self._one(side, tables, records, limit)
            if one is None:
                return None
            found.append(one)
        return min(found, key=lambda each: each.usage.cpu)

    def _one(self, side: str, tables: int, records: int, limit: float) -> Run | None:
        folder = Path(tempfile.mkdtemp(prefix=f"{side}-", dir=self._folder))
        topic = self._topics[records]
        bootstrap, jars = self._kafka.bootstrap, str(default_folder())
        task = Task(bootstrap, topic, records, tables, self._asked.batch, str(folder / "run"), jars)
        try:
            done = run(side, task, self._kafka, limit)
        except subprocess.TimeoutExpired:
            print(row((NAMES[side], tables, f"{records:,}", f"not run: over {limit:.0f} s")), flush=True)
            return None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        used = done.usage
        numbers = (f"{used.wall:.1f}", f"{used.cpu:.1f}", *(f"{used.parts[part]:.1f}" for part in PARTS))
        print(
            row((NAMES[side], tables, f"{records:,}", *numbers, f"{used.rss_mb:.0f}", f"{done.broker_mb:.1f}")),
            done.note,
        )
        if self._asked.threads:
            print("    threads of the JVM:", ", ".join(f"{name} {cpu:.1f}" for name, cpu in used.threads.items()))
        sys.stdout.flush()
        return done

    def costs(self) -> None:
        """Microseconds of one core per record, and what the others cost beside ours."""
        low, high = min(self._asked.records), max(self._asked.records)
        sides = self._asked.sides
        print("\nCPU per record beyond the start, us\n" + row(("", "tables", *sides, "ours/plain", "foreach/ours")))
        for tables in self._asked.tables:
            cost: dict[str, float] = {}
            for side in sides:
                short, long = self.runs[side, tables, low], self.runs[side, tables, high]
                if short and long and high > low:
                    cost[side] = (long.usage.cpu - short.usage.cpu) / (high - low) * 1e6
            told = [f"{cost[side]:.2f}" if side in cost else "not run" for side in sides]
            ratios = [_ratio(cost, "ours", "plain"), _ratio(cost, "foreach", "ours")]
            print(row(("", tables, *told, *ratios)))

    def save(self, file: Path) -> None:
        runs = [
            {"side": side, "tables": tables, "records": records, "sent_mb": done.broker_mb, **asdict(done.usage)}
            for (side, tables, records), done in self.runs.items()
            if done
        ]
        file.write_text(json.dumps(runs, indent=1))


def _ratio(cost: dict[str, float], one: str, other: str) -> str:
    return f"{cost[one] / cost[other]:.2f}" if one in cost and other in cost else "-"


def row(cells: tuple[object, ...]) -> str:
    first, *rest = cells
    return f"{first!s:26}" + "".join(f"{cell!s:>13}" for cell in rest)


def words() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=numbers, default=[600_000, 3_000_000])
    parser.add_argument("--tables", type=numbers, default=[1, 16, 64])
    parser.add_argument("--sides", type=lambda text: text.split(","), default=list(SIDES))
    parser.add_argument("--batch", type=int, default=BATCH, help="the most records of a tick or of a batch")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit", action="append", default=[], metavar="SIDE=SECONDS")
    parser.add_argument("--threads", action="store_true", help="also tell what the JVM's threads used")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures of each run to a file")
    asked = parser.parse_args()
    if unknown := set(asked.sides) - set(SIDES):
        parser.error(f"sides are {', '.join(SIDES)}, not {', '.join(unknown)}")
    return asked


def main() -> None:
    asked = words()
    adopt_orphans()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mzshare-fanout-") as name:
        folder = Path(name)
        with EmbeddedKafka(folder / "kafka", jars=default_folder(), jmx=True) as kafka:
            bench = Bench(asked, kafka, folder)
            bench.all()
    bench.costs()
    if asked.json:
        bench.save(asked.json)
    print(f"\nbatches of at most {asked.batch:,} records, local[2]; all row counts are right; "
          f"{time.monotonic() - began:.0f} s in all")  # fmt: skip


if __name__ == "__main__":
    main()
