"""A home of its own on the test broker: catalog, warehouse and connection, with apps in this process or detached."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.compute.launchers.process import ProcessLauncher
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.compute.masters import backfill_master
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.reader import KafkaReader
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, TickRow
from airflow_provider_mzshare.control.catalog.jobs import Job
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, find_source, find_table
from airflow_provider_mzshare.control.catalog.queries import reads
from airflow_provider_mzshare.control.upstreams import connect
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, new_job_id
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, SourceSettings, Start, TableSpec
from airflow_provider_mzshare.core.ticklog import backfill_rules as rules
from airflow_provider_mzshare.core.ticklog.state import TableState
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.apps.backfill import Backfill
from airflow_provider_mzshare.storage.apps.base import App, End
from airflow_provider_mzshare.storage.apps.ingestion import Ingestion
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.change_streams import Streams
from tests.support.delta import read_arrow
from tests.support.model import Expected, difference, expected, records, within
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKED_ROWS = 20_000
FAST = SourceSettings(trigger_interval_ms=200, idle_tick_seconds=0.5, driver_reads=False)
BOTH_WAYS = pytest.mark.parametrize("driver_reads", [False, True], ids=["spark", "driver"])
"""Of tests in which it matters who reads."""


@dataclass(frozen=True)
class Table:
    """A table as a test asks for it, for us and for the model alike."""

    name: str
    columns: tuple[tuple[str, str], ...] = ()
    format: str = "json"
    include: tuple[str, ...] = ()
    on_decode_error: str = "record"

    def spec(self, topic: str) -> TableSpec:
        return TableSpec(
            reference=topic,
            format=self.format,  # type: ignore[arg-type]
            columns=tuple(ColumnSpec(name=n, type=t) for n, t in self.columns),
            include=tuple(Include(what=w, name=f"k_{w}") for w in self.include),  # type: ignore[arg-type]
            on_decode_error=self.on_decode_error,  # type: ignore[arg-type]
        )

    def model(self, upstream: Sequence[Any]) -> Expected:
        return expected(upstream, format=self.format, columns=self.columns, include=self.include)


class RunningApp:
    """An app in a thread of this process, with the real Spark, broker, catalog and warehouse."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.end: End | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.end = self.app.run()
        except Exception as error:
            self.end = End("failed", repr(error))
        finally:
            self.app.upstream.close()
            self.app.indexing.close()

    def stop(self, timeout: float = 60) -> End:
        self.app.stop.set()
        return self.join(timeout)

    def join(self, timeout: float = 60) -> End:
        self._thread.join(timeout)
        assert self.end is not None, f"the app did not end within {timeout} s"
        return self.end


