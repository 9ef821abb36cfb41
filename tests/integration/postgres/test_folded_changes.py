"""Streams of a real Postgres, decoded and folded in any groups of ticks, are what its tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan
from airflow_provider_mzshare.storage.fanout.references import ReferenceChanged
from tests.support.pgoutput import make_slot, record
from tests.support.postgres_tables import Held, Row, Stream, by_key, check_groups, plan_of, row_batches, spec_of
from tests.support.upstream_postgres import PUBLICATION, Database

COLUMNS = """
    region text, id bigint, price numeric(12,2), many numeric(38,9), at timestamptz, made timestamp(3), day date,
    flag boolean, small smallint, n integer, d double precision, r real, raw bytea, doc jsonb, written json,
    short varchar(20), padded character(5), one "char", who name, kind uuid, object oid, note text, big text,
    PRIMARY KEY (region, id)"""
KEYS = {"items": ("region", "id"), "whole": ("region", "id"), "small": ("id",)}
ALL = [2**62]


@pytest.fixture
def database(upstream: Database) -> Database:
    for name in ("items", "whole"):
        upstream.run(
            f"CREATE TABLE {name} ({COLUMNS})",
            f"ALTER TABLE {name} ALTER COLUMN big SET STORAGE EXTERNAL, ALTER COLUMN raw SET STORAGE EXTERNAL",
        )
    upstream.run("ALTER TABLE whole REPLICA IDENTITY FULL", "CREATE TABLE small (id integer PRIMARY KEY, v text)")
    upstream.publish()
    with upstream.connect() as connection:
        make_slot(connection, "folded")
    return upstream


class Writer:
    """One session that changes tables at random. After each transaction it says what the tables hold."""

    def __init__(self, connection: psycopg.Connection[Any], draw: Random) -> None:
        self.connection, self.draw = connection, draw
        self.columns = {
            name: [each.name for each in connection.execute(f"SELECT * FROM {name} LIMIT 0".encode()).description or ()]
            for name in KEYS
        }
        self.ends: list[int] = []
        self.states: list[Mapping[str, Mapping[Row, Row]]] = []

    def transaction(self) -> None:
        with self.connection.transaction():
            for _ in range(self.draw.randint(1, 5)):
                self._step(self.draw)
        (lsn,) = self.connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("",)
        self.ends.append(read_lsn(lsn))
        self.states.append({name: contents(self.connection, name, self.columns[name]) for name in KEYS})

    def _step(self, draw: Random) -> None:
        if draw.random() < 0.15:
            with self.connection.transaction() as inner:
                self._change(draw)
                raise psycopg.Rollback(inner)
        self._change(draw)

    def _change(self, draw: Random) -> None:
        name = draw.choice(list(KEYS))
        how = draw.random()
        if how < 0.02:
            self._run(draw.choice(["TRUNCATE small", "TRUNCATE items, small", "TRUNCATE whole"]))
        elif name == "small":
            self._change_small(draw.randint(0, 6), how)
        else:
            self._change_wide(name, draw, how)

    def _change_small(self, key: int, how: float) -> None:
        if how < 0.3:
            self._run("DELETE FROM small WHERE id = %s", key)
        else:
            sets = "ON CONFLICT (id) DO UPDATE SET v = excluded.v"
            self._run(f"INSERT INTO small VALUES (%s, %s) {sets}", key, str(how))

    def _change_wide(self, name: str, draw: Random, how: float) -> None:
        key = region, _ = (draw.choice(["eu", "us"]), draw.randint(0, 4))
        this = "WHERE region = %s AND id = %s"
        if how < 0.4:
            values = drawn_row(draw)
            places = ", ".join(["%s"] * (len(values) + 2))
            self._run(f"INSERT INTO {name} VALUES ({places}) ON CONFLICT DO NOTHING", *key, *values)
        elif how < 0.6:
            self._run(f"UPDATE {name} SET n = id, note = %s {this}", str(how), *key)
        elif how < 0.7:
            self._run(f"UPDATE {name} SET big = %s {this}", draw.choice([None, "b", "x" * 9000]), *key)
        elif how < 0.85:
            # To another key, which another row may have had until now.
            to = draw.randint(5, 7)
            self._run(f"DELETE FROM {name} {this}", region, to)
            self._run(f"UPDATE {name} SET id = %s {this}", to, *key)
        elif how < 0.92:
            self._run(f"UPDATE {name} SET id = -id - 1, flag = NOT flag WHERE region = %s AND id > 4", region)
            self._run(f"UPDATE {name} SET id = -id - 1 WHERE region = %s AND id < 0", region)
        else:
            self._run(f"DELETE FROM {name} {this}", *key)

    def _run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement.encode(), values)


def drawn_row(draw: Random) -> list[Any]:
    def some(*values: Any) -> Any:
        return draw.choice([None, *values])

    return [
        some("1.10", "-9999999999.99", "0"), some("12345678901234567890123456789.123456789", "-0.000000001"),
        some("2024-02-29 12:00:00.000001+05", "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
        some("1999-12-31 23:59:59.9996", "1850-01-01 00:00:00"), some("0001-01-01", "9999-12-31"), some(True, False),
        some(-32768, 7), some(2**31 - 1, 0), some("-Infinity", "1e300", "0.1"), some("Infinity", "3.4028235e38"),
        some(b"", b"\0\xff\\x", draw.randbytes(5000)), some('{"b": 1.10, "a": ["é😀", null, {"x": "\\n"}]}', "1e5"),
        some('{"b":1,  "a":2, "a":3}'), some("", "varying"), some("ab", "é"), some("c", "\x7f"), some("a name"),
        some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), some(4294967295), some("", "tab\t, 'quote' \\ é"),
        some("short", "y" * 5000, "".join(map(chr, range(32, 2000)))),
    ]  # fmt: skip


SHOWN = {"written": "written::text", "kind": "kind::text", "r": "r::double precision"}


def contents(connection: psycopg.Connection[Any], name: str, columns: list[str]) -> Mapping[Row, Row]:
    """As the user sees it; json, which is kept as it was written, as its text."""
    shown = ", ".join(SHOWN.get(each, each) for each in columns)
    found = connection.execute(f"SELECT {shown} FROM {name}".encode()).fetchall()
    return by_key([tuple(row) for row in found], columns, KEYS[name])


def members(connection: psycopg.Connection[Any]) -> dict[str, MemberPlan]:
    return {
        name: plan_of(spec_of(connection, name, keys), f"u{number}") for number, (name, keys) in enumerate(KEYS.items())
    }


def said(connection: psycopg.Connection[Any], ends: list[int] | None = None) -> Stream:
    """All that the slot says since it was asked last."""
    return Stream(row_batches(record(connection, "folded", PUBLICATION)), ends or ALL)


@pytest.mark.parametrize("seed", range(2))
def test_any_changes_in_any_groups_of_ticks(database: Database, seed: int) -> None:
    draw = Random(seed)
    with database.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        writer = Writer(connection, draw)
        for _ in range(80):
            writer.transaction()
        stream = said(connection, writer.ends)
        told = [row for batch in stream.batches for row in batch.column("row").to_pylist()]
        assert {row["op"] for row in told} == {"c", "u", "d", "t"}
        assert [row for row in told if row["unsent"] and row["before"]], "a key that changes, a value that was not sent"
        last = len(writer.ends)
        for cuts in ([last], range(1, last + 1), sorted({*draw.sample(range(1, last), 25), last})):
            check_groups(stream, members(connection), writer.states, cuts)


def test_a_table_takes_only_rows_of_its_own_and_counts_no_others(database: Database) -> None:
    with database.connect() as connection:
        insert = "INSERT INTO items (region, id) VALUES ('eu', 1)"
        database.transaction("INSERT INTO small VALUES (1, 'a'), (2, 'b')", insert)
        (found,) = (each for each in said(connection).decoded(1, 1, [members(connection)["small"]])["u2"] if each.data)
        assert found.data is not None
        assert found.data.batch.select(["id", "v", "_mz_index"]).to_pylist() == [
            {"id": 1, "v": "a", "_mz_index": 0},
            {"id": 2, "v": "b", "_mz_index": 1},
        ]
        assert found.errors is None


def test_what_no_type_of_ours_holds_is_an_error_of_its_table(database: Database) -> None:
    values = {"price": "'NaN'", "at": "'infinity'", "made": "'0044-03-15 BC'", "day": "'10000-01-01'"}
    with database.connect() as connection:
        for number, (name, value) in enumerate(values.items()):
            database.run(f"INSERT INTO items (region, id, {name}) VALUES ('eu', {number}, {value})")
        database.run("UPDATE items SET day = '2024-01-01' WHERE day IS NOT NULL")
        held = Held(members(connection)["items"])
        held.put(said(connection).decoded(1, 1, [held.member])["u0"])
        assert held.errors == [
            'field "price": NaN or infinite, which numeric(12,2) cannot be',
            'field "at": infinite, which no timestamptz is here',
            'field "made": outside the years 0001 to 9999',
            'field "day": outside the years 0001 to 9999',
        ]
        shown = [(each["op"], each["after"]["id"], each["after"]["day"]) for each in held.bad]
        assert shown == [("c", "0", None), ("c", "1", None), ("c", "2", None), ("c", "3", "10000-01-01")]
        assert list(held.contents()) == [("eu", 3)], "the row that was mended"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DROP COLUMN n", 'public.items has no column "n" any more'),
        ("RENAME COLUMN n TO m", 'public.items has no column "n" any more'),
        ("ALTER COLUMN n TYPE bigint", 'column "n" of public.items has got another type'),
        ("ALTER COLUMN price TYPE numeric(14,4)", 'column "price" of public.items has got another type'),
        ("DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (id)", '"region" is no longer part of its replica identity'),
        ("ADD COLUMN more text DEFAULT 'x'", None),
        ("ALTER COLUMN short TYPE varchar(40)", None),
        ("RENAME TO renamed", None),
    ],
)
def test_a_table_that_is_no_longer_what_it_was_fails_and_no_other(
    database: Database, change: str, why: str | None
) -> None:
    with database.connect() as connection:
        found = members(connection)
        database.run("INSERT INTO items (region, id) VALUES ('eu', 1)", f"ALTER TABLE items {change}")
        table = "renamed" if "renamed" in change else "items"
        database.run(f"INSERT INTO {table} (region, id) VALUES ('eu', 2)", "INSERT INTO small VALUES (1, 'a')")
        stream = said(connection)
        small = Held(found["small"])
        small.put(stream.decoded(1, 1, [found["small"]])["u2"])
        assert small.contents() == {(1,): (1, "a")}
        if why:
            with pytest.raises(ReferenceChanged, match=why):
                stream.decoded(1, 1, [found["items"]])
        else:
            items = Held(found["items"])
            items.put(stream.decoded(1, 1, [found["items"]])["u0"])
            assert sorted(items.contents()) == [("eu", 1), ("eu", 2)]


def test_what_a_snapshot_held_is_left_out_once(database: Database) -> None:
    """Two transactions are there while a snapshot is taken; the one that began first ends last."""
    with database.connect() as connection, database.connect(autocommit=False) as one, database.connect() as other:
        database.run("INSERT INTO small VALUES (1, 'before')")
        one.execute("INSERT INTO small VALUES (2, 'open')")
        other.execute("INSERT INTO small VALUES (3, 'committed')")
        (seen,) = connection.execute("SELECT pg_current_snapshot()::text").fetchone() or ("",)
        then = contents(connection, "small", ["id", "v"])
        other.execute("INSERT INTO small VALUES (4, 'after')")
        one.commit()
        (h,) = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("",)
        database.run("UPDATE small SET v = 'late' WHERE id = 1")
        plan = plan_of(spec_of(connection, "small", ("id",)), visible=(read_lsn(h), seen))
        found = said(connection).decoded(1, 1, [plan])["u1"]
        taken = sorted(each for one in found if one.data for each in one.data.batch.column("id").to_pylist())
        assert taken == [1, 2, 4], "the later change of 1, and what the snapshot did not see"
        held = Held(plan)
        names = ["id", "v", "_mz_tick", "_mz_lsn", "_mz_index"]
        rows = [dict(zip(names, (*row, 0, 0, 0), strict=True)) for row in then.values()]
        held.rows = pa.Table.from_pylist(rows, schema=held.schema)
        held.put(found)
        assert held.contents() == contents(connection, "small", ["id", "v"])
