"""How fresh and how steady a live source is, here and in another checkout, one after the other.

A record counts from when it was produced until the tick that holds it is committed for all tables. Run by hand:
``python -m tests.perf.bench_live [OTHER_CHECKOUT] [--tables 64] [--rate 5000] [--seconds 60]``. With ``--keys 1000000``
it compares tables that are appended to with as many that are kept by their keys and have so many rows already.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Message, Producer

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.perf.measuring import live_cpu, live_rss_mb
from tests.perf.peers.task import values
from tests.support.kafka import create_topic

HERE = Path(__file__).resolve().parents[2]
PARTITIONS = 4
PER_SECOND = 50
"""How often the feeder sends: records come evenly, as those of many producers would."""


@dataclass(frozen=True)
class Found:
    """Seconds, cores and megabytes, by what the table calls them."""

    numbers: dict[str, float]
    slowest: list[dict[str, Any]]


class Feeder(threading.Thread):
    """Sends evenly until it is stopped, and keeps when each record was produced and where it landed."""

    def __init__(self, kafka: EmbeddedKafka, topic: str, rate: int, keys: int) -> None:
        super().__init__(daemon=True)
        self._topic, self._rate, self._keys, self._random = topic, rate, keys, random.Random(3)
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 5, "log_level": 0})
        self.stop = threading.Event()
        self.landed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Offset and time, in milliseconds, by partition."""

    def run(self) -> None:
        records, sent, began = values(), 0, time.monotonic()
        while not self.stop.wait(max(0.0, began + sent / self._rate - time.monotonic())):
            for _ in range(max(1, self._rate // PER_SECOND)):
                number, key = sent, None
                if self._keys:
                    number = self._random.randrange(self._keys)
                    key = f"k{number}"
                self._producer.produce(
                    self._topic, next(records), key, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                sent += 1
            self._producer.poll(0)
        self._producer.flush(30)

    def _delivered(self, error: object, message: Message) -> None:
        assert error is None, error
        self.landed[message.partition()].append((message.offset(), message.timestamp()[1]))


@contextmanager
def worker(checkout: Path, *words: object) -> Iterator[subprocess.Popen[str]]:
    """The checkout's own code; only the worker's file, and what it takes from this folder, may be from here."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(HERE)])}
    command = [sys.executable, "-m", "tests.perf.live_worker", *map(str, words)]
    process = subprocess.Popen(
        command, cwd=checkout, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        yield process
        assert process.wait(90) == 0
    finally:
        process.kill()


def answer(process: subprocess.Popen[str]) -> Any:
    assert process.stdout
    line = process.stdout.readline()
    assert line, "the worker has ended; it said why above"
    return json.loads(line)


def measure(checkout: Path, asked: argparse.Namespace, kind: str = "") -> Found:
    with tempfile.TemporaryDirectory(prefix="mzshare-live-") as name:
        folder = Path(name)
        with EmbeddedKafka(folder / "kafka", jars=default_folder()) as kafka:
            topic = create_topic(kafka, PARTITIONS)
            feeder = Feeder(kafka, topic, asked.rate, asked.keys)
            feeder.start()
            more = (kind, asked.keys) if kind else ()
            with worker(checkout, folder / "home", kafka.bootstrap, topic, asked.tables, *more) as process:
                pid = answer(process)["pid"]
                window, cores, rss = watch(pid, asked.seconds)
                feeder.stop.set()
                feeder.join()
                time.sleep(asked.settle)  # the last records become visible
                print(file=process.stdin, flush=True)
                ticks = answer(process)
    return found(ticks, feeder.landed, window, cores, rss)


def watch(pid: int, seconds: float) -> tuple[tuple[float, float], float, float]:
    began, used, rss = time.time(), live_cpu(pid), 0.0
    while time.time() < began + seconds:
        rss = max(rss, live_rss_mb(pid))
        time.sleep(1)
    ended = time.time()
    return (began, ended), (live_cpu(pid) - used) / (ended - began), rss


def found(
    ticks: Sequence[Mapping[str, Any]],
    landed: Mapping[int, Sequence[tuple[int, int]]],
    window: tuple[float, float],
    cores: float,
    rss: float,
) -> Found:
    began, ended = (int(each * 1000) for each in window)
    waits = [
        (at - produced) / 1000
        for partition, records in landed.items()
        for produced, at in _visible(sorted(records), partition, ticks)
        if began <= produced <= ended
    ]
    inside = [tick for tick in ticks if began <= tick["at"] <= ended]
    gaps = [(after["at"] - before["at"]) / 1000 for before, after in pairwise(inside)]
    busy = [
        (tick["stats"]["write_ms"] + tick["stats"]["commit_ms"]) / 1000
        for tick in inside
        if "write_ms" in tick["stats"]
    ]
    numbers = {
        "visible p50 s": statistics.median(waits),
        "visible p95 s": _high(waits),
        "visible max s": max(waits),
        "gap p50 s": statistics.median(gaps),
        "gap p95 s": _high(gaps),
        "gap max s": max(gaps),
        "tick mean s": statistics.mean(busy),
        "cores": cores,
        "RSS MB": rss,
    }
    slowest = sorted((tick["stats"] for tick in inside), key=lambda stats: -stats.get("write_ms", 0))[:3]
    return Found(numbers, slowest)


def _visible(
    records: Sequence[tuple[int, int]], partition: int, ticks: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, int]]:
    """When each record was produced, and when the first tick beyond it was committed."""
    coming = iter(ticks)
    tick = next(coming)
    for offset, produced in records:
        while tick["upper"].get(str(partition), 0) <= offset:
            later = next(coming, None)
            assert later is not None, f"{partition}/{offset} never became visible"
            tick = later
        yield produced, tick["at"]


def _high(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--tables", type=int, default=64)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=3.0, help="seconds for the last records to become visible")
    parser.add_argument("--keys", type=int, default=0, help="compare with keyed tables of so many keys")
    parser.add_argument("--slowest", action="store_true", help="also tell what the slowest ticks did")
    asked = parser.parse_args()
    sides = {"there": asked.other.resolve(), "here": HERE} if asked.other else {"here": HERE}
    if asked.keys:
        sides = {"keyed": HERE, "append": HERE}
    results = {}
    for name, checkout in sides.items():
        results[name] = measure(checkout, asked, name if asked.keys else "")
        if asked.slowest:
            print(f"slowest ticks {name}:", *results[name].slowest, sep="\n  ", flush=True)
    print(f"{asked.tables} tables, {asked.rate:,} records/s, {asked.seconds:.0f} s")
    one, *others = results
    told = f"{one}/{others[0]}" if others else ""
    print(f"{'':16}" + "".join(f"{name:>10}" for name in results) + f"{told:>14}")
    for label, number in results[one].numbers.items():
        cells = "".join(f"{each.numbers[label]:10.2f}" for each in results.values())
        under = results[others[0]].numbers[label] if others else 0
        ratio = f"{number / under:14.2f}" if under else ""
        print(f"{label:16}{cells}{ratio}")


if __name__ == "__main__":
    main()
