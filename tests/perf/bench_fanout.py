"""Prints what the fan-out costs per record, alone in one process: ``python tests/perf/bench_fanout.py [RECORDS]``."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.writer import write_partition

FIELDS = (
    ("id", "bigint"),
    ("customer", "text"),
    ("amount", "double"),
    ("status", "text"),
    ("created_at", "timestamptz"),
    ("note", "text"),
)
BATCH = 10_000


def make_batches(records: int) -> list[pa.RecordBatch]:
    rng = random.Random(7)
    values = [
        json.dumps(
            {
                "id": number,
                "customer": f"customer-{rng.randrange(5_000)}",
                "amount": rng.randrange(1_000_000) / 100,
                "status": rng.choice(("new", "paid", "shipped")),
                "created_at": f"2026-01-{rng.randrange(1, 29):02}T12:{rng.randrange(60):02}:{rng.randrange(60):02}Z",
                "note": f"note {rng.randrange(10**9):09} " + "x" * 20,
            }
        ).encode()
        for number in range(records)
    ]
    columns = [
        pa.nulls(records, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array([0] * records, pa.int32()),
        pa.array(range(records), pa.int64()),
        pa.array([1_700_000_000_000_000] * records, pa.timestamp("us", "UTC")),
    ]
    print(f"{records:,} records of {sum(map(len, values)) / records:.0f} bytes, batches of {BATCH:,}")
    return pa.table(columns, schema=INPUT_SCHEMA).to_batches(max_chunksize=BATCH)


def make_plan(tables: int, folder: Path, fields: tuple[tuple[str, str], ...] = FIELDS) -> FanoutPlan:
    members = []
    for number in range(tables):
        for role in ("data", "errors"):
            (folder / f"{tables}-{number}-{role}").mkdir()
        kept = fields[: 3 + number % 4] if tables > 1 else fields
        paths = [str(folder / f"{tables}-{number}-{role}") for role in ("data", "errors")]
        members.append(MemberPlan(f"u{number}", format_target("json"), kept, (), *paths))
    return FanoutPlan(1, tuple(members))


def cpu_per_record(action: Callable[[], object], records: int) -> float:
    """Microseconds of one core, the best of three: other work on the machine does not count."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times) / records * 1e6


def decode_all(batches: list[pa.RecordBatch], plan: FanoutPlan) -> None:
    for batch in batches:
        decode_batch(batch, plan)


def write_all(batches: list[pa.RecordBatch], plan: FanoutPlan) -> None:
    for _ in write_partition(iter(batches), plan.to_json()):
        pass


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    batches = make_batches(records)
    exact = tuple((name, "numeric(12,2)" if name == "amount" else kind) for name, kind in FIELDS)
    for label, fields in (("double", FIELDS), ("numeric", exact)):
        for tables in (1, 16):
            with tempfile.TemporaryDirectory() as folder:
                plan = make_plan(tables, Path(folder), fields)
                decoding = cpu_per_record(partial(decode_all, batches, plan), records)
                whole = cpu_per_record(partial(write_all, batches, plan), records)
            print(f"{label:8}{tables:3} tables, us/record: decode and hash {decoding:5.2f}, whole pass {whole:5.2f}")


if __name__ == "__main__":
    main()
