"""By how much a cold index makes the other table of its source wait: after a restart, when it is lost, at a cutover.

A source of two tables, one of them keyed and large. Printed are the milliseconds from mint to commit of the ticks that
both tables have in common, or would have. The index is lost by a compaction of somebody else, which rewrites the whole
table. At the cutover the large table was stalled, and comes back by a backfill.
Run by hand: ``python -m tests.perf.bench_cold_index keys [python …]``; apps are run with each of these Pythons in turn.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import select, update

from airflow_provider_mzshare.compute.jars import default_folder
from airflow_provider_mzshare.compute.launchers.base import Handle
from airflow_provider_mzshare.control.catalog.database.models import MembershipRow, TableRow, TickRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.settings import Settings
from tests.support.kafka import Record, create_topic, produce
from tests.support.keyed_cases import PLAIN
from tests.support.keyed_stack import KeyedTable
from tests.support.rewriting_apart import rewrite_apart
from tests.support.stack import Stack, Table
from tests.support.waiting import wait_until

CHANGES, ROUNDS, LONG = 500, 12, 900.0
JARS = Settings.from_environment().jars or default_folder()
SETTINGS = SourceSettings(trigger_interval_ms=500, max_records_per_tick=500_000)


class Scene:
    def __init__(self, folder: Path, kafka: EmbeddedKafka, keys: int) -> None:
        self._kafka, self._keys, self._sent = kafka, keys, 0
        self.stack = Stack(folder, kafka, open_catalog(f"sqlite:///{folder / 'catalog.db'}"))
        self.topic = create_topic(kafka, 2)
        self.small, self.large = Table("small", (("n", "bigint"),)), KeyedTable("large", shape=PLAIN)
        self.source: ItemId = self.stack.create("shop", self.topic, [self.small, self.large], SETTINGS)

    def send(self, count: int) -> None:
        produce(self._kafka, self.topic, self._records(count), **{"queue.buffering.max.messages": 1_000_000})

    def _records(self, count: int) -> Iterator[Record]:
        for number in range(self._sent, self._sent + count):
            key = number * 2_654_435_761 % self._keys
            yield Record(
                b'{"n": %d, "name": "name of %d"}' % (number, number), key=b"key-%012d" % key, partition=key % 2
            )
        self._sent += count

    def durations(self, after: int) -> list[tuple[int, int, float]]:
        """Number, milliseconds from mint to commit, and those of the commits, of ticks with records."""
        query = select(TickRow).where(TickRow.source_id == self.source, TickRow.number > after, TickRow.committed)
        with self.stack.catalog.read() as session:
            rows = session.scalars(query.order_by(TickRow.number)).all()
            return [
                (row.number, row.committed_at - row.minted_at, json.loads(row.stats)["commit_ms"])
                for row in rows
                if row.stats and row.lower != row.upper
            ]

    def last(self) -> int:
        return self.stack.store(self.source).load().last_number

    def ticks(self, names: tuple[str, ...] = ("small", "large")) -> None:
        """Some, one after the other."""
        for _ in range(ROUNDS):
            self.send(CHANGES)
            self.stack.wait_caught_up(self.source, names, timeout=LONG)

    def lose(self) -> None:
        """Somebody else writes all of its rows to another file."""
        with self.stack.catalog.read() as session:
            path = self.stack.collections(session, "large")["data"]
        rewrite_apart(str(self.stack.warehouse), CollectionId(path), self.stack.folder / "apart")
        began, before = time.monotonic(), self.last()
        self.ticks(("small",))
        self.tell("lost", before)
        self.stack.wait_caught_up(self.source, ["large"], timeout=LONG)
        wait_until(lambda: self.stack.table("large").status == "live", LONG, "the large table to be live")
        print(f"the large table was a member again after {time.monotonic() - began:.1f} s", flush=True)

    def stall(self) -> None:
        """As if the large table could not be written."""
        table, last = self.stack.table("large").id, self.last()
        of_table = MembershipRow.table_id == table, MembershipRow.left_at.is_(None)
        with self.stack.catalog.write() as session:
            session.execute(update(TableRow).where(TableRow.id == table).values(status="stalled", reason="by hand"))
            session.execute(update(MembershipRow).where(*of_table).values(left_at=last + 1))
        self.ticks(("small",))

    def come_back(self) -> None:
        with self.stack.catalog.write() as session:
            arrivals.resume_table(session, self.stack.table("large").id)
        handle = self.stack.launch_backfill("large")
        try:
            while self.stack.arrival("large") is not None:
                self.send(CHANGES)
                self.stack.wait_caught_up(self.source, ["small"], timeout=LONG)
                with self.stack.catalog.write() as session:
                    arrivals.arm_table(session, self.stack.table("large").id)
            self.ticks()
        finally:
            self.stack.launcher.kill(handle)

    def tell(self, what: str, after: int) -> None:
        found = self.durations(after)
        worst = max(found, key=lambda tick: tick[1])
        usual, commits = (statistics.median(tick[n] for tick in found) for n in (1, 2))
        print(f"{what}, mint to commit: first tick {found[0][1]} ms (commits {found[0][2]}), usual {usual:.0f} ms "
              f"(commits {commits:.0f}), longest {worst[1]} ms (commits {worst[2]})", flush=True)  # fmt: skip

    def log(self, handle: Handle) -> None:
        for line in (Path(handle.folder) / "log").read_text(encoding="utf-8").splitlines():
            if re.search(r"the index |commit waited|has left until|holds |joined| streams ", line):
                print("   ", line[:140], flush=True)


def restart_and_cut_over(scene: Scene) -> None:
    before = scene.last()
    scene.send(CHANGES)
    handle = scene.stack.launch(scene.source)
    try:
        scene.stack.wait_caught_up(scene.source, ["small", "large"], timeout=LONG)
        scene.ticks()
        scene.tell("restart", before)
        scene.lose()
        scene.stall()
        before = scene.last()
        scene.come_back()
        scene.tell("cutover", before)
    finally:
        scene.stack.launcher.kill(handle)
        scene.log(handle)


def main(keys: int, pythons: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, EmbeddedKafka(Path(folder, "kafka"), jars=JARS) as kafka:
        scene = Scene(Path(folder, "home"), kafka, keys)
        scene.send(keys)
        began = time.monotonic()
        handle = scene.stack.launch(scene.source)
        try:
            scene.stack.wait_caught_up(scene.source, ["small", "large"], timeout=LONG)
            print(f"{keys:,} keys were read in {time.monotonic() - began:.0f} s", flush=True)
        finally:
            scene.stack.launcher.kill(handle)
        for python in [sys.executable, *pythons]:
            print(f"with {python}", flush=True)
            sys.executable = python
            restart_and_cut_over(scene)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
