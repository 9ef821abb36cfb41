"""Prints what the pass costs per record here and in another checkout, in turns, so that a loaded machine slows both:
``python tests/perf/bench_decode.py OTHER_CHECKOUT [RECORDS] [TABLES,TABLES…]``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
REPEATS = 3
BATCH = 20_000
SMALL = (
    ("id", "bigint"),
    ("customer", "text"),
    ("amount", "numeric(12,2)"),
    ("status", "text"),
    ("created_at", "timestamptz"),
    ("note", "text"),
)
BIG = (
    *SMALL,
    *((f"text{n}", "text") for n in range(8)),
    *((f"whole{n}", "bigint") for n in range(6)),
    *((f"part{n}", "double") for n in range(4)),
    *((f"flag{n}", "boolean") for n in range(3)),
    *((f"nested{n}", "jsonb") for n in range(3)),
)
SHAPES = {"small": SMALL, "big": BIG}


def record(rng: random.Random, number: int, shape: str) -> bytes:
    fields: dict[str, object] = {
        "id": number,
        "customer": f"customer-{rng.randrange(5_000)}",
        "amount": rng.randrange(1_000_000) / 100,
        "status": rng.choice(("new", "paid", "shipped")),
        "created_at": f"2026-01-{rng.randrange(1, 29):02}T12:{rng.randrange(60):02}:{rng.randrange(60):02}Z",
        "note": f"note {rng.randrange(10**9):09} " + "x" * 20,
    }
    if shape == "big":
        fields |= {f"text{n}": f"a longer value {rng.randrange(10**6)}" for n in range(8)}
        fields |= {f"whole{n}": rng.randrange(10**9) for n in range(6)}
        fields |= {f"part{n}": rng.random() * 1_000 for n in range(4)}
        fields |= {f"flag{n}": rng.random() < 0.5 for n in range(3)}
        fields |= {
            f"nested{n}": {"sku": f"s{rng.randrange(999)}", "qty": [rng.randrange(9), rng.random()]} for n in range(3)
        }
    return json.dumps(fields).encode()


def mean_size(shape: str) -> float:
    rng = random.Random(7)
    return sum(len(record(rng, number, shape)) for number in range(2_000)) / 2_000


def work() -> None:
    """Answer each request, ``shape records tables share_of_bad``, with the microseconds of one core per record, the
    bytes of one table's files per record, and a hash of all rows.
    """
    import pyarrow as pa

    from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
    from airflow_provider_mzshare.formats.registry import format_target
    from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
    from airflow_provider_mzshare.storage.fanout.writer import write_partition

    for line in sys.stdin:
        shape, records, tables, bad = json.loads(line)
        rng = random.Random(7)
        values = [b"{" if rng.random() < bad else record(rng, number, shape) for number in range(records)]
        columns = [
            pa.nulls(records, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array([0] * records, pa.int32()),
            pa.array(range(records), pa.int64()),
            pa.array([1_700_000_000_000_000] * records, pa.timestamp("us", "UTC")),
        ]
        batches = pa.table(columns, schema=INPUT_SCHEMA).to_batches(max_chunksize=BATCH)
        fields = SHAPES[shape]
        with tempfile.TemporaryDirectory() as folder:
            members = []
            for number in range(tables):
                paths = [Path(folder) / f"{number}-{role}" for role in ("data", "errors")]
                for path in paths:
                    path.mkdir()
                kept = fields[: len(fields) - number % 4]
                members.append(MemberPlan(f"u{number}", format_target("json"), kept, (), *map(str, paths)))
            plan = FanoutPlan(1, tuple(members)).to_json()
            begin = time.process_time()
            results = [row for batch in write_partition(iter(batches), plan) for row in batch.to_pylist()]
            spent = time.process_time() - begin
        hashes = sorted((row["table_id"], row["role"], row["rows"], row["hash"]) for row in results if row["path"])
        size = sum(row["size"] for row in results if row["path"]) / records / tables
        print(json.dumps([spent / records * 1e6, size, hash(tuple(hashes))]), flush=True)


class Worker:
    def __init__(self, checkout: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout,
        )  # fmt: skip

    def ask(self, *request: object) -> tuple[float, float, int]:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        spent, size, hashed = json.loads(self._process.stdout.readline())
        return spent, size, hashed

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    other = Path(sys.argv[1]).resolve()
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 40_000
    numbers = [int(each) for each in sys.argv[3].split(",")] if len(sys.argv) > 3 else [1, 16, 64]
    workers = [Worker(other), Worker(HERE)]
    try:
        for shape in SHAPES:
            print(f"{shape}: JSON of {mean_size(shape):.0f} bytes, {len(SHAPES[shape])} columns")
            for tables in numbers:
                for bad in (0, 0.001):
                    rounds = [[each.ask(shape, records, tables, bad) for each in workers] for _ in range(REPEATS)]
                    same = len({hashed for pair in rounds for *_, hashed in pair}) == 1
                    before, after = (min(pair[side][0] for pair in rounds) for side in (0, 1))
                    sizes = " -> ".join(f"{size:.1f}" for _, size, _ in rounds[0])
                    print(
                        f"{shape:6}{tables:3} tables, {bad:5.1%} bad, us/record: {before:6.2f} there, {after:6.2f}"
                        f" here, {before / after:4.2f} times as fast, {sizes} bytes, rows and hashes"
                        f" {'equal' if same else 'DIFFER'}",
                        flush=True,
                    )
    finally:
        for each in workers:
            each.close()


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
