"""A Postgres database that changes, and what each of its tables is to us: columns, key, and contents as we read them.

One session writes, one transaction after the other, so that its contents at a mark are those after the mark's record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import psycopg

Columns = tuple[tuple[str, str], ...]
BIG = 4_000
"""So many characters are kept apart from their row, and not said again by an update that leaves them as they are."""


@dataclass(frozen=True)
class Relation:
    """A table of the upstream.

    :param ddl: its columns there.
    :param key: the columns that make its key, with our types.
    :param columns: the others.
    :param selected: what of the upstream is what Debezium sends, where that is not the column as it is.
    """

    name: str
    ddl: str
    key: Columns
    columns: Columns
    partitions: int = 1
    selected: Mapping[str, str] | None = None
    full: bool = False
    """It has no key: its records have none either, and say what was before. Ours is then the columns that we name."""

    def create(self, connection: psycopg.Connection) -> None:
        connection.execute(f"CREATE TABLE {self.name} ({self.ddl})".encode())
        if self.full:
            connection.execute(f"ALTER TABLE {self.name} REPLICA IDENTITY FULL".encode())
        for name in ("big", "doc", "raw", "tags", "nums"):
            if f"{name} " in self.ddl:
                connection.execute(f"ALTER TABLE {self.name} ALTER {name} SET STORAGE EXTERNAL".encode())

    @property
    def listed(self) -> Columns:
        """As they stand in a table here: the record's key comes last, and columns of a row that are a key first."""
        return self.key + self.columns if self.full else self.columns + self.key

    def rows(self, connection: psycopg.Connection) -> list[tuple[Any, ...]]:
        """As texts, in the order of the columns; ordered by key."""
        named = self.selected or {}
        names = [name for name, _ in self.listed]
        listed = ", ".join(f"({named.get(name, name)})::text" for name in names)
        order = ", ".join(name for name, _ in self.key)
        return connection.execute(f"SELECT {listed} FROM {self.name} ORDER BY {order}".encode()).fetchall()


ITEMS = Relation(
    "items",
    "id bigint PRIMARY KEY, name text, price numeric(10,2), seen timestamptz, day date, at timestamp, flag boolean,"
    " x double precision, small smallint, code uuid, big text, doc jsonb, raw bytea, tags text[], nums integer[]",
    (("id", "bigint"),),
    (
        ("name", "text"), ("price", "numeric(10,2)"), ("seen", "timestamptz"), ("day", "integer"), ("at", "bigint"),
        ("flag", "boolean"), ("x", "double"), ("small", "smallint"), ("code", "text"), ("big", "text"),
        ("doc", "text"), ("raw", "text"), ("tags", "jsonb"), ("nums", "jsonb"),
    ),
    selected={
        "day": "day - date '1970-01-01'", "at": "(extract(epoch FROM at) * 1000000)::bigint",
        "raw": "translate(encode(raw, 'base64'), E'\\n', '')", "tags": "to_jsonb(tags)", "nums": "to_jsonb(nums)",
        "seen": "to_char(seen AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
    },
)  # fmt: skip
LINES = Relation(
    "lines",
    "order_id integer, line text, sku text, quantity bigint, big text, PRIMARY KEY (order_id, line)",
    (("order_id", "integer"), ("line", "text")),
    (("sku", "text"), ("quantity", "bigint"), ("big", "text")),
    partitions=3,
)
WIPED = Relation("wiped", "id bigint PRIMARY KEY, name text", (("id", "bigint"),), (("name", "text"),))
READINGS = Relation(
    "readings",
    "device text, name text, big text",
    (("device", "text"),),
    (("name", "text"), ("big", "text")),
    full=True,
)
ODD = Relation(
    "odd", "id bigint PRIMARY KEY, name text, big text", (("id", "bigint"),), (("name", "text"), ("big", "text"))
)
"""For what Debezium cannot say."""
RELATIONS = (ITEMS, LINES, WIPED, READINGS, ODD)


def create_all(connection: psycopg.Connection) -> None:
    for relation in RELATIONS:
        relation.create(connection)
    connection.execute("CREATE TABLE marks (id bigint PRIMARY KEY)")
    for number in (1, 2):
        connection.execute(f"CREATE TABLE signals{number} (id text PRIMARY KEY, type text, data text)".encode())