@dataclass
class Stack:
    folder: Path
    kafka: EmbeddedKafka
    catalog: Catalog
    spark: SparkSession | None = None
    connection: Mapping[str, Any] = field(default_factory=dict)
    launcher: ProcessLauncher = field(default_factory=ProcessLauncher)
    lease_seconds: float = 2.0
    heartbeat_seconds: float = 0.5
    warehouse_name: str = "warehouse"
    driver_reads: bool = False
    """Whether sources may be read without Spark, unless a test gives settings of its own: most tests are small, and
    would never see Spark read."""

    def __post_init__(self) -> None:
        self.catalog.upgrade()
        self.warehouse.mkdir(parents=True, exist_ok=True)
        self.connection = self.connection or {
            "conn_type": "kafka",
            "extra": {"bootstrap.servers": self.kafka.bootstrap},
        }

    @property
    def warehouse(self) -> Path:
        return self.folder / self.warehouse_name

    @property
    def env(self) -> dict[str, str]:
        """For the command line."""
        return {
            "MZSHARE_HOME": str(self.folder),
            "MZSHARE_CATALOG": self.catalog.url,
            "MZSHARE_WAREHOUSE": str(self.warehouse),
            "AIRFLOW_CONN_KAFKA_TEST": json.dumps(self.connection),
            "MZSHARE_LEASE_SECONDS": str(self.lease_seconds),
            "MZSHARE_HEARTBEAT_SECONDS": str(self.heartbeat_seconds),
            "MZSHARE_MASTER": "local[2]",
        }

    @property
    def launchers(self) -> Launchers:
        """For those who watch apps by their jobs."""
        return Launchers(Settings.from_environment(self.env))

    @property
    def config(self) -> KafkaConfig:
        return KafkaConfig.from_connection(self._connection)

    @property
    def _connection(self) -> Connection:
        return Connection.from_dict({"name": "kafka_test", **self.connection})

    def upstream(self, topic: str) -> KafkaUpstream:
        return KafkaUpstream(self.config, topic)

    # ── definitions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def create(
        self,
        source: str,
        topic: str,
        tables: Sequence[Table],
        settings: SourceSettings | None = None,
        start: Start | None = None,
    ) -> ItemId:
        spec = KafkaSourceSpec(connection="kafka_test", topic=topic, start=start or Start())
        with self.upstream(topic) as upstream:
            found = upstream.inspect(spec.start)
        with self.catalog.write() as session:
            source_id = items.create_source(
                session,
                name=("public", source),
                spec=spec,
                settings=settings or FAST.model_copy(update={"driver_reads": self.driver_reads}),
                incarnation=found.info.incarnation,
                start=found.start,
            )
            for table in tables:
                items.create_table(session, name=("public", table.name), source_id=source_id, spec=table.spec(topic))
        return source_id

    def add(self, source_id: ItemId, tables: Sequence[Table], *, snapshot: bool = True) -> None:
        """In one transaction, to a source that may be running."""
        topic = self.topic(source_id)
        with self.catalog.write() as session:
            for table in tables:
                items.create_table(
                    session,
                    name=("public", table.name),
                    source_id=source_id,
                    spec=table.spec(topic),
                    snapshot=snapshot,
                )

    def topic(self, source_id: ItemId) -> str:
        return self._source(source_id).spec.topic

    def _source(self, source_id: ItemId) -> items.SourceItem:
        with self.catalog.read() as session:
            return items.get_source_item(session, source_id)

    def store(self, source_id: ItemId) -> CatalogTickStore:
        return CatalogTickStore(self.catalog, source_id)

    def table(self, name: str) -> TableItem:
        with self.catalog.read() as session:
            return find_table(session, ("public", name))

    def source_id(self, name: str) -> ItemId:
        with self.catalog.read() as session:
            return find_source(session, ("public", name)).id

    # ── arrivals ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def arrival(self, name: str) -> TableState | None:
        """The table, or its new generation, while a backfill brings it up."""
        table = self.table(name)
        return rules.arriving(self.store(table.source_id).load()).get(table.id)

    def backfill_id(self, name: str) -> BackfillId:
        arrival = self.arrival(name)
        assert arrival is not None, f"{name} is not brought up by anybody"
        assert arrival.backfill_id is not None
        return arrival.backfill_id

    def arm(self, name: str, timeout: float = 60) -> None:
        """Wait until the table can converge, and let it."""

        def armed() -> bool:
            with self.catalog.write() as session:
                arrivals.arm_table(session, self.table(name).id)
            arrival = self.arrival(name)
            return arrival is None or arrival.status == "converging"

        wait_until(armed, timeout, f"{name} to converge")

    def wait_cut_over(self, names: Sequence[str], timeout: float = 60) -> None:
        for name in names:
            self.arm(name, timeout)
        wait_until(lambda: all(not self.arrival(name) for name in names), timeout, f"the cutover of {', '.join(names)}")
        assert {name: self.table(name).status for name in names} == dict.fromkeys(names, "live")

    # ── apps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, source_id: ItemId, **changes: Any) -> RunningApp:
        """In this process."""
        backfills = partial(CatalogBackfillStore, self.catalog, source_id)
        given = self._parts(source_id) | {"store": self.store(source_id), "backfills": backfills}
        return RunningApp(Ingestion(**{**given, **changes}))

    def start_backfill(self, name: str, **changes: Any) -> RunningApp:
        """The backfill that brings a table up, in this process."""
        source_id, backfill_id = self.table(name).source_id, self.backfill_id(name)
        store = CatalogBackfillStore(self.catalog, source_id, backfill_id)
        given = self._parts(source_id) | {"store": store, "backfill_id": backfill_id}
        return RunningApp(Backfill(**{**given, **changes}))

    def _parts(self, source_id: ItemId) -> dict[str, Any]:
        assert self.spark is not None
        topic = self.topic(source_id)
        job_id = new_job_id("test")
        folder = self.folder / "jobs" / job_id
        folder.mkdir(parents=True)
        return {
            "spark": self.spark,
            "connector": connect(self._connection, self._source(source_id).spec),
            "upstream": self.upstream(topic),
            "reader": KafkaReader(self.spark, self.config, topic),
            "source_id": source_id,
            "job_id": job_id,
            "root": str(self.warehouse),
            "folder": folder,
            "indexing": Indexing(str(self.warehouse), KeyStates(folder / "keys")),
            "lease_seconds": self.lease_seconds,
            "heartbeat_seconds": self.heartbeat_seconds,
            "stop": threading.Event(),
        }

    @contextmanager
    def running(self, source_id: ItemId, **changes: Any) -> Iterator[RunningApp]:
        app = self.start(source_id, **changes)
        try:
            yield app
        finally:
            app.stop()

    def launch(
        self,
        source_id: ItemId,
        *,
        master: str = "local[2]",
        spark_conf: Mapping[str, str] | None = None,
        key_index_mb: int | None = None,
    ) -> Handle:
        """Detached, as a user would."""
        return self._launch("ingest", source_id, None, master, spark_conf or {}, key_index_mb)

    def launch_backfill(self, name: str, *, master: str = "local[2]") -> Handle:
        """The backfill that brings a table up, detached and at low priority."""
        return self._launch("backfill", self.table(name).source_id, self.backfill_id(name), backfill_master(master), {})

    def _launch(
        self,
        kind: Any,
        source_id: ItemId,
        backfill_id: BackfillId | None,
        master: str,
        spark_conf: Mapping[str, str],
        key_index_mb: int | None = None,
    ) -> Handle:
        job_id = new_job_id(kind)
        folder = self.folder / "jobs" / job_id
        with self.catalog.write() as session:
            jobs.create_job(
                session,
                kind=kind,
                source_id=source_id,
                backfill_id=backfill_id,
                launcher="process",
                folder=str(folder),
                master=master,
                job_id=job_id,
            )
        return self.launcher.start(
            AppJob(
                kind=kind,
                job_id=job_id,
                source_id=source_id,
                source_name="test",
                backfill_id=backfill_id,
                catalog_url=self.catalog.url,
                warehouse=str(self.warehouse),
                master=master,
                connection={"name": "kafka_test", **self.connection},
                folder=folder,
                lease_seconds=self.lease_seconds,
                heartbeat_seconds=self.heartbeat_seconds,
                spark_conf=dict(spark_conf),
                key_index_mb=key_index_mb,
                jars=[str(jar) for jar in jars.spark_jars(jars.default_folder())],
            )
        )

    def job(self, job_id: str) -> Job:
        with self.catalog.read() as session:
            return jobs.get_job(session, JobId(job_id))

    def log(self, handle: Handle, lines: int = 40) -> str:
        return "\n".join(self.launcher.logs(handle, tail=lines))

    # ── waiting and comparing ─────────────────────────────────────────────────────────────────────────────────────────

    def wait_caught_up(self, source_id: ItemId, names: Sequence[str], timeout: float = 90) -> None:
        """Until the tables stand at what the topic has now, with nothing pending."""
        with self.upstream(self.topic(source_id)) as upstream:
            end = upstream.end_offsets()

        def there() -> bool:
            return all(self.table(name).position >= end for name in names) and not self.store(source_id).load().pending

        wait_until(there, timeout, f"{', '.join(names)} at {end}")

    def rows(self, name: str, *, tick: int | None = None) -> Counter[tuple[Any, ...]]:
        return self._rows(name, "data", tick)

    def error_places(self, name: str) -> Counter[tuple[int, int]]:
        return Counter({row[-2:]: count for row, count in self._rows(name, "errors", None).items()})

    def _rows(self, name: str, role: str, tick: int | None) -> Counter[tuple[Any, ...]]:
        """Values, then partition and offset."""
        with self.catalog.read() as session:
            point = reads.table_read_point(session, find_table(session, ("public", name)).id, tick=tick)
        table = self._read(point, role).drop_columns(["_mz_tick"])
        return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _read(self, point: reads.ReadPoint, role: str) -> Any:
        path, version = (
            (point.data_path, point.data_version) if role == "data" else (point.errors_path, point.errors_version)
        )
        return read_arrow(str(self.warehouse), path, version, with_system_columns=True)

    def tick_of_each(self, name: str) -> dict[tuple[int, int], int]:
        """Partition and offset of every row, in data or errors, to the tick that it says it belongs to."""
        with self.catalog.read() as session:
            point = reads.table_read_point(session, find_table(session, ("public", name)).id)
        found: dict[tuple[int, int], int] = {}
        for role in ("data", "errors"):
            table = self._read(point, role).select(["_mz_partition", "_mz_offset", "_mz_tick"])
            for partition, offset, tick in zip(*(column.to_pylist() for column in table.columns), strict=True):
                assert (partition, offset) not in found, f"{name}: {partition}/{offset} twice"
                found[partition, offset] = tick
        return found

    def check(self, topic: str, tables: Sequence[Table]) -> None:
        """Every table equals the model of the topic, up to where the table says it is."""
        upstream = records(self.kafka, topic)
        for table in tables:
            wanted = table.model(within(upstream, self.table(table.name).position.offsets))
            assert not (found := difference(self.rows(table.name), wanted.rows)), f"{table.name}: {found}"
            assert self.error_places(table.name) == Counter(wanted.errors), f"{table.name}: errors differ"
        self.check_changes(tables[-1].name)

    def check_changes(self, name: str) -> None:
        """A table's changes add up to its rows, from the oldest time that can be read. Many tests end with this, so it
        is left out for large tables."""
        table = self.table(name)
        if table.upper and table.rows <= CHECKED_ROWS:
            Streams(self.catalog, str(self.warehouse), table.display, probes=0).check()

    def tick_stats(self, source_id: ItemId) -> list[dict[str, float]]:
        query = select(TickRow.stats).where(TickRow.source_id == source_id).order_by(TickRow.number)
        with self.catalog.read() as session:
            return [json.loads(stats) for stats in session.scalars(query) if stats]

    def collections(self, session: Session, name: str) -> dict[str, str]:
        """Role to path, below the warehouse."""
        table = find_table(session, ("public", name))
        query = select(CollectionRow.role, CollectionRow.path).where(CollectionRow.table_id == table.id)
        return {row.role: row.path for row in session.execute(query)}

    # ── the catalog's file ────────────────────────────────────────────────────────────────────────────────────────────

    def sqlite(self, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / "catalog.db", timeout=30)) as connection:
            connection.execute(statement)

    def sqlite_restore(self, copy: Path) -> None:
        with (
            closing(sqlite3.connect(copy)) as old,
            closing(sqlite3.connect(self.folder / "catalog.db", timeout=30)) as now,
        ):
            old.backup(now)
