"""What a table of a Postgres was after each of its transactions, by a slot that nobody but the test reads.

Other code than ours decodes it: ``test_decoding`` writes changes as text, and a commit with the end of its record.
"""

from __future__ import annotations

import random
import re
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg

from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn
from tests.support.upstream_postgres import Database

SLOT = "truth"
Rows = dict[int, tuple[int | None, str | None]]
"""By id: a number, and a text that is often too large to be sent again."""

_CHANGE = re.compile(r"table public\.(\w+): (\w+): (.*)", re.DOTALL)
_OLD = re.compile(r"old-key: id\[bigint\]:(\d+) new-tuple: ")
_ID, _N = re.compile(r"id\[bigint\]:(\d+)"), re.compile(r"n\[bigint\]:(\d+|null)")
_NOTE = re.compile(r"note\[text\]:(?:'(\w*)'|(null|unchanged-toast-datum))")


def prepare(database: Database, *tables: str, rows: int = 200) -> None:
    """Tables with rows, all of which the slot has seen."""
    database.run(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'test_decoding')")
    for table in tables:
        database.run(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, n bigint, note text)",
            f"ALTER TABLE {table} ALTER note SET STORAGE EXTERNAL",
            f"INSERT INTO {table} SELECT i, i, repeat('x', 3000) || i FROM generate_series(1, {rows}) i",
        )


class Truth:
    def __init__(self, database: Database, tables: Sequence[str]) -> None:
        self.ends: list[int] = []
        self._states: list[dict[str, Rows]] = []
        now: dict[str, Rows] = {table: {} for table in tables}
        found = database.rows(
            f"SELECT lsn::text, data FROM pg_logical_slot_peek_changes('{SLOT}', NULL, NULL, 'include-xids', '0')"
        )
        for lsn, data in found:
            if data.startswith("COMMIT"):
                self.ends.append(read_lsn(lsn))
                self._states.append(dict(now))
            elif change := _CHANGE.match(data):
                table, what, values = change.groups()
                now[table] = changed(now[table], what, values)

    def at(self, table: str, upper: int) -> Rows:
        """After all transactions whose commit ends at or before this place."""
        number = bisect_right(self.ends, upper)
        return self._states[number - 1][table] if number else {}


def changed(rows: Rows, what: str, values: str) -> Rows:
    if what.startswith("TRUNCATE"):
        return {}
    old = _OLD.match(values)
    values = values[old.end() :] if old else values
    key = int(_ID.search(values)[1])  # type: ignore[index]
    before = rows.get(int(old[1]) if old else key)
    after = {other: row for other, row in rows.items() if other not in (key, int(old[1]) if old else key)}
    if what == "DELETE":
        return after
    note = _NOTE.search(values)
    assert note is not None, values
    kept = before[1] if note[2] == "unchanged-toast-datum" and before else None
    n = _N.search(values)[1]  # type: ignore[index]
    return {**after, key: (None if n == "null" else int(n), note[1] if note[1] is not None else kept)}


@contextmanager
def writing(database: Database, tables: Sequence[str], *, writers: int = 3, seed: int = 0) -> Iterator[None]:
    """Transactions of several statements on all tables: some are undone, some are long, some clear a table."""
    stop = threading.Event()
    threads = [threading.Thread(target=_write, args=(database, tables, stop, seed * 100 + n)) for n in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _write(database: Database, tables: Sequence[str], stop: threading.Event, seed: int) -> None:
    chance = random.Random(seed)
    with database.connect(autocommit=False) as connection:
        while not stop.wait(chance.choice((0.02, 0.1, 0.3))):
            with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                connection.execute("SET LOCAL synchronous_commit = " + chance.choice(("on", "off")))
                for _ in range(chance.randint(1, 6)):
                    connection.execute(_statement(chance, chance.choice(tables)).encode())
                    if chance.random() < 0.03:
                        stop.wait(0.5)
                if chance.random() < 0.9:
                    connection.commit()
            connection.rollback()


def _statement(chance: random.Random, table: str) -> str:
    key, other, n = chance.randint(1, 300), chance.randint(1, 300), chance.randint(1, 10**6)
    if chance.random() < 0.005:
        return f"TRUNCATE {table}"
    if chance.random() < 0.05:
        return f"UPDATE {table} SET id = {other + 1000} WHERE id = {key}"
    if chance.random() < 0.15:
        return f"DELETE FROM {table} WHERE id = {key}"
    if chance.random() < 0.5:
        return f"UPDATE {table} SET n = {n} WHERE id = {key}"
    note = f"repeat('y', {chance.choice((3, 2500))}) || '{n}'"
    return f"INSERT INTO {table} VALUES ({key}, {n}, {note}) ON CONFLICT (id) DO UPDATE SET n = {n}, note = {note}"
