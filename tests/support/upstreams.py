"""An upstream of each kind that tests can fill, shorten and make anew: what the suite of connectors needs of each."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from sqlalchemy import update

from airflow_provider_mzshare.connectors.base import Connector, Journals, RecordedConnector
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.registry import CONNECTORS, kind_of
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.journal_models import JournalPartitionRow
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal, journals_of
from airflow_provider_mzshare.core.ids import JournalId, journal_of, new_job_id, new_journal_id
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSpec
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.embedded.process import LOOPBACK, free_ports
from airflow_provider_mzshare.storage.journal.cutting import stamped
from airflow_provider_mzshare.storage.journal.recorder import Recorder
from airflow_provider_mzshare.storage.journal.records import messages_of
from airflow_provider_mzshare.storage.journal.writer import JournalWriter, claim_partition
from tests.support.catalog import new_sqlite
from tests.support.kafka import Record, create_topic, delete_records, delete_topic, produce
from tests.support.postgres import Postgres
from tests.support.recording import Log
from tests.support.upstream_postgres import Database
from tests.support.waiting import wait_until

PARTITIONS = 2
TRANSACTION = 4
"""Rows that are made in one transaction."""
AT_ONCE = 48
"""Rows that are recorded together, with all their changes."""
RECORDER_BEAT = 1.0
Servers = Callable[[str], Any]
"""A fixture by its name: only who needs a server starts it."""


class Rig(Protocol):
    """:param can_lose: whether its history can get lost at all. :param gone: the reason that is given then."""

    can_lose: bool
    gone: str = "history_gone"

    def spec(self) -> SourceSpec: ...

    def connection(self) -> Connection | None: ...

    def journals(self) -> Journals | None:
        """Where they are, for a kind that is read from one."""
        return None

    def made(self, incarnation: str) -> None:
        """A source of it is made: told before it is filled."""

    def fill(self, count: int) -> None:
        """At least so many records more in each partition."""
        ...

    def reach(self, upper: Position) -> None:
        """Return when what is before can be read."""

    def lose(self, count: int) -> None:
        """The first so many of partition 0."""
        ...

    def make_anew(self) -> None:
        """Another upstream of the same name. For some kinds a new incarnation is all there is of that."""
        ...

    def nowhere(self) -> tuple[SourceSpec, Connection | None] | None:
        """An upstream of this kind that does not answer; None where none has to be asked."""
        ...

    def close(self) -> None:
        """It is not needed any more."""


def connect(rig: Rig, incarnation: str | None) -> Connector:
    spec = rig.spec()
    return kind_of(spec).connect(spec, rig.connection(), incarnation, rig.journals())


class KafkaRig(Rig):
    can_lose = True

    def __init__(self, server: Servers, folder: Path) -> None:
        self._kafka: EmbeddedKafka = server("kafka")
        self._topic = create_topic(self._kafka, PARTITIONS)
        self._made = 0

    def spec(self) -> SourceSpec:
        return CONNECTORS.get("kafka").spec(connection="bus", topic=self._topic)

    def connection(self) -> Connection:
        return Connection("bus", "kafka", extra={"bootstrap.servers": self._kafka.bootstrap})

    def fill(self, count: int) -> None:
        numbers = range(self._made, self._made + count)
        bodies = [json.dumps({"n": number}).encode() for number in numbers]
        produce(self._kafka, self._topic, [Record(b, partition=p, key=b"k") for b in bodies for p in range(PARTITIONS)])
        self._made += count

    def lose(self, count: int) -> None:
        delete_records(self._kafka, self._topic, {0: count})

    def make_anew(self) -> None:
        delete_topic(self._kafka, self._topic)
        create_topic(self._kafka, PARTITIONS, name=self._topic)

    def nowhere(self) -> tuple[SourceSpec, Connection]:
        return self.spec(), Connection("bus", "kafka", extra={"bootstrap.servers": f"{LOOPBACK}:{free_ports(1)[0]}"})


class LoadGeneratorRig(Rig):
    can_lose = False

    def __init__(self, server: Servers, folder: Path) -> None:
        """Its clock fills it, and nothing else."""

    def spec(self) -> SourceSpec:
        fields = {"generator": "key_value", "partitions": PARTITIONS, "tick_interval_ms": 1, "up_to": 900, "seed": 3}
        return CONNECTORS.get("load_generator").spec(**fields)

    def connection(self) -> None:
        return None

    def fill(self, count: int) -> None:
        time.sleep(count / 1_000)

    def lose(self, count: int) -> None:
        raise AssertionError("what a generator made can be made again")

    def make_anew(self) -> None:
        """Whoever opens it without an incarnation begins another clock."""

    def nowhere(self) -> None:
        return None


class NumberedLinesRig(Rig):
    can_lose = True

    def __init__(self, server: Servers, folder: Path) -> None:
        self.folder = folder / f"lines-{uuid4().hex[:6]}"
        self._made = 0
        self._make()

    def _make(self) -> None:
        self.folder.mkdir()
        (self.folder / "id").write_text(uuid4().hex)
        for partition in range(PARTITIONS):
            (self.folder / f"{partition}.lines").touch()

    def spec(self) -> SourceSpec:
        return CONNECTORS.get("numbered_lines").spec(folder=str(self.folder))

    def connection(self) -> None:
        return None

    def fill(self, count: int) -> None:
        numbers = range(self._made, self._made + count)
        for partition in range(PARTITIONS):
            # Numbers with holes: every seventh is no line.
            lines = [f'{n} {{"n": {n}, "p": {partition}}}\n' for n in numbers if n % 7 != 3]
            with (self.folder / f"{partition}.lines").open("a") as file:
                file.write("".join(lines))
        self._made += count

    def lose(self, count: int) -> None:
        path = self.folder / "0.lines"
        left = [line for line in path.read_text().splitlines(keepends=True) if int(line.partition(" ")[0]) >= count]
        path.write_text("".join(left))

    def make_anew(self) -> None:
        shutil.rmtree(self.folder)
        self._make()

    def nowhere(self) -> tuple[SourceSpec, None]:
        return CONNECTORS.get("numbered_lines").spec(folder=str(self.folder / "nowhere")), None


class JournalRig(Rig):
    can_lose = True

    def __init__(self, server: Servers, folder: Path) -> None:
        self._folder = folder / f"warehouse-{uuid4().hex[:6]}"
        self._folder.mkdir()
        self._catalog = Catalog(new_sqlite(folder / f"{self._folder.name}.db"))
        self._journal = new_journal_id()
        self._made = 0

    def spec(self) -> SourceSpec:
        return CONNECTORS.get("journal").spec(partitions=PARTITIONS)

    def connection(self) -> None:
        return None

    def journals(self) -> Journals:
        return journals_of(self._catalog, str(self._folder))

    def made(self, incarnation: str) -> None:
        self._journal = JournalId(incarnation)

    def fill(self, count: int) -> None:
        store = CatalogJournal(self._catalog, self._journal)
        numbers = range(self._made, self._made + count)
        records = [{"key": b"k", "value": json.dumps({"n": number}).encode()} for number in numbers]
        for partition in range(PARTITIONS):
            holder = claim_partition(store, str(self._folder), partition, new_job_id("push"))
            with JournalWriter(store, str(self._folder), partition, holder, heartbeat_seconds=5) as writer:
                for messages in messages_of(records):
                    writer.append(stamped(messages, time.time_ns() // 1_000)).result(30)
        self._made += count

    def lose(self, count: int) -> None:
        """As retention does it, by whole segments: each fill has one."""
        with self._catalog.write() as session:
            first = update(JournalPartitionRow).where(
                JournalPartitionRow.journal == self._journal, JournalPartitionRow.partition == 0
            )
            session.execute(first.values(begin=count))

    def make_anew(self) -> None:
        """Whoever opens it without an incarnation begins another journal."""

    def nowhere(self) -> None:
        return None


class PostgresRig(Rig):
    """Two tables, which are recorded from when a source is made until the rig is closed."""

    can_lose = True
    gone = "journal_gone"

    def __init__(self, server: Servers, folder: Path) -> None:
        self._server: Postgres = server("upstream_postgres")
        self._folder = folder / f"recorded-{uuid4().hex[:6]}"
        self._folder.mkdir()
        self._catalog = Catalog(new_sqlite(folder / f"{self._folder.name}.db"))
        self._database, self._incarnation, self._made = Database(self._server), "", 0
        self._recorder: Recorder | None = None
        self._make()

    def _make(self) -> None:
        self._database.run(
            "CREATE TABLE items (n int PRIMARY KEY, name text, price numeric(10,2))",
            "CREATE TABLE notes (id bigint PRIMARY KEY, n int, about text)",
        )
        self._database.publish()

    def spec(self) -> SourceSpec:
        return self._database.spec()

    def connection(self) -> Connection:
        return self._database.connection()

    def journals(self) -> Journals:
        return journals_of(self._catalog, str(self._folder))

    def made(self, incarnation: str) -> None:
        self._incarnation = incarnation
        self._record()
        wait_until(lambda: self._boundary > 0, 60, "the slot")

    def _record(self) -> None:
        """Anew, if it is recorded already."""
        self._end()
        connector = connect(self, self._incarnation)
        assert isinstance(connector, RecordedConnector)
        log, job = Log(self._folder / "committed"), new_job_id("ingest")
        self._recorder = Recorder(
            self._store, str(self._folder), job, connector.feed, log, heartbeat_seconds=RECORDER_BEAT
        )

    def _end(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder.check()
            self._recorder = None

    @property
    def _store(self) -> CatalogJournal:
        journal = journal_of(self._incarnation)
        assert journal is not None  # each source of a database has one
        return CatalogJournal(self._catalog, journal)

    @property
    def _boundary(self) -> int:
        segment = self._store.partition(0).load().segment
        return (segment.boundary if segment else None) or 0

    def fill(self, count: int) -> None:
        """In two segments: each recorder begins one."""
        half = self._made + count // 2
        self._change(self._made, half)
        self._record()
        self._made += count
        self._change(half, self._made)

    def _change(self, lower: int, upper: int) -> None:
        """Transactions of a few changes, in both tables: each row is made, changed or gets another key, or is gone.

        What comes at once is recorded as one group, which no batch divides: so it is waited for now and then.
        """
        for begin in range(lower, upper, TRANSACTION):
            end = min(begin + TRANSACTION, upper)
            few = f"n >= {begin} AND n < {end}"
            self._database.transaction(
                f"INSERT INTO items SELECT i, 'name ' || i, i / 7.0 FROM generate_series({begin}, {end - 1}) i",
                f"INSERT INTO notes SELECT n, n, repeat(name, 3) FROM items WHERE {few}",
                f"UPDATE items SET price = NULL WHERE {few} AND n % 5 = 1",
                f"UPDATE notes SET id = -id - 1 WHERE {few} AND n % 5 = 2",
                f"DELETE FROM items WHERE {few} AND n % 5 = 3",
            )
            if end == upper or (end - lower) % AT_ONCE == 0:
                with connect(self, self._incarnation).upstream() as upstream:
                    self.reach(upstream.end_offsets())

    def reach(self, upper: Position) -> None:
        (end,) = upper.offsets.values()

        def is_recorded() -> bool:
            assert self._recorder is not None
            self._recorder.check()
            return self._boundary >= end

        wait_until(is_recorded, 60, "the recorder")

    def lose(self, count: int) -> None:
        """As retention does it, by whole segments."""
        partition = self._store.partition(0)
        segments = self._store.segments(0, 0, partition.load().end)
        partition.trim(next(one.end for one in segments if one.end >= count))

    def make_anew(self) -> None:
        self._end()
        name = self._database.name
        self._database.drop()
        self._server.create_database(name=name)
        self._database = Database(self._server, name)
        self._make()

    def nowhere(self) -> tuple[SourceSpec, Connection]:
        return self.spec(), replace(self.connection(), port=free_ports(1)[0])

    def close(self) -> None:
        self._end()
        self._database.drop()
        self._catalog.close()


RIGS: dict[str, Any] = {
    "journal": JournalRig,
    "kafka": KafkaRig,
    "load_generator": LoadGeneratorRig,
    "numbered_lines": NumberedLinesRig,
    "postgres": PostgresRig,
}


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    assert took < seconds, f"it took {took:.1f} s"
