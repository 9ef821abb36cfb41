"""An upstream of each kind that tests can fill, shorten and make anew: what the suite of connectors needs of each."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from sqlalchemy import update

from airflow_provider_mzshare.connectors.base import Connector, Journals
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.registry import CONNECTORS, kind_of
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.journal_models import JournalPartitionRow
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.core.ids import JournalId, new_job_id, new_journal_id
from airflow_provider_mzshare.core.specs import SourceSpec
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.journal.cutting import stamped
from airflow_provider_mzshare.storage.journal.records import messages_of
from airflow_provider_mzshare.storage.journal.writer import JournalWriter, claim_partition
from tests.support.catalog import new_sqlite
from tests.support.kafka import Record, create_topic, delete_records, delete_topic, produce

PARTITIONS = 2
Servers = Callable[[str], Any]
"""A fixture by its name: only who needs a server starts it."""


class Rig(Protocol):
    """:param can_lose: whether its history can get lost at all."""

    can_lose: bool

    def spec(self) -> SourceSpec: ...

    def connection(self) -> Connection | None: ...

    def journals(self) -> Journals | None:
        """Where they are, for a kind that is read from one."""
        return None

    def fill(self, count: int) -> None:
        """At least so many records more in each partition."""
        ...

    def lose(self, count: int) -> None:
        """The first so many of partition 0."""
        ...

    def make_anew(self) -> None:
        """Another upstream of the same name. For some kinds a new incarnation is all there is of that."""
        ...

    def nowhere(self) -> tuple[SourceSpec, Connection | None] | None:
        """An upstream of this kind that does not answer; None where none has to be asked."""
        ...


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
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return self.spec(), Connection("bus", "kafka", extra={"bootstrap.servers": f"127.0.0.1:{port}"})


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
        def opened(journal: JournalId) -> CatalogJournal:
            # One that is made anew is looked at before it is filled.
            self._journal = journal
            return CatalogJournal(self._catalog, journal)

        return Journals(opened, str(self._folder))

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


RIGS: dict[str, Any] = {
    "journal": JournalRig,
    "kafka": KafkaRig,
    "load_generator": LoadGeneratorRig,
    "numbered_lines": NumberedLinesRig,
}


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    assert took < seconds, f"it took {took:.1f} s"
