"""Acknowledged messages per second: ours, one flush and one announcement for each message, and no flush at all.

Threads push one message of 200 B after the other, each when the one before is acknowledged, into one partition whose
catalog is SQLite on the same disk. All three go the same way through the code: the second takes one message at a time,
the third does not ask the disk to flush the segment (the catalog still flushes what it commits).
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from unittest import mock

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.lifecycle.pushing import Pusher
from airflow_provider_mzshare.core.ids import JobId, new_journal_id
from airflow_provider_mzshare.storage.journal.writer import LIMITS, JournalWriter, Limits, claim_partition

CLIENTS = (1, 16, 64)
ROUNDS = 3
SIZE = 200


def _unflushed() -> AbstractContextManager[object]:
    return mock.patch.object(os, "fdatasync", return_value=None)


@dataclass(frozen=True)
class Way:
    name: str
    limits: Limits = LIMITS
    around: Callable[[], AbstractContextManager[object]] = nullcontext


OURS, ALONE, UNFLUSHED = WAYS = (
    Way("ours"),
    Way("one flush each", Limits(group=1)),
    Way("no flush", around=_unflushed),
)


def push_throughput(seconds: float = 2.0, clients: Sequence[int] = CLIENTS) -> None:
    """Print it for each number of threads. :param seconds: of each run."""
    print(f"{'messages/s':<12}" + "".join(f"{way.name:>16}" for way in WAYS) + f"{'ours/each':>12}{'ours/none':>12}")
    with (
        TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder,
        open_catalog(f"sqlite:///{folder}/c.db") as catalog,
    ):
        catalog.upgrade()
        for count in clients:
            found: dict[Way, list[float]] = {way: [] for way in WAYS}
            for _ in range(ROUNDS):
                for way in WAYS:
                    found[way].append(_rate(catalog, Path(folder), way, count, seconds))
            ours, alone, unflushed = (median(found[way]) for way in WAYS)
            rates = "".join(f"{rate:16,.0f}" for rate in (ours, alone, unflushed))
            print(f"{f'{count} threads':<12}{rates}{ours / alone:12.1f}{ours / unflushed:12.2f}", flush=True)


def _rate(catalog: Catalog, root: Path, way: Way, threads: int, seconds: float) -> float:
    value, counts = random.Random(1).randbytes(SIZE), [0] * threads
    with way.around(), _pusher(catalog, root, way) as pusher:
        pusher.push([value])
        begin, deadline = threading.Barrier(threads + 1), [0.0]

        def client(number: int) -> None:
            begin.wait()
            while time.perf_counter() < deadline[0]:
                pusher.push([value])
                counts[number] += 1

        running = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
        for thread in running:
            thread.start()
        deadline[0] = (began := time.perf_counter()) + seconds
        begin.wait()
        for thread in running:
            thread.join()
        return sum(counts) / (time.perf_counter() - began)


@contextmanager
def _pusher(catalog: Catalog, root: Path, way: Way) -> Iterator[Pusher]:
    store = journals_of(catalog).open(new_journal_id())
    holder = claim_partition(store, str(root), 0, JobId("push-bench"))
    with JournalWriter(store, str(root), 0, holder, heartbeat_seconds=2, limits=way.limits) as writer:
        yield Pusher("bench", writer)
