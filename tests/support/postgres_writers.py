"""Writers that keep a Postgres busy while snapshots are taken, and what its stream says of them afterwards.

Two tables: ``keyed`` has a primary key, ``bag`` none, so equal rows count each. What a snapshot shows must be exactly
what the stream has said up to some point, which is what the law here asks at every point (``wrong_ticks``).
"""

from __future__ import annotations

import random
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.postgres import OWNER, Postgres

SLOT, PUBLICATION, STANDBY = "strong_check", "strong", "late"
TABLES = ("keyed", "bag")
KEYS = 40

Row = tuple[str | None, ...]
Change = tuple[str, str, Row | None, Row | None]
"""The table, the operation, the row before (its key alone where there is one) and the row after."""


@dataclass(frozen=True)
class Transaction:
    """:param end: where the next one may begin. :param xid: 32 bits."""

    lsn: int
    end: int
    xid: int
    changes: tuple[Change, ...]


def prepare(postgres: Postgres) -> None:
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE keyed (id int PRIMARY KEY, n int, note text)")
        connection.execute("CREATE TABLE bag (n int, note text)")
        connection.execute("ALTER TABLE bag REPLICA IDENTITY FULL")
        connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE keyed, bag".encode())
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (SLOT,))


def renew(postgres: Postgres) -> None:
    """The stream goes on from here, and begins with tables that are empty."""
    with postgres.connect() as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", (SLOT,))
        connection.execute("TRUNCATE keyed, bag")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (SLOT,))


