"""A broker that compacts, as badly as it may, and tables that read it late: what the rule about tombstones is tried on.

Time goes in steps of the broker's own. The broker cleans whenever chance says so: it removes what a later record of the
key has replaced, and tombstones whose time is over, which begins when they are cleaned for the first time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import tombstones
from airflow_provider_mzshare.core.ticklog.state import Done, EndSeen, Left, Outcome, SourceState, TableState

Deadline = Callable[[TableState, Sequence[EndSeen]], "int | None"]
PARTITIONS = 2


@dataclass
class Record:
    key: str
    value: int | None
    written_at: int
    gone_after: int | None = None
    """Of a tombstone that was cleaned: when it may be removed."""


@dataclass
class Broker:
    """``written`` is all that ever was, ``held`` what is still there, by partition and offset."""

    random: random.Random
    kept: int
    lag: int
    written: list[list[Record]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    held: list[dict[int, Record]] = field(default_factory=lambda: [{} for _ in range(PARTITIONS)])

    def produce(self, now: int) -> None:
        """A key always goes to the same partition. After a while it is not used any more."""
        number = now // 150 * 4 + self.random.randrange(4)
        key, partition = f"k{number}", number % PARTITIONS
        value = None if self.random.random() < 0.4 else self.random.randrange(1_000)
        record = Record(key, value, now)
        self.held[partition][len(self.written[partition])] = record
        self.written[partition].append(record)

    def clean(self, now: int) -> None:
        for partition, held in enumerate(self.held):
            newest = {
                record.key: offset
                for offset, record in enumerate(self.written[partition])
                if record.written_at + self.lag <= now
            }
            for offset, record in list(held.items()):
                if record.written_at + self.lag > now:
                    continue
                if newest[record.key] != offset or (record.gone_after is not None and now > record.gone_after):
                    del held[offset]
                elif record.value is None and record.gone_after is None:
                    record.gone_after = now + self.kept

    def end(self) -> Position:
        return Position({str(number): len(records) for number, records in enumerate(self.written)})

    def keys_from(self, position: Position) -> set[str]:
        return {record.key for number, records in enumerate(self.written) for record in records[position[number] :]}

    def rows(self, position: Position) -> dict[str, int]:
        """What is right at a position."""
        found: dict[str, int | None] = {}
        for number, records in enumerate(self.written):
            found |= {record.key: record.value for record in records[: position[number]]}
        return {key: value for key, value in found.items() if value is not None}


@dataclass
class Run:
    """One source with tables that pause, some for too long.

    :param deadline: the rule; None: none at all.
    :param longest: no table pauses for longer.
    """

    seed: int
    deadline: Deadline | None = tombstones.deadline
    longest: int | None = None
    kept: int = 400
    interval: int = 8
    """Who looks at the end does so this often; now and then nobody looks for a while."""
    now: int = 1_000
    ends: tuple[EndSeen, ...] = ()
    stalled: int = 0
    moved: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.broker = Broker(self.random, self.kept, self.random.choice((0, 0, 60)))
        self.tables: dict[ItemId, TableState] = {}
        self.rows: dict[ItemId, dict[str, int]] = {}
        self.wakes: dict[ItemId, int] = {}
        self.looks_at = self.now

    def run(self, steps: int = 900) -> None:
        for _ in range(steps):
            self.now += self.random.randrange(1, 6)
            for _ in range(self.random.randrange(0, 3)):
                self.broker.produce(self.now)
            if self.random.random() < 0.2:
                self.broker.clean(self.now)
            if self.now >= self.looks_at:
                self.look()
                away = self.longest is None and self.random.random() < 0.02
                self.looks_at = self.now + (self.random.randrange(2 * self.kept) if away else self.interval)
            if len(self.tables) < 4 and self.random.random() < 0.02:
                self._add()
            for table_id in list(self.tables):
                self._step(table_id)

    def _add(self) -> None:
        """At the beginning of the log, with the first read of it still to come."""
        table_id = ItemId(f"u{self.random.randrange(1 << 40)}")
        self.tables[table_id] = TableState(table_id, "live", 1, 1, Position(), Position(), keyed=True)
        self.rows[table_id], self.wakes[table_id] = {}, self.now + self._pause()

    def _pause(self) -> int:
        if self.random.random() < 0.9:
            return self.random.randrange(10)
        return self.random.randrange(self.longest or 2 * self.kept)

    def look(self) -> None:
        asked, end = self.now, self.broker.end()
        self.now += self.random.randrange(2)
        self.ends = tombstones.with_end(self.ends, EndSeen(asked, end, self.kept, self.broker.lag))
        for table in self._over(
            SourceState(ItemId("u1"), "active", "", Position(), tables=self.tables, ends=self.ends)
        ):
            self._give_up(table.table_id)

    def _over(self, state: SourceState) -> list[TableState]:
        if self.deadline is None:
            return []
        found = ((table, self.deadline(table, state.ends)) for table in state.tables.values())
        return [table for table, until in found if until is not None and self.now > until]

    def _give_up(self, table_id: ItemId) -> None:
        """Filled anew: another generation, whose reads have not begun."""
        del self.tables[table_id], self.rows[table_id], self.wakes[table_id]
        self.stalled += 1

    def _step(self, table_id: ItemId) -> None:
        """Read a part of what is there, which takes a while; then the rows count, or the table is given up."""
        if self.now < self.wakes[table_id]:
            return
        table = self.tables[table_id]
        if table.begun_at is None:
            table = replace(table, begun_at=self.now)
        end = self.broker.end()
        some = {p: self.random.randint(table.position[p], end[p]) for p in end}
        upper = end if self.longest else Position(some)
        rows = dict(self.rows[table_id])
        for number, held in enumerate(self.broker.held):
            self.now += self.random.randrange(3)
            if self.random.random() < 0.05:
                self.broker.clean(self.now)
            _apply(rows, held, table.position[number], upper[number])
        done: Mapping[ItemId, Outcome] = {table_id: Done()}
        if isinstance(self._judge(table, done, upper)[table_id], Left):
            self._give_up(table_id)
            return
        self.tables[table_id], self.rows[table_id] = replace(table, position=upper), rows
        self.wakes[table_id] = self.now + self._pause()
        self.moved += 1
        self._check(table_id)

    def _judge(self, table: TableState, done: Mapping[ItemId, Outcome], upper: Position) -> Mapping[ItemId, Outcome]:
        if self.deadline is None:
            return done
        if self.deadline is tombstones.deadline:
            return tombstones.judged({table.table_id: table}, self.ends, done, upper, self.now)
        until = self.deadline(table, self.ends)
        over = until is not None and self.now > until and upper != table.position
        return {table.table_id: Left("late")} if over else done

    def _check(self, table_id: ItemId) -> None:
        """A row of a key that should be gone, with no other record to follow, stays for ever: that must not be."""
        position = self.tables[table_id].position
        should, has = self.broker.rows(position), self.rows[table_id]
        wrong = {key for key in has if key not in should} - self.broker.keys_from(position)
        assert not wrong, f"seed {self.seed}, at {self.now}: {table_id} at {position} has {wrong}"
        if position == self.broker.end():
            assert has == should, f"seed {self.seed}, at {self.now}: {table_id} has {has}, not {should}"


def _apply(rows: dict[str, int], held: Mapping[int, Record], lower: int, upper: int) -> None:
    for offset in range(lower, upper):
        record = held.get(offset)
        if record is not None and record.value is None:
            rows.pop(record.key, None)
        elif record is not None:
            rows[record.key] = record.value  # type: ignore[assignment]
