"""A table of current rows: ours by deletion vectors and by delta-rs' merge, Spark's MERGE with and without vectors.

First the part after the pass, without Spark; then from Kafka to the commit, with all records there already. Each tick
changes so many keys, drawn evenly: 90 of 100 are updates, 5 inserts, 5 deletes. Run by hand:
``python -m tests.perf.bench_keyed [--keys 100000,1000000,5000000] [--changes 2000,20000] [--parts after,whole]``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.vectors.files import OPTIONS
from tests.perf.measuring import adopt_orphans, kill_new, live_cpu, live_rss_mb
from tests.perf.peers.ours_keyed import OursKeyed
from tests.perf.peers.task import Task
from tests.support.delta import read_arrow
from tests.support.kafka import create_topic
from tests.support.keyed_load import Changes, KeyedLoad, fill, member_plan, rows_of

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
WARM = 3
"""Ticks that do not count: the index is made, and the JVM compiles."""
EVERY_SECONDS = 0.2
AFTER = {"ours": True, "ours, merged": False}
"""Whether they have vectors."""
PEERS = {"MERGE": ["merge"], "MERGE, vectors": ["merge", "vectors"], "delta-rs": ["plain_merge"]}
SIDES = (*AFTER, *PEERS)
TABLE = CollectionId("t0")


@dataclass(frozen=True)
class Cost:
    """Of one tick. ``grown``: what the folder of the table has got. ``after``: the part after the pass, if known."""

    seconds: float
    grown: float
    cpu: float
    rss_mb: float
    after: float | None = None
    index_seconds: float | None = None


# ── the part after the pass ───────────────────────────────────────────────────────────────────────────────────────────


def after_pass(keys: int, changes: int, ticks: int, *, vectors: bool) -> Cost:
    """In a process of its own, so that its memory is its own."""
    with _folder() as folder:
        load = KeyedLoad(folder, keys, vectors=vectors)
        began = time.perf_counter()
        for _ in range(WARM):
            load.commit(load.events(changes))
        warmed = time.perf_counter() - began
        seconds, cpu, before = [], [], _size(Path(load.collection.uri))
        for _ in range(ticks):
            events = load.events(changes)
            began, used = time.perf_counter(), time.process_time()
            load.commit(events)
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
        grown = (_size(Path(load.collection.uri)) - before) / ticks
        memory = psutil.Process().memory_info().rss / 1e6
        assert not list(load.wrong())
        load.close()
    median = statistics.median(seconds)
    index = warmed - WARM * median if vectors else None
    return Cost(median, grown, statistics.median(cpu), memory, median, index)


def alone(call: Callable[..., Cost], *words: int, vectors: bool) -> Cost:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *words, vectors=vectors).result()


# ── from Kafka to the commit ──────────────────────────────────────────────────────────────────────────────────────────


def produce(kafka: EmbeddedKafka, topic: str, keys: int, changes: int, ticks: int) -> Changes:
    """All ticks' records. Returns what the table must hold afterwards."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 50, "log_level": 0})
    drawn = Changes(keys)
    for tick in range(1, ticks + 1):
        for key, value in drawn.messages(tick, changes):
            producer.produce(topic, value, f"k{key}", partition=key % PARTITIONS)
        assert producer.flush(120) == 0
    return drawn


def whole(side: str, kafka: EmbeddedKafka, keys: int, changes: int, ticks: int) -> Cost:
    topic, ticks = create_topic(kafka, PARTITIONS), ticks + WARM
    with _folder() as folder:
        task = Task(kafka.bootstrap, topic, changes * ticks, 1, changes, str(folder / "run"), str(default_folder()))
        if side in AFTER:
            return _ours(task, kafka, keys, ticks, vectors=AFTER[side])
        return _peer(side, task, keys, produce(kafka, topic, keys, changes, ticks))


