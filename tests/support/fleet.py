"""Old-style sources of all shapes, with their apps in threads of this process, and what is to be seen of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, CommitRow
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.upstreams import connect, connection_of
from airflow_provider_mzshare.core.ids import ItemId, new_job_id
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.apps.ingestion import Ingestion
from airflow_provider_mzshare.storage.crashpoints import VARIABLE
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.kafka import Record, create_topic, produce
from tests.support.stack import RunningApp
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]

ENDINGS = ["", "_source", " 🦊", ".b", '"q"', "$(x)", "--conf", "{{ x }}", "`y`", "_source_1", "'s"]
"""Of names, in turn."""


def statement(number: int, name: str, topics: Sequence[str], pace: str) -> str:
    """An old-style source; eight shapes, in turn. ``pace`` is its settings."""

    def kafka(columns: str, rest: str) -> str:
        topic = topics[number % len(topics)]
        return f"CREATE SOURCE {name}{columns} FROM KAFKA CONNECTION broker (TOPIC '{topic}') {rest}"

    auction = f"CREATE SOURCE {name} FROM LOAD GENERATOR AUCTION (SEED {number}, TICK INTERVAL '200ms') FOR"
    schema = name.partition(".")[0]
    shapes = (
        kafka(" (id bigint, w text)", "FORMAT JSON INCLUDE PARTITION, OFFSET AS o"),
        f"{auction} ALL TABLES",
        kafka("", "FORMAT TEXT INCLUDE KEY"),
        f"CREATE SOURCE {name} FROM LOAD GENERATOR COUNTER (TICK INTERVAL '100ms') ENVELOPE NONE",
        f'{auction} TABLES (bids AS {schema}."My Bids", auction.users AS {schema}.u) EXPOSE PROGRESS AS {schema}.far',
        kafka("", "FORMAT BYTES INCLUDE TIMESTAMP"),
        f"CREATE SOURCE {name} FROM LOAD GENERATOR KEY VALUE (PARTITIONS 2, TICK INTERVAL '100ms') ENVELOPE NONE",
        kafka("", "FORMAT JSON"),
    )
    options = ", TEXT COLUMNS (bids.amount), EXCLUDE COLUMNS (bids.bid_time)" if number % 8 == 4 else ""
    return f"{shapes[number % 8]} WITH ({pace}{options})"


@dataclass(frozen=True)
class Seen:
    """What somebody who reads by name sees of it at one tick."""

    rows: str
    count: int


@dataclass
class Fleet:
    folder: Path
    catalog: Catalog
    kafka: EmbeddedKafka
    spark: SparkSession
    topics: list[str] = field(default_factory=list)
    apps: dict[ItemId, RunningApp] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog.upgrade()
        self.connection = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": self.kafka.bootstrap}})
        self.connections = EnvConnections({"AIRFLOW_CONN_BROKER": self.connection})
        self.warehouse = str(self.folder / "warehouse")
        self.sql("ALTER SYSTEM SET force_source_table_syntax = false")

    def sql(self, text: str) -> None:
        execute_script(self.catalog, text, self.connections)

    def create(self, count: int, pace: str) -> None:
        """Each in a schema of its own, with a view on it, a view on that, and one on its progress."""
        self.topics = [create_topic(self.kafka, 1) for _ in range(4)]
        self.produce(0)
        for number in range(count):
            plain = f"s{number}{ENDINGS[number % len(ENDINGS)]}".replace('"', '""')
            name = f'n{number}."{plain}"'
            self.sql(statement(number, name, self.topics, pace))
            on = f'n{number}."My Bids"' if number % 8 == 4 else f"n{number}.bids" if number % 8 == 1 else name
            progress = f"n{number}.far" if number % 8 == 4 else f'n{number}."{plain}_progress"'
            self.sql(
                f"CREATE VIEW n{number}.v AS SELECT count(*) AS c FROM {on} AS x;"
                f"CREATE VIEW n{number}.vv AS SELECT c FROM n{number}.v WHERE c > 0;"
                f"CREATE VIEW n{number}.p AS SELECT p.tick FROM {progress} AS p"
            )

    def produce(self, first: int, count: int = 50) -> None:
        """One in ten is no JSON."""
        for topic in self.topics:
            numbers = range(first, first + count)
            bodies = (json.dumps({"id": n, "w": f"w{n}"}).encode() if n % 10 else b"{" for n in numbers)
            produce(self.kafka, topic, [Record(body, key=b"k") for body in bodies])

    # ── apps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, *, lease_seconds: float, heartbeat_seconds: float) -> None:
        with self.catalog.read() as session:
            sources = items.list_sources(session)
        for source in sources:
            job_id = new_job_id("test")
            folder = self.folder / "jobs" / job_id
            folder.mkdir(parents=True)
            connector = connect(connection_of(self.connections, source.spec), source.spec, source.incarnation)
            app = Ingestion(
                spark=self.spark,
                connector=connector,
                upstream=connector.upstream(),
                reader=connector.reader(self.spark),
                source_id=source.id,
                job_id=job_id,
                root=self.warehouse,
                folder=folder,
                indexing=Indexing(self.warehouse, KeyStates(folder / "keys")),
                lease_seconds=lease_seconds,
                heartbeat_seconds=heartbeat_seconds,
                stop=threading.Event(),
                store=CatalogTickStore(self.catalog, source.id),
                backfills=partial(CatalogBackfillStore, self.catalog, source.id),
            )
            self.apps[source.id] = RunningApp(app)

    def wait_ticks(self, more: int, timeout: float) -> None:
        """Until every table has so many ticks more than now, the last of them committed."""
        with self.catalog.read() as session:
            wanted = {table.id: table.next_tick + more for table in items.list_tables(session)}

        def there() -> bool:
            ended = {source: app.end for source, app in self.apps.items() if app.end is not None}
            assert not ended, ended
            with self.catalog.read() as session:
                return all(t.next_tick >= wanted[t.id] and t.rows for t in items.list_tables(session))

        wait_until(there, timeout, "ticks of all", every=0.5)

    def stop(self) -> None:
        for app in self.apps.values():
            app.app.stop.set()
        for app in self.apps.values():
            assert app.join(300).state == "stopped"

    # ── migrations ────────────────────────────────────────────────────────────────────────────────────────────────────

    def migrate(self, *argv: str, crash: str | None = None) -> dict[str, Any]:
        """The command, as a process of its own; with ``crash`` it is killed there."""
        env = {**os.environ, "MZSHARE_HOME": str(self.folder), "MZSHARE_CATALOG": self.catalog.url}
        command = [sys.executable, "-m", "airflow_provider_mzshare.cli.main", "migrate", "--all", "--apply"]
        ran = subprocess.run(
            [*command, *argv, "--output", "json"],
            env={**env, VARIABLE: crash} if crash else env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            start_new_session=True,
        )
        assert ran.returncode == (-9 if crash else 0), f"{crash}: {ran.returncode} {ran.stderr[-2000:]}"
        return {} if crash else json.loads(ran.stdout)

    # ── what is seen ──────────────────────────────────────────────────────────────────────────────────────────────────

    def ticks(self) -> dict[str, tuple[ItemId, int]]:
        """By the name that people read: which table it is, and the newest tick that it has."""
        with self.catalog.read() as session:
            tables = items.list_tables(session)
        return {str(QualifiedName(*table.name)): (table.id, table.next_tick - 1) for table in tables}

    def seen(self, at: dict[str, tuple[ItemId, int]]) -> dict[str, Seen]:
        """The rows that each name has at its tick, with their place: a digest that no order changes."""
        query = Query(with_system_columns=True)
        found = {}
        for name, (_, tick) in at.items():
            table = read_table(self.catalog, self.warehouse, name, query, tick=tick)
            rows = sorted(repr(row) for row in table.to_pylist())
            found[name] = Seen(hashlib.sha256("\n".join(rows).encode()).hexdigest(), len(rows))
        return found

    def commits(self) -> dict[tuple[str, int], tuple[int, int, str]]:
        """Of every collection: tick time to version, rows and hash."""
        with self.catalog.read() as session:
            rows = session.scalars(select(CommitRow))
            return {(row.collection_id, row.mz_timestamp): (row.version, row.rows, row.hash) for row in rows}

    def collections(self) -> set[tuple[str, str, str]]:
        with self.catalog.read() as session:
            return {(row.id, row.table_id, row.path) for row in session.scalars(select(CollectionRow))}

    def leases(self) -> dict[ItemId, tuple[int, str | None]]:
        with self.catalog.read() as session:
            return {source.id: (source.lease.epoch, source.lease.job_id) for source in items.list_sources(session)}

    def check_complete(self) -> None:
        """Every record up to where a table stands is a row or an error of it, once."""
        with self.catalog.read() as session:
            tables = items.list_tables(session)
            sources = {source.id: source for source in items.list_sources(session)}
        for table in tables:
            name = str(QualifiedName(*table.name))
            places = [
                (row["_mz_partition"], row["_mz_offset"])
                for errors in (False, True)
                for row in read_table(
                    self.catalog, self.warehouse, name, Query(errors=errors, with_system_columns=True)
                ).to_pylist()
            ]
            of = getattr(table.spec.details, "partitions", ()) or tuple(map(int, table.position.offsets))
            start = sources[table.source_id].start
            due = [(p, o) for p in of for o in range(start[p], table.position[p])]
            assert sorted(places) == sorted(due), f"{name}: {len(places)} of {len(due)}"
