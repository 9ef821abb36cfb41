"""One tick of a table's change stream, against what others do to find out: compare two versions of the table.

A table of current rows with deletion vectors, and one that only gets more rows; both have many rows and many ticks.
Every side gives the rows that came and those that went, as Arrow tables, and they must be the same rows. Which files
are opened is counted by the kernel. At last small tables of which one has ten times as many ticks as the other.
Run by hand: ``python -m tests.perf.bench_changes [--keys 1000000] [--changes 2000] [--ticks 1000] [--long 10000]``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from airflow_provider_mzshare import connect
from airflow_provider_mzshare.compute.jars import default_folder, spark_jars
from airflow_provider_mzshare.compute.session import DELTA_CONF, open_session
from airflow_provider_mzshare.storage.collections.rows import SPARKS_LIMIT
from tests.perf.measuring import live_cpu
from tests.perf.peers.task import COLUMNS
from tests.support.keyed_load import KEY
from tests.support.opened import opened
from tests.support.ticked_load import NAME, TickedLoad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CPU_STEP = 0.001
"""What ours takes may be less than the clock of the CPU can tell."""
ROW = (*(name for name, _ in COLUMNS), KEY)
COMING = ("insert", "update_postimage")
DIFFERENCE = f"""
SELECT 1 AS diff, * FROM (SELECT {", ".join(ROW)} FROM new EXCEPT ALL SELECT {", ".join(ROW)} FROM old)
UNION ALL SELECT -1, * FROM (SELECT {", ".join(ROW)} FROM old EXCEPT ALL SELECT {", ".join(ROW)} FROM new)
"""
AIM = 20

Read = Callable[[int, int], pa.Table]
"""By the time of a tick and the version that it has made: a column ``diff``, and the rows."""


@dataclass(frozen=True)
class Cost:
    """Medians. ``files``: of the first read that counts, other than of the log."""

    seconds: float
    cpu: float
    most: float
    files: int
    entries: int
    checkpoints: int
    listed: int


# ── the sides ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def sides(load: TickedLoad, spark: SparkSession | None, *, keyed: bool) -> Iterator[tuple[str, Read]]:
    path = str(load.path)
    with connect(home=load.home) as mz:

        def ours(at: int, _: int) -> pa.Table:
            with mz.changes(NAME, as_of=at, up_to=at + 1, snapshot=False) as batches:
                return batches.read_all().rename_columns({"mz_diff": "diff"}).select(["diff", *ROW])

        yield "ours", ours
    if spark is not None:
        yield "Spark, EXCEPT ALL", lambda _, version: spark_difference(*both(spark, path, version))
        yield "Spark, full join", lambda _, version: spark_joined(*both(spark, path, version))
        if keyed:
            yield "Spark, feed", lambda _, version: spark_feed(spark, path, version)
    yield "delta-rs, DuckDB", lambda _, version: loaded_difference(path, version)
    yield "delta-rs, DataFusion", lambda _, version: queried_difference(path, version)
    if keyed:
        yield "delta-rs, feed", lambda _, version: feed(path, version)


def both(spark: SparkSession, path: str, version: int) -> tuple[DataFrame, DataFrame]:
    old, new = (
        spark.read.format("delta").option("versionAsOf", at).load(path).select(*ROW) for at in (version - 1, version)
    )
    return old, new


def spark_difference(old: DataFrame, new: DataFrame) -> pa.Table:
    come, gone = new.exceptAll(old).selectExpr("1 AS diff", "*"), old.exceptAll(new).selectExpr("-1 AS diff", "*")
    return come.unionAll(gone).toArrow()


def spark_joined(old: DataFrame, new: DataFrame) -> pa.Table:
    from pyspark.sql.functions import col, struct

    sides = [
        frame.select(col(KEY).alias(f"{name}_key"), struct(*ROW).alias(name))
        for name, frame in (("old", old), ("new", new))
    ]
    changed = sides[0].join(sides[1], col("old_key") == col("new_key"), "full_outer").where("NOT (old <=> new)")
    came = changed.where("new IS NOT NULL").selectExpr("1 AS diff", "new.*")
    return came.unionAll(changed.where("old IS NOT NULL").selectExpr("-1 AS diff", "old.*")).toArrow()


def spark_feed(spark: SparkSession, path: str, version: int) -> pa.Table:
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
    found = reader.option("endingVersion", version).load(path).select("_change_type", *ROW)
    return signed(found.toArrow())


def feed(path: str, version: int) -> pa.Table:
    found = DeltaTable(path).load_cdf(starting_version=version, ending_version=version)
    return signed(pa.table(found.read_all()))


def signed(changes: pa.Table) -> pa.Table:
    came = pc.is_in(changes.column("_change_type").cast(pa.string()), pa.array(COMING))
    return changes.select(ROW).add_column(0, "diff", pc.if_else(came, 1, -1))


def query() -> QueryBuilder:
    """In several threads, delta-rs takes vectors for those of other rows, so that what it gives is wrong."""
    builder = QueryBuilder()
    builder.execute("SET datafusion.execution.target_partitions = 1").read_all()
    return builder


def rows_at(path: str, version: int) -> pa.Table:
    """delta-rs itself refuses to give tables with vectors to Arrow."""
    table = DeltaTable(path, version=version)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        return pa.table(query().register("t", table).execute(f"SELECT {', '.join(ROW)} FROM t").read_all())
    return table.to_pyarrow_table(columns=list(ROW))


def loaded_difference(path: str, version: int) -> pa.Table:
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("old", rows_at(path, version - 1))
        connection.register("new", rows_at(path, version))
        return connection.sql(DIFFERENCE).to_arrow_table()


def queried_difference(path: str, version: int) -> pa.Table:
    builder = query()
    for name, at in (("old", version - 1), ("new", version)):
        builder.register(name, DeltaTable(path, version=at))
    anti = "SELECT {sign} AS diff, a.* FROM (SELECT {row} FROM {a}) AS a LEFT ANTI JOIN {b} AS b ON {same}"
    row, same = ", ".join(ROW), " AND ".join(f"(a.{name} IS NOT DISTINCT FROM b.{name})" for name in ROW)
    ways = ((1, "new", "old"), (-1, "old", "new"))
    halves = (anti.format(sign=sign, row=row, a=a, b=b, same=same) for sign, a, b in ways)
    return pa.table(builder.execute(" UNION ALL ".join(halves)).read_all())


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def costs_of(load: TickedLoad, read: Read, ticks: list[tuple[int, int]], wanted: Mapping[int, Counter[str]]) -> Cost:
    """The first tick warms up and does not count."""
    seconds, cpu, files = [], [], Counter[str]()
    for number, (at, version) in enumerate(ticks):
        used, began = live_cpu(os.getpid()), time.perf_counter()
        if number == 1:
            with opened(load.path) as files:
                found = read(at, version)
        else:
            found = read(at, version)
        seconds.append(time.perf_counter() - began)
        cpu.append(live_cpu(os.getpid()) - used)
        if at in wanted:
            assert counted(found) == wanted[at], "other changes than ours"
    in_log = [path for path in files if path.startswith("_delta_log/")]
    return Cost(
        statistics.median(seconds[1:]),
        statistics.median(cpu[1:]),
        max(seconds[1:]),
        sum(not path.startswith("_delta_log/") and not path.endswith("/") for path in files),
        sum(path.endswith(".json") for path in in_log),
        sum(".checkpoint." in path for path in in_log),
        files["_delta_log/"],
    )


def counted(rows: pa.Table) -> Counter[str]:
    """Every side has types of its own for the same values."""
    plain = [
        rows.column(name).cast(pa.timestamp("us", "UTC")) if name == "created_at" else rows.column(name)
        for name in ("diff", *ROW)
    ]
    return Counter(map(repr, zip(*(column.to_pylist() for column in plain), strict=True)))


@contextmanager
def built(keys: int, ticks: int, changes: int, *, keyed: bool) -> Iterator[TickedLoad]:
    folder = Path(tempfile.mkdtemp(prefix="mzshare-changes-"))
    load = TickedLoad(folder / "home", keys, keyed=keyed)
    try:
        began = time.perf_counter()
        load.run(ticks, changes)
        what = "changes rows" if keyed else "adds rows"
        size = sum(path.stat().st_size for path in load.path.rglob("*") if path.is_file()) / 1e6
        versions, took = DeltaTable(str(load.path)).version(), time.perf_counter() - began
        print(f"\n{keys:,} rows, {ticks:,} ticks of {changes:,}, each {what}: {size:,.0f} MB, {versions:,} versions, "
              f"written in {took:.0f} s, load {os.getloadavg()[0]:.1f}")  # fmt: skip
        print(row("", ["ms", "most ms", "CPU ms", "files", "entries", "checkpoints", "listed"]), flush=True)
        yield load
    finally:
        load.close()
        shutil.rmtree(folder, ignore_errors=True)


def row(name: str, cells: list[str]) -> str:
    return f"{name:22}" + "".join(f"{cell:>12}" for cell in cells)


def tell(name: str, cost: Cost) -> None:
    times = [f"{each * 1000:,.0f}" for each in (cost.seconds, cost.most, cost.cpu)]
    print(row(name, [*times, *map(str, (cost.files, cost.entries, cost.checkpoints, cost.listed))]), flush=True)


def compare(asked: argparse.Namespace, spark: SparkSession, *, keyed: bool) -> dict[str, Cost]:
    dice, found = random.Random(1), dict[str, Cost]()
    with built(asked.keys, asked.ticks, asked.changes, keyed=keyed) as load:
        ticks = dice.sample(load.ticks[1:], asked.rounds + 1)
        wanted: dict[int, Counter[str]] = {}
        for name, read in sides(load, spark, keyed=keyed):
            these = ticks if name == "ours" else ticks[: asked.slow_rounds + 1]
            if name == "ours":
                wanted = {at: counted(read(at, version)) for at, version in ticks[: asked.slow_rounds + 1]}
            found[name] = costs_of(load, read, these, wanted)
            tell(name, found[name])
    return found


def compare_long(asked: argparse.Namespace) -> None:
    """Small, because only their number counts."""
    for ticks in (asked.long // 10, asked.long):
        with built(20_000, ticks, 20, keyed=True) as load:
            name, read = next(sides(load, None, keyed=True))
            tell(name, costs_of(load, read, random.Random(1).sample(load.ticks[1:], asked.rounds + 1), {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=2_000)
    parser.add_argument("--ticks", type=int, default=1_000)
    parser.add_argument("--long", type=int, default=10_000, help="ticks of the last table; 0: none")
    parser.add_argument("--rounds", type=int, default=15, help="ticks that ours reads")
    parser.add_argument("--slow-rounds", type=int, default=3, help="ticks that all others read")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mzshare-changes-") as scratch:
        jars = spark_jars(default_folder())
        conf = DELTA_CONF | {SPARKS_LIMIT: "false", "spark.sql.shuffle.partitions": "4"}
        with open_session("changes", master="local[2]", jars=jars, scratch=Path(scratch), conf=conf) as spark:
            for keyed in (True, False):
                found = compare(asked, spark, keyed=keyed)
                for name, cost in found.items():
                    if name != "ours":
                        times, cpu = cost.seconds / found["ours"].seconds, cost.cpu / max(found["ours"].cpu, CPU_STEP)
                        told = "" if "feed" in name else f" (aim: {AIM})"
                        print(f"{name} takes {times:,.0f} times ours, CPU {cpu:,.0f} times{told}")
    if asked.long:
        compare_long(asked)


if __name__ == "__main__":
    main()