def _ours(task: Task, kafka: EmbeddedKafka, keys: int, ticks: int, *, vectors: bool) -> Cost:
    ours = OursKeyed(task, kafka, keys, vectors=vectors)
    with ours:
        ours.wait_ready()
        drawn = produce(kafka, task.topic, keys, task.batch, ticks)
        ours.look_for_end()
        watched = Watched(ours.path)
        while not ours.is_done():
            watched.look(ours.pid)
            time.sleep(EVERY_SECONDS)
        watched.look(ours.pid)
        after = statistics.median(ours.commit_seconds()[WARM - ticks :])
    _check(ours.path.parent, ours.name, drawn)
    return watched.cost(after)


def _peer(side: str, task: Task, keys: int, drawn: Changes) -> Cost:
    root = Path(task.path(0)).parent
    root.mkdir(parents=True)
    schema = member_plan().schema
    create_collection(str(root), TABLE, pa.schema([each for each in schema if not each.name.startswith("_mz_")]))
    fill(Collection.open(str(root), TABLE), keys)
    watched, module, *words = Watched(Path(task.path(0))), *PEERS[side]
    before = {child.pid for child in psutil.Process().children()}
    with Path(task.folder, "log").open("w") as log:
        command = [sys.executable, "-m", f"tests.perf.peers.{module}", task.to_json(), *words]
        peer = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            while peer.poll() is None:
                watched.look(peer.pid)
                time.sleep(EVERY_SECONDS)
        except BaseException:
            kill_new(before)
            raise
    assert peer.returncode == 0, Path(task.folder, "log").read_text()[-3000:]
    _check(root, TABLE, drawn)
    return watched.cost(None)


