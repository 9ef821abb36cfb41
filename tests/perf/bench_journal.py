"""Journals: pushing with and without a flush for each message; reading segments against reading the files as they lie.

``read`` does it from the disk, whose cache is told to forget the files before each run, and from the cache. Both read
files to their end, one after the other; ours also checks, decompresses and gives Arrow batches. ``payload`` is keys and
values before compression. ``push``: see ``journal_pushing``. Run by hand:
``python -m tests.perf.bench_journal read [MiB of payload]``, ``… push [seconds of each run]``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import pyarrow as pa

from airflow_provider_mzshare.core.ids import new_journal_id
from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.journal.reading import Extent, read
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile
from tests.perf.journal_pushing import push_throughput

MB = 1 << 20
ROUNDS = 5
PIECE = 1 << 20


@dataclass(frozen=True)
class Shape:
    """What messages look like, and how many of them a flush has."""

    name: str
    batch: int
    value: Callable[[random.Random, int], bytes]


def _text(chance: random.Random, number: int) -> bytes:
    fields = {
        "id": number,
        "customer": f"customer-{chance.randrange(100_000)}",
        "amount": chance.randrange(10**6) / 100,
    }
    return json.dumps({**fields, "status": chance.choice(("new", "paid", "sent")), "note": "some words " * 6}).encode()


SHAPES = (
    Shape("random 200 B, 5,000 a flush", 5000, lambda chance, _: chance.randbytes(200)),
    Shape("JSON 170 B, 5,000 a flush", 5000, _text),
    Shape("random 64 KiB, 50 a flush", 50, lambda chance, _: chance.randbytes(64 << 10)),
    Shape("random 200 B, 64 a flush", 64, lambda chance, _: chance.randbytes(200)),
    Shape("random 200 B, 1 a flush", 1, lambda chance, _: chance.randbytes(200)),
)


def written(root: Path, shape: Shape, payload: int) -> list[Extent]:
    """Segments with so many bytes of values. They are flushed at their ends only: readers see no difference."""
    chance, journal = random.Random(3), new_journal_id()
    values = [shape.value(chance, number) for number in range(max(shape.batch, 1000))]
    extents: list[Extent] = []
    left, at, number = payload, 0, 0
    while left > 0:
        number += 1
        file = SegmentFile.create(str(root), journal, partition=0, epoch=1, number=number, first=at)
        while file.takes_more and left > 0:
            rows = [values[(at + n) % len(values)] for n in range(shape.batch)]
            file.append(_messages(rows, at))
            left -= sum(map(len, rows))
            at += shape.batch
        segment = file.flush()
        file.close()
        path = str(root / file.path)
        extents.append(Extent(path, segment.first, segment.length, segment.first, segment.end))
    return extents


def _messages(values: Sequence[bytes], first: int) -> pa.RecordBatch:
    times = pa.array(range(1_700_000_000_000_000 + first, 1_700_000_000_000_000 + first + len(values)), pa.int64())
    given = {"timestamp": times.cast(MESSAGES.field("timestamp").type), "value": pa.array(values, pa.binary())}
    columns = [given[each.name] if each.name in given else pa.nulls(len(values), each.type) for each in MESSAGES]
    return pa.RecordBatch.from_arrays(columns, schema=MESSAGES)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_throughput(payload: int = 256 * MB) -> None:
    """Print what reading costs, for each shape of messages. :param payload: bytes of values of each."""
    names = f"{'raw':>8} {'ours':>8} {'share':>6} {'by CPU':>8}   {'payload MB/s':>12} {'messages/s':>11}"
    print(f"{'MB/s of the files':<30} {names}")
    for shape in SHAPES:
        # One message in a block takes long to write, and says as much with fewer.
        wanted = payload if shape.batch > 1 else payload // 8
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
            extents = written(Path(folder), shape, wanted)
            print(f"{shape.name}: {_size(extents) / MB:.0f} MiB in {len(extents)} files, of {wanted / MB:.0f} MiB")
            for where, prepare in (("disk", _forget), ("cache", _read_raw)):
                _compare(where, extents, prepare, wanted)


def _compare(where: str, extents: Sequence[Extent], prepare: Callable[[Sequence[Extent]], object], wanted: int) -> None:
    """The best of some rounds: others may use the machine. CPU says what a core could do beside a faster disk."""
    raw, ours, cpu = inf, inf, inf
    for _ in range(ROUNDS):
        prepare(extents)
        raw = min(raw, _timed(_read_raw, extents)[0])
        prepare(extents)
        wall, used = _timed(_read_ours, extents)
        ours, cpu = min(ours, wall), min(cpu, used)
    size, messages = _size(extents), sum(extent.upper - extent.lower for extent in extents)
    speeds = f"{size / raw / 1e6:8.0f} {size / ours / 1e6:8.0f} {raw / ours:6.2f} {size / cpu / 1e6:8.0f}"
    print(f"  {'from the ' + where:<28} {speeds}   {wanted / ours / 1e6:12.0f} {messages / ours:11,.0f}", flush=True)


def _timed(run: Callable[[Sequence[Extent]], None], extents: Sequence[Extent]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run(extents)
    return time.perf_counter() - wall, time.process_time() - cpu


def _size(extents: Sequence[Extent]) -> int:
    return sum(extent.length for extent in extents)


def _forget(extents: Sequence[Extent]) -> None:
    for extent in extents:
        descriptor = os.open(extent.path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _read_raw(extents: Sequence[Extent]) -> None:
    target = bytearray(PIECE)
    for extent in extents:
        with open(extent.path, "rb", buffering=0) as file:
            while file.readinto(target):
                pass


def _read_ours(extents: Sequence[Extent]) -> None:
    for extent in extents:
        rows = sum(batch.num_rows for _, batch in read(extent))
        assert rows == extent.upper - extent.lower


def main(words: Sequence[str]) -> None:
    match words:
        case ["read", *more]:
            read_throughput(*(int(float(word) * MB) for word in more))
        case ["push", *more]:
            push_throughput(*map(float, more))
        case _:
            raise SystemExit("say one of: read, push")


if __name__ == "__main__":
    main(sys.argv[1:])
