"""Passes over random records for tables of random columns, written twice: put together of columns, and by Arrow.

Both are the product's own pass, ``write_partition``; only from how many tables on it puts files together differs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.schema import MAX_PRECISION, TYPES
from airflow_provider_mzshare.storage.fanout import writer
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from tests.support.any_values import TARGET
from tests.support.json_mutants import COLUMN_TYPES, mutants
from tests.unit.storage.fanout.records import MICROS, batch_of, member

SIZES = ((0,), (1,), (2, 0, 3), (7, 30), (300,), (500, 1, 200), (4_000,))
LARGE = ((26_000, 400),)
"""More rows in a piece than Arrow puts into a page: these pass as fast as they can be made, in plain bytes."""
INCLUDED = {"partition": ("p", "partition no."), "offset": ("o", "é.o"), "timestamp": ("t", "at")}
FEWEST, MOST = writer.SPLICED_FROM, 12


@dataclass(frozen=True)
class Pair:
    """A file that was put together, and the one that Arrow wrote of the same rows; ``told`` is the pass's result."""

    name: str
    schema: pa.Schema
    spliced: Path
    written: Path
    told: dict[str, Any]
    told_of_written: dict[str, Any]


def random_pairs(folder: Path, seed: int) -> Iterator[Pair]:
    """The files of one to three passes, over tables of which one leaves and one comes with each pass."""
    rng = random.Random(seed)
    tables, first = [_table(rng, f"{seed}-{n}") for n in range(rng.randrange(FEWEST, MOST + 1))], 1
    for number in range(rng.choice((1, 2, 3))):
        sizes = rng.choice(LARGE if rng.random() < 0.05 else SIZES)
        rows = rng.choice((3, 64, 1_000, 32_768)) if sum(sizes) < 5_000 else 32_768
        batches, ends = _records(rng, sizes)
        plan = FanoutPlan(first, tuple(tables), ends)
        yield from _written_twice(folder / str(number), plan, batches, max(rows, sum(sizes) // 8))
        first += 1 + len(ends["0"])
        late = rng.randrange(first - 1, first + 3)
        new = replace(_table(rng, f"{seed}-{number}-late"), data_after=late, errors_after=rng.randrange(first))
        tables = [*rng.sample(tables, len(tables) - 1), new]


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(rng: random.Random, id: str) -> MemberPlan:
    kind = rng.choice(("any", "any", "any", "json", "json", "json whole", "text", "bytes"))
    format, columns = kind.split()[0], []
    if kind == "any":
        columns = [(f"{name} {rng.choice('aé')}{n % 3}", name) for n, name in enumerate(_some_types(rng))]
        columns = list(dict(columns).items())
    elif kind == "json":
        columns = [(name, name) for name in rng.sample(COLUMN_TYPES, rng.randrange(1, len(COLUMN_TYPES) + 1))]
    include = [(what, rng.choice(names)) for what, names in INCLUDED.items() if rng.random() < 0.4]
    if rng.random() < 0.5:
        include.append(("key", "key of bytes" if format == "bytes" else "key of text"))
    made = member(
        *columns, id=id, format="json" if format == "any" else format, include=tuple(include),
        partitions=rng.choice(((), (), (), (0,))), stop_on_error=rng.random() < 0.05,
    )  # fmt: skip
    return replace(made, format=TARGET) if format == "any" else made


def _some_types(rng: random.Random) -> list[str]:
    """Any number of columns of any type, also the same type twice. A type's name says its precision and scale."""
    found = []
    for name in rng.choices(TYPES, k=rng.choice((1, 4, 9, 20))):
        precision = rng.randrange(1, MAX_PRECISION + 1)
        found.append(f"numeric({precision},{rng.randrange(precision + 1)})" if name == "numeric" else name)
    return found


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _records(rng: random.Random, sizes: Sequence[int]) -> tuple[list[pa.RecordBatch], dict[str, tuple[int, ...]]]:
    """Batches of two partitions in turns, and where the first ticks of the pass end."""
    kinds = rng.choice((b"", b"key", None))
    batches, offsets = [], [0, 0]
    for number, size in enumerate(sizes):
        values = _values(rng, size)
        keys = [None if kinds is None or rng.random() < 0.3 else kinds + b"%d" % rng.randrange(50) for _ in values]
        micros = [None if rng.random() < 0.01 else MICROS + rng.randrange(10**12) for _ in values]
        lane = number % 2
        batches.append(batch_of(values, keys=keys, partition=lane, first=offsets[lane], micros=micros))
        offsets[lane] += size
    ticks = rng.choice((0, 1, 4))
    return batches, {
        str(lane): tuple(sorted(rng.randrange(end + 1) for _ in range(ticks))) for lane, end in enumerate(offsets)
    }


def _values(rng: random.Random, size: int) -> list[bytes | None]:
    if size > 5_000:
        return [b'{"bigint":%d}' % number for number in range(size)]
    values: list[bytes | None] = list(mutants(rng.getrandbits(32), size))
    return [None if rng.random() < 0.02 else value for value in values]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _written_twice(folder: Path, plan: FanoutPlan, batches: Sequence[pa.RecordBatch], rows: int) -> Iterator[Pair]:
    spliced = _pass(folder / "spliced", plan, batches, rows, spliced_from=FEWEST)
    written = _pass(folder / "written", plan, batches, rows, spliced_from=10**9)
    assert spliced.keys() == written.keys()
    schemas = {each.table_id: data_schema(each) for each in plan.members}
    for (table, role), (told, path) in spliced.items():
        told_of_written, other = written[table, role]
        if path is None:
            assert (told, other) == (told_of_written, None)
            continue
        schema = schemas[table] if role == "data" else errors_schema(plan.place)
        yield Pair(f"{table} {role} {plan.tick}", schema, path, other, told, told_of_written)


def _pass(
    folder: Path, plan: FanoutPlan, batches: Sequence[pa.RecordBatch], rows: int, *, spliced_from: int
) -> dict[tuple[str, str], tuple[dict[str, Any], Path | None]]:
    placed = [_in_folders(folder, each) for each in plan.members]
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(writer, "SPLICED_FROM", spliced_from)
        changed.setattr(writer, "_PIECE_ROWS", rows)
        out = list(write_partition(iter(batches), replace(plan, members=tuple(placed)).to_json()))
    found = {}
    folders = {(each.table_id, role): getattr(each, f"{role}_path") for each in placed for role in ("data", "errors")}
    for row in (row for batch in out for row in batch.to_pylist()):
        of = (row["table_id"], row["role"])
        path = row.pop("path")
        assert row["error"] is None, row
        found[of] = row, Path(folders[of]) / path if path else None
    return found


def _in_folders(folder: Path, table: MemberPlan) -> MemberPlan:
    paths = {f"{role}_path": folder / table.table_id / role for role in ("data", "errors")}
    for path in paths.values():
        path.mkdir(parents=True)
    return replace(table, **{name: str(path) for name, path in paths.items()})