class Watched:
    """A table while somebody writes it: when its commits came, and what their processes had used then."""

    def __init__(self, path: Path) -> None:
        self._path, self._began, self._size = path, _entries(path), _size(path)
        self._looks: list[tuple[int, float]] = []
        """Commits so far, and CPU."""
        self._rss = 0.0

    def look(self, pid: int) -> None:
        self._rss = max(self._rss, live_rss_mb(pid))
        commits, used = _entries(self._path) - self._began, live_cpu(pid)
        if used:
            self._looks.append((commits, used))

    def cost(self, after: float | None) -> Cost:
        log = self._path / "_delta_log"
        versions = range(self._began, _entries(self._path))
        moments = [(log / f"{version:020d}.json").stat().st_mtime for version in versions]
        waits = [later - sooner for sooner, later in pairwise(moments)]
        first = next(look for look in self._looks if look[0] >= WARM)
        last = next(look for look in self._looks if look[0] == self._looks[-1][0])
        cpu = (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else float("nan")
        grown = (_size(self._path) - self._size) / len(moments)
        return Cost(statistics.median(waits[WARM - 1 :]), grown, cpu, self._rss, after)


def _check(root: Path, name: CollectionId, drawn: Changes) -> None:
    rows = read_arrow(str(root), name, Collection.open(str(root), name).delta_version)
    assert not list(drawn.wrong(rows)), f"{name} has other rows"


def _entries(path: Path) -> int:
    return len(list((path / "_delta_log").glob("*[0-9].json")))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mzshare-keyed-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ── all of it ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def row_bytes(changes: int) -> int:
    """What the changed rows of a tick weigh in a Parquet file of their own: one image of each."""
    drawn = Changes(1_000_000)
    kept, _ = drawn.draw(changes)
    sink = pa.BufferOutputStream()
    pq.write_table(rows_of(kept, 1, member_plan().schema), sink, **OPTIONS)
    return int(sink.getvalue().size)


@dataclass
class Bench:
    asked: argparse.Namespace

    def __post_init__(self) -> None:
        self.found: dict[tuple[str, str, int, int], Cost] = {}

    def run_after(self) -> None:
        _heading("the part after the pass")
        for changes in self.asked.changes:
            for keys in self.asked.keys:
                for side in (each for each in AFTER if each in self.asked.sides):
                    ticks = self.asked.ticks if AFTER[side] else self.asked.slow_ticks
                    cost = alone(after_pass, keys, changes, ticks, vectors=AFTER[side])
                    self._note("after", side, keys, changes, cost)

    def run_whole(self) -> None:
        _heading("from Kafka to the commit")
        with _folder() as folder, EmbeddedKafka(folder / "kafka", jars=default_folder()) as kafka:
            for changes in self.asked.changes:
                for keys in self.asked.keys:
                    for side in self.asked.sides:
                        ticks = self.asked.ticks if side == "ours" else self.asked.slow_ticks
                        self._note("whole", side, keys, changes, whole(side, kafka, keys, changes, ticks))

    def _note(self, part: str, side: str, keys: int, changes: int, cost: Cost) -> None:
        self.found[part, side, keys, changes] = cost
        kept = cost.grown / row_bytes(changes)
        cells = [f"{changes:,}", f"{keys:,}", f"{cost.seconds * 1000:,.0f}"]
        cells += [f"{cost.after * 1000:,.0f}" if cost.after else "-", f"{cost.grown / 1000:,.0f}", f"{kept:,.1f}"]
        cells += [f"{cost.cpu * 1000:,.0f}", f"{cost.rss_mb:,.0f}", f"{cost.index_seconds or 0:.1f}"]
        print(_row(side, cells), flush=True)

    def aims(self) -> None:
        least, most = min(self.asked.keys), max(self.asked.keys)
        for changes in self.asked.changes:
            small, large = (self.found.get(("after", "ours", keys, changes)) for keys in (least, most))
            if small and large:
                grown = f"time {large.seconds / small.seconds:.2f}, CPU {large.cpu / small.cpu:.2f} times"
                print(f"{changes:,} changes: from {least:,} to {most:,} keys the part after the pass grows {grown}")
            written = [cost.grown for each, cost in self.found.items() if each[1] == "ours" and each[3] == changes]
            if written:
                times = max(written) / row_bytes(changes)
                print(f"{changes:,} changes: a tick of ours writes at most {times:.1f} times the bytes of its rows")
            for part, side in (("whole", each) for each in SIDES if each != "ours"):
                for keys in self.asked.keys:
                    ours, other = (self.found.get((part, each, keys, changes)) for each in ("ours", side))
                    if ours and other:
                        times = other.seconds / ours.seconds
                        print(f"{changes:,} changes, {keys:,} keys: {side} takes {times:.1f} times ours")

    def save(self, file: Path) -> None:
        names = ("part", "side", "keys", "changes")
        found = [dict(zip(names, key, strict=True)) | asdict(cost) for key, cost in self.found.items()]
        file.write_text(json.dumps(found, indent=1))


def _heading(what: str) -> None:
    names = ["changes", "keys", "tick ms", "after ms", "kB", "x rows", "CPU ms", "RSS MB", "index s"]
    print(f"\n{what}, load {os.getloadavg()[0]:.1f}\n" + _row("", names), flush=True)


def _row(first: str, cells: list[str]) -> str:
    return f"{first:16}" + "".join(f"{cell:>11}" for cell in cells)


def words() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=numbers, default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--changes", type=numbers, default=[2_000, 20_000])
    parser.add_argument("--ticks", type=int, default=15, help="that count, of ours")
    parser.add_argument("--slow-ticks", type=int, default=5, help="of all others")
    parser.add_argument("--sides", type=lambda text: text.split(";"), default=list(SIDES), help="with ; between them")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["after", "whole"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    asked = parser.parse_args()
    if unknown := set(asked.sides) - set(SIDES):
        parser.error(f"sides are {'; '.join(SIDES)}, not {'; '.join(unknown)}")
    return asked


def main() -> None:
    asked = words()
    adopt_orphans()
    bench = Bench(asked)
    if "after" in asked.parts:
        bench.run_after()
    if "whole" in asked.parts:
        bench.run_whole()
    print(f"\na tick's rows weigh {', '.join(f'{row_bytes(each) / 1000:.0f} kB' for each in asked.changes)} alone")
    bench.aims()
    if asked.json:
        bench.save(asked.json)


if __name__ == "__main__":
    main()
