"""A database in memory whose log others read: transactions are in its log before, or after, snapshots see them.

A commit has three moments: its record is inserted into the log, the log is flushed up to it (from then on it is
streamed, and outlives a crash), and snapshots see it. Between the last two any time may pass, in either order.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

KEYED, BAG = "keyed", "bag"
"""Kinds of tables. The rows of a bag have no key: it shows a change that is applied twice."""


class Violation(Exception):
    """What must never happen."""


class Change(NamedTuple):
    """:param what: ``set``, ``delete`` or ``clear``. :param kept: of a row: a value that a change may leave out."""

    relation: int
    what: str
    key: int = 0
    value: int = 0
    kept: int | None = None


Rows = Mapping[int, tuple[tuple[int, int], ...]]
"""By key, the rows as value and kept value: of a table with keys, one."""


def fold(kind: str, rows: Rows, changes: Iterable[Change]) -> Rows:
    """What changes make of rows, whether or not they belong there."""
    after = dict(rows)
    for change in changes:
        found = after.get(change.key, ())
        if change.what == "clear":
            after = {}
        elif kind == BAG:
            after[change.key] = (*found, (change.value, 0)) if change.what == "set" else found[1:]
            if change.what == "delete" and not found:
                raise Violation(f"{change} takes away a row that is not there")
        elif change.what == "delete":
            after.pop(change.key, None)
        else:
            if change.kept is None and not found:
                raise Violation(f"{change} keeps a value of a row that is not there")
            kept = found[0][1] if change.kept is None else change.kept
            after[change.key] = ((change.value, kept),)
    return {key: tuple(sorted(found)) for key, found in after.items() if found}


@dataclass
class Transaction:
    """:param waits: its client is answered, and snapshots see it, when it is flushed."""

    xid: int
    waits: bool
    changes: list[Change] = field(default_factory=list)
    place: int | None = None
    """Of its commit's record."""
    end: int = 0
    is_seen: bool = False


@dataclass(frozen=True)
class Seen:
    """A snapshot. It is lost when the server crashes, which begins another ``life`` of it."""

    life: int
    xmin: int
    xmax: int
    xip: tuple[int, ...]

    @property
    def text(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.xip))}"


def sees(text: str, xid: int) -> bool:
    xmin, xmax, xip = text.split(":")
    return xid < int(xmin) or (xid < int(xmax) and str(xid) not in xip.split(","))


