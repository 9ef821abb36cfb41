"""Load generators with real apps: several outputs, a kill, a table that comes later, and Spark's own reads of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from sqlalchemy import select

from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.connectors.base import ReferenceInfo, Upstream
from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.connectors.load_generator.generators import records
from airflow_provider_mzshare.connectors.load_generator.plan import Range, read_incarnation
from airflow_provider_mzshare.connectors.load_generator.reader import LoadGeneratorReader
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.load_generator.upstream import LoadGeneratorUpstream, plan_of
from airflow_provider_mzshare.connectors.records import from_spark
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.verification import verify_table
from airflow_provider_mzshare.control.supervision.starter import Starter
from airflow_provider_mzshare.control.upstreams import connect, open_upstream
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings, Start, TableSpec
from airflow_provider_mzshare.settings import Settings
from tests.apps.test_cluster import bare_python, cluster  # noqa: F401  fixtures
from tests.support.generated import OUTPUTS, Model, table_of
from tests.support.stack import Stack
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUCTION = LoadGeneratorSpec(generator="auction", seed=11, tick_interval_ms=1, batch_size=3, up_to=3_000)
NO_CONNECTIONS = FixedConnections({})
MAX_RECORDS = 1_100


class GeneratorStack(Stack):
    """A home whose source needs no broker and no connection; apps are started as a user would start them."""

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        super().__init__(folder, kafka=None, catalog=catalog, connection={"conn_type": "none"})  # type: ignore[arg-type]
        self.launched: list[Handle] = []

    def topic(self, source_id: ItemId) -> str:
        return source_id

    def upstream(self, topic: str) -> Upstream:  # type: ignore[override]
        source = self.source(ItemId(topic))
        return connect(None, source.spec, source.incarnation).upstream()

    def source(self, source_id: ItemId) -> items.SourceItem:
        with self.catalog.read() as session:
            return items.get_source_item(session, source_id)

    def create_generator(self, spec: LoadGeneratorSpec, settings: SourceSettings) -> ItemId:
        with open_upstream(NO_CONNECTIONS, spec) as upstream, self.catalog.write() as session:
            found = upstream.inspect(Start())
            return items.create_source(
                session,
                name=("public", "house"),
                spec=spec,
                settings=settings,
                incarnation=found.info.incarnation,
                start=found.start,
            )

    def add_tables(self, source_id: ItemId, **specs: TableSpec) -> None:
        with self.catalog.write() as session:
            for name, spec in specs.items():
                items.create_table(session, name=("public", name), source_id=source_id, spec=spec)

    def references(self, source_id: ItemId) -> dict[str, ReferenceInfo]:
        return {each.name: each for each in self.upstream(source_id).references()}

    def run(self, source_id: ItemId, backfill_id: BackfillId | None = None, **env: str) -> Handle:
        settings = Settings.from_environment({**self.env, "MZSHARE_JARS": os.environ["MZSHARE_JARS"], **env})
        starter = Starter(self.catalog, settings, NO_CONNECTIONS, self.launchers)
        started = re.match(r"job (\S+), pid", starter.start(source_id, backfill_id))
        assert started, "the app was not started"
        job = self.job(started[1])
        handle = self.launcher.find(job.id, Path(job.folder))
        assert handle is not None
        self.launched.append(handle)
        return handle

    def kill(self, handle: Handle) -> None:
        """All of the app, at once; and what the reconciler notes of it."""
        assert self.launcher.kill(handle) > 0
        with self.catalog.write() as session:
            jobs.set_state(session, JobId(handle.job_id), "lost", expect=jobs.ACTIVE)

    def ticks(self, source_id: ItemId) -> list[int]:
        """How many records each tick has."""
        query = select(TickRow.lower, TickRow.upper).where(TickRow.source_id == source_id).order_by(TickRow.number)
        with self.catalog.read() as session:
            return [upper.gap(lower) for lower, upper in session.execute(query)]

    def full_ticks(self, source_id: ItemId) -> list[int]:
        """Numbers of those with records: while Spark gets ready, an app mints empty ones."""
        return [number for number, size in enumerate(self.ticks(source_id), start=1) if size]


@pytest.fixture
def stack(jars: Path, tmp_path: Path) -> Iterator[GeneratorStack]:
    made = GeneratorStack(tmp_path, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}"))
    try:
        yield made
    finally:
        for handle in made.launched:
            made.launcher.kill(handle)
        made.catalog.close()


def modelled(model: Model, spec: TableSpec, upto: int) -> Counter[tuple[Any, ...]]:
    partition = OUTPUTS.index(spec.reference)
    found: Counter[tuple[Any, ...]] = Counter()
    for offset in range(upto):
        row = model.row(partition, offset)
        raw = json.loads(model.value(partition, offset))
        cells = (str(raw[c.name]) if c.name in spec.text_columns else row[c.name] for c in spec.columns)
        found[(*cells, partition, offset)] += 1
    return found


def column(stack: Stack, name: str, index: int, tick: int) -> set[Any]:
    return {row[index] for row in stack.rows(name, tick=tick)}


def test_an_auction_house_is_exact_through_a_kill_and_for_a_table_that_comes_later(stack: GeneratorStack) -> None:
    fast = SourceSettings(trigger_interval_ms=200, idle_tick_seconds=0.5, max_records_per_tick=MAX_RECORDS)
    source = stack.create_generator(AUCTION, fast)
    offered = stack.references(source)
    specs = {
        "bids": table_of(offered["bids"]),
        "amounts": table_of(offered["bids"], without=("buyer", "auction_id"), as_text=("amount", "bid_time")),
        "users": table_of(offered["users"]),
        "auctions": table_of(offered["auctions"]),
    }
    stack.add_tables(source, **specs)
    first = stack.run(source)
    try:
        wait_until(lambda: len(stack.full_ticks(source)) >= 3, 90, "ticks with records")
        stack.kill(first)
        killed_at = len(stack.full_ticks(source))
        assert stack.table("bids").position["4"] < 3_000, "killed in the middle"

        second = stack.run(source)
        wait_until(lambda: len(stack.full_ticks(source)) > killed_at + 1, 90, "the next app")
        specs["late"] = table_of(offered["auctions"], without=("item",))
        stack.add_tables(source, late=specs["late"])
        backfill = stack.run(source, stack.backfill_id("late"))
        stack.wait_cut_over(["late"], timeout=120)
        wait_until(lambda: stack.launcher.status(backfill) == "gone", 60, "the backfill's end")
        stack.wait_caught_up(source, list(specs))
        stack.launcher.request_stop(second)
        wait_until(lambda: stack.launcher.status(second) == "gone", 60, "the app's end")
    except AssertionError as error:
        logs = "\n\n".join(path.read_text()[-6_000:] for path in stack.folder.glob("jobs/*/*/log"))
        raise AssertionError(f"{error}\n{logs}") from error

    begun = read_incarnation(stack.source(source).incarnation)
    assert begun is not None
    model = Model(AUCTION, begun[1])
    for name, spec in specs.items():
        assert stack.table(name).position == Position(dict.fromkeys(range(5), 3_000))
        assert stack.rows(name) == modelled(model, spec, 3_000), name
        assert not stack.error_places(name)
    sizes = stack.ticks(source)
    assert max(sizes) <= MAX_RECORDS
    assert sum(sizes) == 5 * 3_000
    assert {stats["spark_jobs"] for stats in stack.tick_stats(source) if "spark_jobs" in stats} == {1}
    check_references(stack, stack.full_ticks(source))
    check_verified(stack, list(specs))


def check_references(stack: GeneratorStack, ticks: list[int]) -> None:
    """At every tick, whatever it holds of each partition, nobody refers to what is not there yet."""
    for tick in ticks:
        assert column(stack, "bids", 1, tick) <= column(stack, "users", 0, tick), f"buyers at tick {tick}"
        assert column(stack, "auctions", 1, tick) <= column(stack, "users", 0, tick), f"sellers at tick {tick}"
        assert column(stack, "bids", 2, tick) <= column(stack, "auctions", 0, tick), f"auctions at tick {tick}"


def check_verified(stack: GeneratorStack, names: list[str]) -> None:
    for name in names:
        found = verify_table(stack.catalog, NO_CONNECTIONS, str(stack.warehouse), stack.table(name), everything=True)
        assert (found.verdict, found.rows, found.errors) == ("exact", 3_000, 0)
        assert len(found.partitions) == 1, "only the partition of its own output was read"
    env = {**os.environ, **stack.env}
    command = [str(Path(sys.executable).with_name("mzshare")), "verify", "late", "-o", "json"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["verdict"] == "exact"


def test_spark_reads_exactly_the_range_whatever_the_tasks(spark: SparkSession) -> None:
    spec = LoadGeneratorSpec(generator="key_value", keys=7, value_size=33, partitions=3)
    plan = plan_of(spec, LoadGeneratorUpstream(spec).describe().incarnation)
    reader = LoadGeneratorReader(spark, plan)
    lower, upper = Position({"0": 5, "2": 70}), Position({"0": 30_005, "1": 3, "2": 70})
    spans = (Range(0, 5, 30_005), Range(1, 0, 3))
    wanted = pa.Table.from_batches([batch for span in spans for batch in records(plan, span)])
    for tasks in (None, 3):
        frame = reader.bounded(lower, upper, tasks=tasks)
        assert frame is not None
        found = pa.Table.from_batches(from_spark(frame.toArrow().to_batches()))
        in_order = found.sort_by([("partition", "ascending"), ("offset", "ascending")])
        assert in_order.combine_chunks().equals(wanted.combine_chunks())
    assert reader.bounded(upper, upper) is None


@pytest.mark.full
def test_executors_that_have_nothing_of_ours_make_the_records(
    stack: GeneratorStack,
    cluster: str,  # noqa: F811
    bare_python: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a real cluster of two workers; more than one task's worth, so that both have something to do."""
    spec = LoadGeneratorSpec(generator="key_value", partitions=4, up_to=50_000, tick_interval_ms=1, batch_size=1_000)
    source = stack.create_generator(spec, SourceSettings(trigger_interval_ms=500, max_records_per_tick=150_000))
    stack.add_tables(source, pairs=table_of(stack.references(source)["key_value"]))
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare_python))
    conf = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}
    handle = stack.run(source, MZSHARE_MASTER=cluster, MZSHARE_SPARK_CONF=json.dumps(conf))
    try:
        wait_until(lambda: stack.table("pairs").position["3"] == 50_000, 200, "all records")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{stack.log(handle)}") from error
    stack.launcher.request_stop(handle)
    wait_until(lambda: stack.launcher.status(handle) == "gone", 60, "the driver's end")
    found = verify_table(stack.catalog, NO_CONNECTIONS, str(stack.warehouse), stack.table("pairs"), everything=True)
    assert (found.verdict, found.rows) == ("exact", 200_000)
