"""A database that is recorded without Spark, and what its journal tells: each transaction whole, once, in order.

Every transaction of the writer moves money between accounts of two tables, and notes itself; so the sums are the same
wherever only whole transactions were read.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres.batches import changes
from airflow_provider_mzshare.connectors.postgres.connector import PostgresConnector
from airflow_provider_mzshare.connectors.postgres.datasource import next_boundary
from airflow_provider_mzshare.connectors.postgres.place import LANE
from airflow_provider_mzshare.connectors.postgres.ranges import Boundaries, Ranges, boundary_of
from airflow_provider_mzshare.connectors.postgres.specs import PostgresSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.core.ids import new_job_id
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.process import LOOPBACK
from airflow_provider_mzshare.journal.parts import Part, within
from airflow_provider_mzshare.storage.journal.recorder import Recorded, Recorder
from tests.support.postgres import OWNER
from tests.support.upstream_postgres import PUBLICATION, Database

TABLES = ("left_side", "right_side")
ACCOUNTS, EACH = 20, 100
SPEC = PostgresSpec(connection="shop", publication=PUBLICATION)

Row = dict[str, Any]


@dataclass
class Log(Recorded):
    """What the log of the source would say."""

    file: Path

    def check(self) -> None:
        """Whoever asks is the only app."""

    def committed(self) -> int:
        return int(self.file.read_text()) if self.file.exists() else 0


@dataclass
class Recording:
    """:param where: port and name of the database. :param incarnation: of the source; made at first."""

    catalog: Catalog
    folder: Path
    where: tuple[int, str]
    incarnation: str = ""
    states: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in TABLES})
    """What the tables hold by what was read so far."""
    at: int = 0

    @property
    def root(self) -> str:
        return str(self.folder / "warehouse")

    @property
    def log(self) -> Log:
        return Log(self.folder / "committed")

    def connector(self) -> PostgresConnector:
        port, name = self.where
        connection = Connection("shop", "postgres", host=LOOPBACK, port=port, login=OWNER, schema=name)
        return PostgresConnector(SPEC, connection, self.incarnation or None, journals_of(self.catalog, self.root))

    @property
    def journal(self) -> JournalStore:
        return self.connector().journal

    @property
    def boundary(self) -> int:
        return boundary_of(self.journal) or 0

    def begin(self) -> None:
        Path(self.root).mkdir(parents=True)
        with self.connector().upstream() as upstream:
            self.incarnation = upstream.describe().incarnation

    def recorder(self) -> Recorder:
        connector = self.connector()
        job = new_job_id("ingest")
        return Recorder(connector.journal, self.root, job, connector.feed, self.log, heartbeat_seconds=1.0)

    def process(self, crash: str = "") -> subprocess.Popen[bytes]:
        """A recorder in a process of its own, which is killed where ``crash`` says."""
        port, name = self.where
        words = [self.catalog.url, str(self.folder), str(port), name, self.incarnation]
        env = {**os.environ, "MZSHARE_CRASH": crash}
        command = [sys.executable, "-m", "tests.support.recording", *words]
        with (self.folder / "recorder.log").open("ab") as log:
            return subprocess.Popen(command, env=env, start_new_session=True, stdout=log, stderr=log)

    def read_on(self, upper: int | None = None) -> int:
        """Read up to a boundary, as a tick would, and return how many changes there were."""
        upper = upper or self.boundary
        before = self.at
        count = self._take(self.connector().records().read(LANE, before, upper))
        self.at = upper
        self.log.file.write_text(str(upper))
        return count

    def stream_on(self, max_records: int) -> Iterator[int]:
        """Read on as a stream of Spark does, batch after batch; yield how many changes each had."""
        journal = self.journal
        look = Boundaries(journal, Ranges(journal, self.root), max_records)
        while True:
            told: Any = look(Position({LANE: self.at}))
            marks, parts = dict(told["marks"]), [Part.from_plain(each) for each in told["parts"]]
            upper = next_boundary(self.at, marks, max_records)
            if upper == self.at:
                return
            count = self._take(changes(within(parts, {0: marks[self.at]}, {0: marks[upper]})))
            self.at = upper
            yield count

    def _take(self, batches: Iterable[pa.RecordBatch]) -> int:
        count = 0
        for batch in batches:
            count += batch.num_rows
            for change in batch.to_pylist():
                self._apply(change)
        return count

    def _apply(self, change: Row) -> None:
        row = change["row"]
        names = set(row["after"] or row["before"])
        if "note" in names:
            return
        table = self.states[TABLES["other" in names]]
        old, new = row["before"], row["after"]
        if row["op"] == "d" or (old and new and old["id"] not in (None, new["id"])):
            del table[old["id"].decode()]
        if new:
            table[new["id"].decode()] = int(new["amount"])

    def total(self) -> int:
        return sum(sum(table.values()) for table in self.states.values())


def make_tables(upstream: Database) -> None:
    upstream.run(
        "CREATE TABLE left_side (id int PRIMARY KEY, amount int)",
        "CREATE TABLE right_side (id int PRIMARY KEY, amount int, other text)",
        "CREATE TABLE notes (note bigserial PRIMARY KEY, about text)",
    )
    upstream.publish()


def fill(upstream: Database) -> None:
    upstream.transaction(
        *(f"INSERT INTO {name} (id, amount) SELECT i, {EACH} FROM generate_series(1, {ACCOUNTS}) i" for name in TABLES)
    )


def move(upstream: Database, chance: random.Random) -> None:
    """One transaction: money moves, sometimes of many accounts, sometimes to a new account."""
    first, second = chance.sample(TABLES, 2)
    one, other = chance.randint(1, ACCOUNTS), chance.randint(1, ACCOUNTS)
    many = chance.random() < 0.1
    which = "true" if many else f"id = {one}"
    length = chance.randint(0, 400)
    whom = "true" if many else f"id = {other}"
    upstream.transaction(
        f"UPDATE {first} SET amount = amount - 1 WHERE {which}",
        f"INSERT INTO notes (about) SELECT repeat('x', {length}) FROM generate_series(1, {chance.choice((1, 1, 90))})",
        f"UPDATE {second} SET amount = amount + 1 WHERE {whom}",
    )


@contextmanager
def moving(upstream: Database, seed: int) -> Iterator[None]:
    """Somebody moves money until the block ends."""
    stop, chance = threading.Event(), random.Random(seed)

    def run() -> None:
        while not stop.wait(chance.random() * 0.05):
            move(upstream, chance)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Only this one, and what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(url: str, folder: str, port: str, name: str, incarnation: str) -> None:
    with Catalog(url) as catalog, Recording(catalog, Path(folder), (int(port), name), incarnation).recorder() as one:
        while True:
            threading.Event().wait(0.1)
            one.check()


if __name__ == "__main__":
    main(*sys.argv[1:])