class Database:
    def __init__(self, chance: random.Random, kinds: tuple[str, ...]) -> None:
        self._random, self.kinds = chance, kinds
        self.inserted = self.flushed = 100
        self.life = 0
        self.slot: int | None = None
        """Where it begins: nothing that was committed before is streamed."""
        self.files = [0] * len(kinds)
        self._running: list[Transaction] = []
        self._committed: list[Transaction] = []
        """In the order of their commits."""
        self._newest: list[Rows] = [{} for _ in kinds]
        """As whoever has the locks finds them."""
        self._truth: dict[int, tuple[int, Rows]] = {}
        self._next_xid, self._ended, self._values = 700, 699, 0

    # ── what clients do ───────────────────────────────────────────────────────────────────────────────────────────────

    def work(self) -> None:
        """One step of some client, or of the server."""
        running = [*self._running, *(one for one in self._committed if not one.is_seen)]
        step = self._random.random()
        if not running or (step < 0.15 and len(running) < 4):
            self._running.append(Transaction(self._new_xid(), self._random.random() < 0.6))
            return
        one = self._random.choice(running)
        if one.place is None and step < 0.7:
            self._change(one)
        elif one.place is None and step < 0.75:
            self._running.remove(one)
            self._ended = max(self._ended, one.xid)
            self._find_newest()
        elif one.place is None:
            self.insert_commit(one)
        elif step < 0.5:
            self.flush()
        elif not one.waits or one.end <= self.flushed:
            self.show(one)

    def use_xid(self) -> int:
        """A transaction that takes an id and ends at once."""
        self._ended = self._new_xid()
        return self._ended

    def _new_xid(self) -> int:
        self._next_xid += 1
        return self._next_xid - 1

    def _change(self, one: Transaction) -> None:
        relation = self._random.randrange(len(self.kinds))
        both = [*self._running, *(one for one in self._committed if not one.is_seen)]
        others = [change for other in both if other is not one for change in other.changes]
        locked = {change.key for change in others if change.relation == relation}
        if any(change.relation == relation and change.what == "clear" for change in others):
            return
        self.inserted += self._random.randint(0, 2)
        if not locked and self._random.random() < 0.05:
            self._add(one, Change(relation, "clear"))
            return
        free = [key for key in range(5) if key not in locked]
        if not free:
            return
        key, rows = self._random.choice(free), self._newest[relation]
        self._values += 1
        if key in rows and self._random.random() < 0.3:
            self._add(one, Change(relation, "delete", key))
        elif self.kinds[relation] == KEYED and key in rows and self._random.random() < 0.4:
            self._add(one, Change(relation, "set", key, self._values))
        else:
            self._add(one, Change(relation, "set", key, self._values, self._values))

    def _add(self, one: Transaction, change: Change) -> None:
        one.changes.append(change)
        rows = self._newest[change.relation]
        self._newest[change.relation] = fold(self.kinds[change.relation], rows, [change])

    def _find_newest(self) -> None:
        every = [*self._committed, *self._running]
        for relation, kind in enumerate(self.kinds):
            changes = (change for one in every for change in one.changes if change.relation == relation)
            self._newest[relation] = fold(kind, {}, changes)

    def insert_commit(self, one: Transaction) -> None:
        self.inserted += self._random.randint(1, 3)
        one.place = self.inserted
        self.inserted += 2
        one.end = self.inserted
        self._running.remove(one)
        self._committed.append(one)

    def flush(self) -> None:
        self.flushed = self.inserted

    def show(self, one: Transaction) -> None:
        one.is_seen = True
        self._ended = max(self._ended, one.xid)
        for change in one.changes:
            if change.what == "clear":
                self.files[change.relation] += 1

    def finish(self) -> None:
        """All clients come to their ends."""
        for one in list(self._running):
            self.insert_commit(one)
        self.inserted += 1
        self.flush()
        for one in self._committed:
            if not one.is_seen:
                self.show(one)

    def crash(self) -> None:
        """What was not flushed is lost, also what snapshots have seen; its ids are given again."""
        self.life += 1
        self._committed = [one for one in self._committed if one.end <= self.flushed]
        for one in self._committed:
            one.is_seen = True
        self._running = []
        self._find_newest()
        self._ended = max([699, *(one.xid for one in self._committed)])
        self._next_xid = self._ended + 1
        self.inserted = self.flushed
        self.files = [file + 1 for file in self.files]

    # ── what is asked of it ───────────────────────────────────────────────────────────────────────────────────────────

    def make_slot(self) -> None:
        """It waits for who writes, and not for who has committed and waits for something else."""
        for one in list(self._running):
            self.insert_commit(one)
        self.flush()
        self.slot = self.inserted

    def snapshot(self) -> Seen:
        both = [*self._running, *(one for one in self._committed if not one.is_seen)]
        xip = tuple(one.xid for one in both if one.xid <= self._ended)
        return Seen(self.life, min((*xip, self._ended + 1)), self._ended + 1, xip)

    def read(self, relation: int, seen: Seen) -> Rows:
        """Rows of before a statement that replaces all rows at once are gone, whatever the snapshot."""
        seen_now = [one for one in self._committed if one.is_seen]
        found = [(one, change) for one in seen_now for change in one.changes if change.relation == relation]
        cleared = max((n for n, (_, change) in enumerate(found) if change.what == "clear"), default=-1)
        left = [change for one, change in found[cleared + 1 :] if sees(seen.text, one.xid)]
        with suppress(Violation):  # what the snapshot sees of rows that came after them
            return fold(self.kinds[relation], {}, left)
        return {}

    def streamed(self, lower: int, upper: int) -> list[Transaction]:
        start = max(lower, self.slot or 0)
        return [one for one in self._committed if start <= (one.place or 0) < upper and one.end <= self.flushed]

    def truth(self, relation: int, upper: int) -> Rows:
        """All that was committed before; flushed, so it stays so."""
        reached, rows = self._truth.get(relation, (0, {}))
        if upper < reached:
            reached, rows = 0, {}
        found = [one for one in self._committed if reached <= (one.place or 0) < upper]
        changes = [change for one in found for change in one.changes if change.relation == relation]
        self._truth[relation] = upper, fold(self.kinds[relation], rows, changes)
        return self._truth[relation][1]