class Writer:
    """Changes to all relations but the odd one, drawn by a seed: of few keys, so that each is in every state often."""

    def __init__(self, connection: psycopg.Connection, seed: int) -> None:
        self._connection, self._dice = connection, Random(seed)

    def fill(self, count: int) -> None:
        for _ in range(count):
            self._put()

    def write(self, count: int, *, removes: bool = True) -> None:
        """:param removes: also deletions, moves to other keys, and an end of all rows."""
        for _ in range(count):
            chosen = self._dice.random()
            if removes and chosen < 0.2:
                self._remove()
            elif removes and chosen < 0.27:
                self._move()
            elif removes and chosen < 0.29:
                self._connection.execute("TRUNCATE wiped")
            elif chosen < 0.7:
                self._put()
            else:
                self._touch()

    def _put(self) -> None:
        """Set all columns of a few rows, in one transaction."""
        with self._connection.transaction():
            for _ in range(self._dice.choice((1, 1, 1, 4))):
                self._put_item()
                self._upsert("lines", "order_id, line", (*self._line(), self._word(), self._number(), self._big()))
                self._upsert("wiped", "id", (self._key(), self._word()))
                self._reading()

    def _put_item(self) -> None:
        dice = self._dice
        many = [dice.randrange(100) for _ in range(1_500)] if dice.random() < 0.3 else [1, 2]
        seen = f"2024-02-{dice.randrange(1, 29):02}T10:20:30.{dice.randrange(999_999):06}Z"
        values: list[Any] = [
            self._key(), self._word(), self._number() / 4, seen,
            "2024-02-29", "2024-02-29 01:02:03.45", dice.random() < 0.5, self._number() / 8, self._number(),
            "00000000-0000-0000-0000-00000000000" + str(dice.randrange(10)), self._big(),
            json.dumps({"a": [1, None], "b": self._big()}), (self._big() or "").encode(),
            [self._word(), self._big()], many,
        ]  # fmt: skip
        values = [values[0], *(None if dice.random() < 0.1 else value for value in values[1:])]
        self._upsert("items", "id", values)

    def _reading(self) -> None:
        device, name, big = f"d{self._key()}", self._word(), self._big()
        changed = self._connection.execute(
            "UPDATE readings SET name = %s, big = %s WHERE device = %s", [name, big, device]
        )
        if not changed.rowcount:
            self._connection.execute("INSERT INTO readings VALUES (%s, %s, %s)", [device, name, big])

    def _upsert(self, relation: str, key: str, values: Sequence[Any]) -> None:
        """An update of all columns where the key is there: it says of large values that they are new."""
        names = [row[0] for row in self._connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum", [relation]
        )]  # fmt: skip
        marks = ", ".join(["%s"] * len(values))
        sets = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key.split(", "))
        statement = f"INSERT INTO {relation} VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {sets}"
        self._connection.execute(statement.encode(), values)

    def _touch(self) -> None:
        """An update of small columns: of the large ones that are as they were, nothing is said."""
        word, number = self._word(), self._number()
        one = self._dice.choice(
            (
                ("UPDATE items SET name = %s, small = %s WHERE id = %s", [word, number, self._key()]),
                ("UPDATE items SET name = %s WHERE id <= %s", [word, self._key()]),
                ("UPDATE lines SET quantity = %s WHERE order_id = %s", [number, self._key()]),
                ("UPDATE readings SET name = %s WHERE device = %s", [word, f"d{self._key()}"]),
            )
        )
        self._connection.execute(one[0].encode(), one[1])

    def _remove(self) -> None:
        with self._connection.transaction():
            self._connection.execute("DELETE FROM items WHERE id = %s", [self._key()])
            self._connection.execute("DELETE FROM lines WHERE order_id = %s", [self._key()])
            self._connection.execute("DELETE FROM wiped WHERE id = %s", [self._key()])
            self._connection.execute("DELETE FROM readings WHERE device = %s", [f"d{self._key()}"])

    def _move(self) -> None:
        """To a key that nobody has. Large values are set: Debezium would not say them (see ODD)."""
        old, new = self._key(), self._dice.randrange(100, 200)
        statements = (
            ("wiped", "id = %(new)s", "id = %(old)s"),
            ("lines", "order_id = %(new)s, big = %(big)s", "order_id = %(old)s"),
            ("readings", "device = 'd' || %(new)s", "device = 'd' || %(old)s"),
        )
        for name, sets, where in statements:
            values = {"old": old, "new": new, "big": self._big()}
            free = f"NOT EXISTS (SELECT FROM {name} WHERE {where.replace('old', 'new')})"
            self._connection.execute(f"UPDATE {name} SET {sets} WHERE {where} AND {free}".encode(), values)

    def _key(self) -> int:
        return self._dice.randrange(12)

    def _line(self) -> tuple[int, str]:
        return self._key(), self._dice.choice("ab")

    def _word(self) -> str:
        return self._dice.choice(("one", "größer", "", "drei", 'quo"te', "x\ny")) + str(self._dice.randrange(100))

    def _number(self) -> int:
        return self._dice.randrange(-1_000, 1_000)

    def _big(self) -> str | None:
        word = self._word()
        return self._dice.choice((None, word, word * (BIG // len(word)), word * (BIG // len(word)) + "!"))