# ── who writes ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def writing(postgres: Postgres, seed: int, *, writers: int = 6, truncates: bool = False) -> Iterator[None]:
    """Random transactions until the block ends. An error that only concurrency can cause is a transaction less."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            with postgres.connect() as connection:
                connection.autocommit = False
                chance = random.Random(f"{seed}:{number}")
                while not stop.is_set():
                    _transaction(connection, chance, truncates=truncates)
        except BaseException as error:  # the block must not wait for it
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def _transaction(connection: psycopg.Connection[Any], chance: random.Random, *, truncates: bool) -> None:
    try:
        connection.execute("SET LOCAL lock_timeout = '2s'")
        connection.execute(f"SET LOCAL synchronous_commit = {chance.choice(['on', 'on', 'off'])}".encode())
        for _ in range(chance.randint(1, 6)):
            if chance.random() < 0.3:
                _savepoint(connection, chance)
            else:
                _statement(connection, chance)
        if truncates and chance.random() < 0.02:
            connection.execute("TRUNCATE bag")
        if chance.random() < 0.1:
            time.sleep(chance.random() * 0.3)
        if chance.random() < 0.15:
            connection.rollback()
        else:
            connection.commit()
    except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable, psycopg.errors.UniqueViolation):
        connection.rollback()


def _savepoint(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    connection.execute("SAVEPOINT s")
    for _ in range(chance.randint(1, 3)):
        _statement(connection, chance)
    connection.execute("ROLLBACK TO s" if chance.random() < 0.4 else "RELEASE s")


def _statement(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    key, other, number = chance.randrange(KEYS), chance.randrange(KEYS), chance.randrange(1000)
    note = chance.choice(["a", "b", "c"])
    statement: str
    statement, values = chance.choice(
        [
            (
                "INSERT INTO keyed VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
                (key, number, note),
            ),
            ("UPDATE keyed SET n = n + 1 WHERE id = %s", (key,)),
            ("DELETE FROM keyed WHERE id = %s", (key,)),
            (
                "UPDATE keyed SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM keyed WHERE id = %s)",
                (other, key, other),
            ),
            ("INSERT INTO bag VALUES (%s, %s)", (number % 5, note)),
            ("UPDATE bag SET n = n + 1 WHERE ctid = (SELECT ctid FROM bag WHERE note = %s LIMIT 1)", (note,)),
            ("DELETE FROM bag WHERE ctid = (SELECT ctid FROM bag WHERE note = %s ORDER BY n LIMIT 1)", (note,)),
        ]
    )
    connection.execute(statement.encode(), values)


@contextmanager
def late_standby(postgres: Postgres, seed: int, *, longest: float = 0.5) -> Iterator[None]:
    """A synchronous standby that confirms late: transactions are flushed and streamed long before anybody sees them."""
    stop, chance = threading.Event(), random.Random(seed)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            _confirm(postgres, stop, chance, longest)
        except BaseException as error:
            if not stop.is_set():
                failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    _set(postgres, "synchronous_standby_names", STANDBY)
    try:
        yield
    finally:
        _set(postgres, "synchronous_standby_names", "")
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


def _set(postgres: Postgres, name: str, value: str) -> None:
    with postgres.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        connection.execute("SELECT pg_reload_conf()")


def _confirm(postgres: Postgres, stop: threading.Event, chance: random.Random, longest: float) -> None:
    with postgres.connect() as asked:
        (at,) = asked.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or ("0/0",)
    address = {"host": "127.0.0.1", "port": postgres.port, "user": OWNER, "application_name": STANDBY}
    # To leave the block of a connection that streams would be to commit first, which fails.
    with closing(psycopg.connect(**address, replication="true", autocommit=True)) as connection:
        wire = connection.pgconn
        wire.send_query(f"START_REPLICATION PHYSICAL {at}".encode())
        wire.get_result()
        flushed, due = 0, 0.0
        while not stop.is_set():
            wire.consume_input()
            size, data = wire.get_copy_data(1)
            if size > 0 and bytes(data[:1]) == b"w":
                start = int.from_bytes(data[1:9], "big")
                flushed = max(flushed, start + len(data) - 25)
            if time.monotonic() >= due and flushed:
                wire.put_copy_data(b"r" + struct.pack(">QQQqB", flushed, flushed, flushed, 0, 0))
                wire.flush()
                due = time.monotonic() + (chance.random() * longest if chance.random() < 0.3 else 0.002)
            if size == 0:
                time.sleep(0.001)


# ── what the stream says ──────────────────────────────────────────────────────────────────────────────────────────────


def stream(postgres: Postgres) -> list[Transaction]:
    """All of it, in order."""
    with postgres.connect() as connection:
        rows = connection.execute(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
            " 'publication_names', %s)",
            (SLOT, PUBLICATION),
        ).fetchall()
    found: list[Transaction] = []
    relations: dict[int, str] = {}
    head, changes = (0, 0), []
    for (data,) in rows:
        kind = data[:1]
        if kind == b"B":
            head, changes = (struct.unpack(">Q", data[1:9])[0], struct.unpack(">I", data[17:21])[0]), []
        elif kind == b"R":
            oid, name = _relation(data)
            relations[oid] = name
        elif kind == b"C":
            found.append(Transaction(head[0], struct.unpack(">Q", data[10:18])[0], head[1], tuple(changes)))
        else:
            changes += _changes(data, relations)
    return found


def _relation(data: bytes) -> tuple[int, str]:
    _, name, *_ = data[5:].split(b"\0")
    return struct.unpack(">I", data[1:5])[0], name.decode()


def _changes(data: bytes, relations: Mapping[int, str]) -> list[Change]:
    kind = data[:1].decode()
    if kind == "T":
        count = struct.unpack(">I", data[1:5])[0]
        oids = struct.unpack(f">{count}I", data[6 : 6 + 4 * count])
        return [(relations[oid], "T", None, None) for oid in oids]
    table, at = relations[struct.unpack(">I", data[1:5])[0]], 5
    old: Row | None = None
    new: Row | None = None
    while at < len(data):
        part, at = data[at : at + 1], at + 1
        row, at = _tuple(data, at)
        if part == b"N":
            new = row
        else:
            old = row
    return [(table, kind, old, new)]


def _tuple(data: bytes, at: int) -> tuple[Row, int]:
    (count,) = struct.unpack(">H", data[at : at + 2])
    at += 2
    values: list[str | None] = []
    for _ in range(count):
        kind, at = data[at : at + 1], at + 1
        if kind == b"t":
            (size,) = struct.unpack(">I", data[at : at + 4])
            values.append(data[at + 4 : at + 4 + size].decode())
            at += 4 + size
        else:
            values.append(None)
    return tuple(values), at


# ── the law ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Held:
    """The rows of one table, as a multiset, brought on by changes."""

    def __init__(self, table: str, rows: Sequence[Row] = ()) -> None:
        self.table, self.rows = table, Counter(rows)

    def apply(self, changes: Sequence[Change]) -> None:
        for table, kind, old, new in changes:
            if table == self.table:
                self._apply(kind, old, new)

    def _apply(self, kind: str, old: Row | None, new: Row | None) -> None:
        if kind == "T":
            self.rows.clear()
            return
        if self.table == "keyed":
            key = (old or new or ())[0]
            for row in [row for row in self.rows if row[0] in {key, (new or old or ())[0]}]:
                del self.rows[row]
        elif old is not None and self.rows[old] > 1:
            self.rows[old] -= 1
        elif old is not None:
            # A copy that is not there is owed, as wrong filters leave it: the law must see it.
            self.rows[old] -= 1
            if not self.rows[old]:
                del self.rows[old]
        if new is not None:
            self.rows[new] += 1
            if not self.rows[new]:
                del self.rows[new]


Sees = Callable[[int], bool]


@dataclass(frozen=True)
class Snapshot:
    """What one snapshot has shown. :param p: where ticks begin. :param h: from there on all applies.
    :param sees: by the id of a transaction. :param before_h: where the server inserted before it was taken."""

    p: int
    h: int
    sees: Sees
    rows: Mapping[str, Sequence[Row]]
    before_h: int = 0
    flushed: int = 0


def wrong_ticks(
    shot: Snapshot, log: Sequence[Transaction], *, begins: int | None = None, since: int | None = None,
    skips: Callable[[Transaction], bool] | None = None, ticks: int = 40,
) -> int:  # fmt: skip
    """At how many of the ticks from the first readable one on a table differs from the stream so far.

    :param begins, since, skips: other rules than the right ones.
    """
    begins = shot.p if begins is None else begins
    since = shot.h if since is None else since
    skips = skips or (lambda one: one.lsn < shot.h and shot.sees(one.xid))
    wrong = 0
    for table in TABLES:
        right, ours, seen = Held(table), Held(table, shot.rows[table]), 0
        for one in log:
            right.apply(one.changes)
            if one.lsn >= begins and not skips(one):
                ours.apply(one.changes)
            if one.end >= since and seen < ticks:
                seen += 1
                wrong += right.rows != ours.rows
    return wrong


def full_seen(text: str) -> Sees:
    """``xmin:xmax:xip`` as a plain rule, apart from the product's."""
    low, high, running = text.split(":")
    open_ones = {int(one) for one in running.split(",") if one}

    def sees(xid: int) -> bool:
        whole = (int(high) & ~0xFFFFFFFF) | xid
        if whole - int(high) > 1 << 31:
            whole -= 1 << 32
        elif int(high) - whole > 1 << 31:
            whole += 1 << 32
        return whole < int(low) or (whole < int(high) and whole not in open_ones)

    return sees
