"""A source whose tables go through everything that can happen to them, in any order: the apps' own steps, no Spark.

``plain`` gets all records as rows; of ``keyed`` and ``merged`` records change rows, by deletion vectors and by merges.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from sqlalchemy import update

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import JobRow, TableRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, resume_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Left, Outcome
from airflow_provider_mzshare.errors import GroupTooShort, NotReadable
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.catalog import new_sqlite
from tests.support.driven import DrivenBackfill, DrivenIngestion, execute
from tests.support.held_table import tidy
from tests.support.keyed_cases import PLAIN
from tests.support.keyed_oracle import Case, Record, Tick

NAMES = ("plain", "keyed", "merged")
KEYS = [b"a", b"b", b"c", b"d", b"e"]
VALUES = [b'{"n": 1}', b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}', b'{"n": 2, "name": null}', b"{", None]
PLAIN_SPEC = TableSpec(reference="topic", format="json", columns=PLAIN.spec.columns)
OFTEN = {"tick": 6, "heal": 5, "stall": 2, "compact": 2, "resnapshot": 2, "maintain": 2}
EVENTS = (*Counter(OFTEN).elements(), "idle", "crash", "forget")


class RandomHistory:
    """:param columns_change: now and then a table gets another column.
    :param warehouse: an object store; None: a folder.
    """

    def __init__(self, folder: Path, seed: int, *, columns_change: bool = False, warehouse: str | None = None) -> None:
        self.dice, self.root, self.scratch = random.Random(seed), warehouse or str(folder / "warehouse"), folder
        if warehouse is None:
            Path(self.root).mkdir()
        self.catalog = Catalog(new_sqlite(folder / "catalog.db"))
        self.catalog.ensure()
        with self.catalog.write() as session:
            self.source_id = items.create_source(
                session,
                name=("public", "s"),
                spec=KafkaSourceSpec(connection="broker", topic="topic"),
                incarnation="one",
                start=Position(),
            )
            for name in NAMES:
                spec = PLAIN_SPEC if name == "plain" else PLAIN.spec
                spec = spec.model_copy(update={"deletion_vectors": name == "keyed"} if name != "plain" else {})
                items.create_table(session, name=("public", name), source_id=self.source_id, spec=spec)
        self.sent: list[Record] = []
        self.done: Counter[str] = Counter()
        self._jobs, self._columns_change = 0, columns_change
        self._backfills: dict[str, _Arrival] = {}
        self._start()
        self.tick()

    def close(self) -> None:
        self.catalog.close()

    def run(self, steps: int) -> None:
        """At the end there has been one more tick, so that all that was armed has come in."""
        for _ in range(steps):
            event = self.dice.choice(EVENTS)
            getattr(self, event)()
            if self._columns_change and self.dice.random() < 0.1:
                self.change_columns()
        self.tick()

    def table(self, name: str) -> TableItem:
        with self.catalog.read() as session:
            return items.find_table(session, ("public", name))

    def records(self, lower: Position, upper: Position) -> list[pa.RecordBatch]:
        lanes = {int(lane): (lower[lane], upper[lane]) for lane in upper}
        return [Case(PLAIN, (Tick(1, lanes),), tuple(self.sent)).batch()]

    # ── ticks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        self._jobs += 1
        job = JobId(f"ingest-{self._jobs}")
        self.app = DrivenIngestion(self.catalog, self.root, self.source_id, self.records, job, scratch=self.scratch)

    def _upper(self) -> Position:
        """Where the topic ends, after some more records."""
        ends = Counter({record.partition: record.offset + 1 for record in self.sent})
        for _ in range(self.dice.choice((1, 2, 6, 12))):
            partition = self.dice.randrange(2)
            found = Record(partition, ends[partition], self.dice.choice(KEYS), self.dice.choice(VALUES))
            self.sent.append(found)
            ends[partition] += 1
        return Position({str(partition): end for partition, end in ends.items()})

    def tick(self) -> None:
        self.done["cutovers"] += sum(arrival.is_armed for arrival in self._backfills.values())
        self.app.tick(self._upper())
        self._land()

    def _land(self) -> None:
        """A tick was minted: what was armed is in, and its backfill has ended."""
        landed = [one.backfill_id for one in self._backfills.values() if one.is_armed]
        with self.catalog.write() as session:
            session.execute(update(JobRow).where(JobRow.backfill_id.in_(landed)).values(state="finished"))
        self._backfills = {name: one for name, one in self._backfills.items() if not one.is_armed}

    def idle(self) -> None:
        if not any(arrival.is_armed for arrival in self._backfills.values()):
            self.app.tick_without_records()

    def crash(self) -> None:
        """The app dies at a commit, before it is noted; the next one finishes the tick."""
        tick = self.app.mint(self._upper())
        self._land()
        members = list(self.app.store.members(tick.number))
        for member in self.dice.sample(members, self.dice.randint(0, len(members))):
            execute(self.app.commits, TickGroup((tick,)), member, self.records)
        self._start()
        assert self.app.finish_pending() == [tick.number]
        self.done["crashes"] += 1

    def stall(self) -> None:
        """A table leaves by a tick that it may have on the disk."""
        live = [name for name in NAMES if self.table(name).status == "live"]
        if not live or any(arrival.is_armed for arrival in self._backfills.values()):
            return
        leaves = self.table(self.dice.choice(live)).id
        tick, written = self.app.mint(self._upper()), self.dice.random() < 0.5
        outcomes: dict[ItemId, Outcome] = {}
        for member in self.app.store.members(tick.number):
            left = member.table_id == leaves
            if not left or written:
                outcomes[member.table_id] = execute(self.app.commits, TickGroup((tick,)), member, self.records)
            if left:
                outcomes[member.table_id] = Left("full")
        self.app.commit(tick, outcomes)
        self.done["stalls"] += 1

    # ── arrivals ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def heal(self) -> None:
        """A stalled table is resumed, or its backfill goes on; more ticks come meanwhile."""
        found = [name for name in NAMES if self.table(name).status == "stalled" and name not in self._backfills]
        if found:
            self._ask(self.dice.choice(found), resume_table, "heals")
        self._go_on()

    def resnapshot(self) -> None:
        found = [
            name for name in NAMES if name not in self._backfills and self.table(name).status in ("live", "stalled")
        ]
        if found:
            self._ask(self.dice.choice(found), resnapshot_table, "resnapshots")
        self._go_on()

    def _ask(self, name: str, how: Callable[..., object], what: str) -> None:
        with self.catalog.write() as session:
            how(session, self.table(name).id)
        self._backfills[name] = _Arrival(self, name, late=self.dice.random() < 0.3)
        self.done[what] += 1

    def _go_on(self) -> None:
        for arrival in self._backfills.values():
            arrival.step()

    # ── upkeep ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def compact(self) -> None:
        """Whose files are written anew where rows change, may get a tick before that is put."""
        name = self.dice.choice(NAMES)
        table = self.table(name)
        with self.catalog.read() as session:
            try:
                point = table_read_point(session, table.id)
            except NotReadable:
                return
        collection = Collection.open(self.root, point.data)
        if not collection.keys:
            self.done["compactions"] += compact(collection, min_files=2).done
            return
        written = self.app.states.rewrite(collection, min_files=2)
        if written is not None:
            if self.dice.random() < 0.5:
                self.tick()
            put = self.app.states.put_rewritten(Collection.open(self.root, point.data), written)
            self.done["compactions"] += put

    def maintain(self) -> None:
        """``since`` moves on, to a tick or between two, and what it has passed is removed at once."""
        for name in NAMES:
            table = self.table(name)
            moved = table.since + int((table.upper - 1 - table.since) * self.dice.choice((0, 0.2, 0.5)))
            with self.catalog.write() as session:
                if table.since:
                    session.execute(update(TableRow).where(TableRow.id == table.id).values(since=moved))
        for _ in range(2):
            self.done["files removed"] += sum(
                one.data_files for one in maintain(self.catalog, self.root, grace=timedelta())
            )
        self.done["generations removed"] += len(tidy(self.catalog, self.root))

    def forget(self) -> None:
        """The topic is compacted: what newer records of their keys have replaced is gone, whoever reads it again."""
        newest = {(record.partition, record.key): record.offset for record in self.sent}
        ends = {record.partition: record.offset for record in self.sent}
        self.sent = [
            record
            for record in self.sent
            if record.offset in (newest[record.partition, record.key], ends[record.partition])
        ]
        self.done["topic compactions"] += 1

    def change_columns(self) -> None:
        name = self.dice.choice(NAMES)
        table = self.table(name)
        more = ColumnSpec(name=f"more{len(table.spec.columns)}", type="text")
        with self.catalog.write() as session:
            spec = table.spec.model_copy(update={"columns": (*table.spec.columns, more)})
            items.set_table_spec(session, table.id, spec)
        self.done["columns added"] += 1


class _Arrival:
    """A backfill that goes on a group at a time, and dies now and then, with its commit on the disk or not."""

    def __init__(self, history: RandomHistory, name: str, *, late: bool) -> None:
        self._history, self._name, self._late = history, name, late
        self._runs = 0
        self.is_armed = False
        self._start()

    def _start(self) -> None:
        self._runs += 1
        history = self._history
        table, end = history.table(self._name), history.app.store.load().upper
        self._backfill = DrivenBackfill(
            history.catalog,
            history.root,
            table.id,
            history.source_id,
            history.records,
            run=self._runs,
            most=history.dice.choice((1, 2, 3, 100)),
            end=end if self._late and self._name != "plain" else None,
            scratch=history.scratch,
        )

    @property
    def backfill_id(self) -> BackfillId:
        return self._backfill.id

    def step(self) -> None:
        """One group, or the end."""
        if self.is_armed:
            return
        dice = self._history.dice
        group = self._backfill.next_group()
        if group is None:
            self._backfill.arm()
            self.is_armed = True
        elif dice.random() < 0.2:
            if dice.random() < 0.5:
                with suppress(GroupTooShort):
                    self._backfill.execute(group)
            self._start()
            self._history.done["backfills killed"] += 1
        else:
            try:
                self._backfill.follow(group, self._backfill.execute(group))
            except GroupTooShort:
                self._backfill.most = 100
                return
            self._history.done["groups"] += 1
