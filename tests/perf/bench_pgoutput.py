"""Frames of Postgres to rows, and rows to typed columns: rows a second of one core, beside a plain loop over frames.

All ways take the same frames, in turns, and must give the same values; CPU time is told, because it says more on a
machine that is busy. The loop is one that somebody would write by hand: ``struct`` and slices, then Arrow's casts.
Run by hand: ``python -m tests.perf.bench_pgoutput [rows]``.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from random import Random
from statistics import median

import pyarrow as pa

from airflow_provider_mzshare.connectors.postgres.decoding import rows
from airflow_provider_mzshare.connectors.postgres.place import PLACE
from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.formats.postgres_values import typed
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from tests.support.pgoutput import Message, frame_of, messages_of, prologue_of, relation_of

COLUMNS = (("id", "bigint", 20), ("a", "integer", 23), ("b", "integer", 23), ("price", "numeric(12,2)", 1700),
           ("at", "timestamptz", 1184), ("note", "text", 25))  # fmt: skip
OID, ROUNDS, PIECE = 16_385, 5, 32_768
PROLOGUE = prologue_of([relation_of(OID, [(name, oid, name == "id") for name, _, oid in COLUMNS])])


def messages(count: int) -> pa.RecordBatch:
    """Updates of one table, six columns each: three numbers, an amount, a time and a text of 40 characters."""
    draw = Random(1)
    found = []
    for number in range(count):
        moment = f"2024-01-{number % 28 + 1:02} 12:34:56.{draw.randrange(10**6):06}+00"
        price = f"{draw.randrange(10**6)}.{draw.randrange(100):02}"
        texts = (str(number), str(draw.randrange(10**6)), str(number % 97), price, moment, f"{number:040}")
        frame = frame_of(OID, "U", None, [text.encode() for text in texts])
        found.append(Message(number // 10, number % 10, number // 10, OID, frame))
    return messages_of(found)


def by_loop(batch: pa.RecordBatch) -> list[list[str | None]]:
    """The values of updates without an old row, column by column."""
    length = struct.Struct(">I").unpack_from
    columns: list[list[str | None]] = [[] for _ in COLUMNS]
    adds = [column.append for column in columns]
    for frame in batch.column("value").to_pylist():
        at = 8
        for add in adds:
            if frame[at] == 0x74:
                end = at + 5 + length(frame, at + 1)[0]
                add(frame[at + 5 : end].decode())
                at = end
            else:
                add(None)
                at += 1
    return columns


def cast(columns: list[list[str | None]]) -> list[pa.Array]:
    return [pa.array(v, pa.string()).cast(arrow_type(k)) for v, (_, k, _) in zip(columns, COLUMNS, strict=True)]


def converted(batch: pa.RecordBatch) -> list[pa.Array]:
    after = batch.column("row").field("after")
    return [typed(after.field(name).cast(pa.string()), kind).values for name, kind, _ in COLUMNS]


def passed(batch: pa.RecordBatch) -> int:
    """The whole pass for one table, without its files: events of keys."""
    member = MemberPlan(
        "u1", format_target("postgres"), tuple((name, kind) for name, kind, _ in COLUMNS), (), "", "",
        envelope="airflow_provider_mzshare.envelopes.postgres:POSTGRES", keys=("id",), keys_in_value=True, place=PLACE,
        reference=str(OID),
    )  # fmt: skip
    plan, count = FanoutPlan(1, (member,)), 0
    for start in range(0, batch.num_rows, PIECE):
        found = decode_batch(batch.slice(start, PIECE), plan)["u1"]
        count += found.data.batch.num_rows if found.data else 0
    return count


def main(count: int) -> None:
    given = messages(count)
    (decoded,) = rows(given, PROLOGUE)
    assert all(one.equals(other) for one, other in zip(converted(decoded), cast(by_loop(given)), strict=True))
    assert passed(decoded) == count
    ways: dict[str, Callable[[], object]] = {
        "a plain loop, text": lambda: by_loop(given),
        "a plain loop, and Arrow's casts": lambda: cast(by_loop(given)),
        "ours, text": lambda: list(rows(given, PROLOGUE)),
        "ours, typed": lambda: [converted(batch) for batch in rows(given, PROLOGUE)],
        "ours, to events of keys": lambda: [passed(batch) for batch in rows(given, PROLOGUE)],
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            begun = time.process_time()
            run()
            taken[way].append(time.process_time() - begun)
    print(f"{count:,} updates of {len(COLUMNS)} columns; rows a second of CPU time: median, best of {ROUNDS}")
    for way, seconds in taken.items():
        print(f"  {way:<34} {count / median(seconds):12,.0f} {count / min(seconds):12,.0f}")


if __name__ == "__main__":
    pa.set_cpu_count(1)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
