"""SELECT through the statement door: the same answers on both databases, typed, and nothing else can be read."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import text

from airflow_provider_mzshare.control.definition_errors import BadValue
from airflow_provider_mzshare.control.relations import fetching, query_errors
from airflow_provider_mzshare.control.relations.query_errors import (
    NoSuchRelation,
    NotInCatalog,
    TookTooLong,
    TooManyRows,
)
from airflow_provider_mzshare.control.views.view_errors import BadQuery, UnknownColumn
from airflow_provider_mzshare.errors import MzShareError, TransientError
from tests.support.relations import Described, Running

BIDS = 4


@pytest.fixture
def auction(described: Described) -> Described:
    described.run(
        "CREATE SOURCE a FROM LOAD GENERATOR AUCTION",
        'CREATE TABLE "Bids" FROM SOURCE a (REFERENCE bids)',
        'CREATE VIEW v AS SELECT count(*) AS n FROM "Bids"',
    )
    running = Running(described, "a")
    running.becomes("running")
    running.tick({BIDS: 10}, stats={"messages": 10, "bytes": 500})
    return described


def test_values_come_back_typed_on_either_database(auction: Described) -> None:
    row = auction.one("SELECT snapshot, columns, data_config, details FROM mz_source_exports")
    assert row["snapshot"] is True
    assert row["columns"][0] == {"name": "id", "type": "bigint"}
    assert row["data_config"] == {"encoding": "none", "envelope": "none"}
    assert row["details"]["partitions"] == [BIDS]
    assert auction.one("SELECT snapshot_committed AS yes, messages_received AS n FROM mz_source_statistics "
                       "WHERE bytes_received > 0") == {"yes": True, "n": 10}  # fmt: skip
    assert auction.query("SELECT columns FROM mz_source_references ORDER BY name LIMIT 1") == [
        {"columns": ["id", "org_id", "balance"]}
    ]
    assert auction.one("SELECT lower, upper, committed, number FROM mz_ticks") == {
        "lower": {}, "upper": {"4": 10}, "committed": True, "number": 1,
    }  # fmt: skip


ANSWERS: list[tuple[str, list[dict[str, object]]]] = [
        ("SELECT name FROM mz_sources", [{"name": "a"}]),
        ("SELECT name FROM mz_catalog.mz_sources AS s WHERE s.type = 'load-generator'", [{"name": "a"}]),
        ("SELECT count(*) FROM mz_tables JOIN mz_sources ON mz_sources.id = mz_tables.source_id", [{"count": 1}]),
        ("WITH x AS (SELECT id FROM mz_views) SELECT count(*) AS n FROM x", [{"n": 1}]),
        ("SELECT object_id, referenced_object_id FROM mz_object_dependencies ORDER BY 1",
         [{"object_id": "u2", "referenced_object_id": "u1"}, {"object_id": "u3", "referenced_object_id": "u2"}]),
        ("SELECT details ->> 'output' AS o FROM mz_source_exports", [{"o": "bids"}]),
        ("SELECT count(*) FROM mz_jobs", [{"count": 1}]),
        ("SELECT 1 AS a FROM mz_ticks", [{"a": 1}]),
        ("SELECT name FROM mz_sources WHERE name LIKE 'A%'", []),
        ('SELECT "partition", "offset", tick FROM a', [{"partition": 4, "offset": 10, "tick": 1}]),
        ("SELECT p.offset FROM public.a AS p WHERE p.offset > 3", [{"offset": 10}]),
        ("SELECT CASE WHEN name LIKE '%a%' THEN 'it''s %s' END AS said FROM mz_sources", [{"said": "it's %s"}]),
        ("SELECT max(number) AS n, true AS yes FROM mz_ticks", [{"n": 1, "yes": True}]),
        ("SELECT name FROM mz_schemas UNION SELECT name FROM mz_views ORDER BY 1", [{"name": "public"}, {"name": "v"}]),
        ("SELECT s.name FROM mz_sources AS s WHERE EXISTS (SELECT 1 FROM mz_tables AS t WHERE t.source_id = s.id)",
         [{"name": "a"}]),
    ]  # fmt: skip


def test_queries_are_answered_the_same_on_either_database(auction: Described) -> None:
    for query, rows in ANSWERS:
        assert auction.query(query) == rows, query


REFUSALS: list[tuple[str, type[MzShareError], str]] = [
    ("SELECT * FROM items", NoSuchRelation, "'items' is not a relation of the catalog"),
    ("SELECT * FROM mzshare.items", NoSuchRelation, "'mzshare.items' is not a relation"),
    ("SELECT * FROM mz_internal.items", NoSuchRelation, "'mz_internal.items' is not a relation"),
    ("SELECT * FROM mz_internal.mz_sources", NoSuchRelation, "did you mean mz_sources"),
    ("SELECT * FROM mz_source", NoSuchRelation, "did you mean mz_sources"),
    ("SELECT * FROM sqlite_master", NoSuchRelation, "'sqlite_master' is not a relation"),
    ("SELECT * FROM pg_catalog.pg_authid", NoSuchRelation, "pg_authid' is not a relation"),
    ('SELECT * FROM "Bids"', NotInCatalog, "mzshare read '\"Bids\"'"),
    ("SELECT * FROM v", NotInCatalog, "mzshare read v"),
    ("SELECT nope FROM mz_ticks", UnknownColumn, "there is no column 'nope'"),
    ("SELECT id FROM mz_sources, mz_tables", BadQuery, "column 'id' is in more than one relation"),
    ("SELECT pg_sleep(60)", BadQuery, "function pg_sleep"),
    ("SELECT pg_read_file('/etc/passwd')", BadQuery, "function pg_read_file"),
    ("SELECT readfile('/etc/passwd')", BadQuery, "function readfile"),
    ("SELECT load_extension('x')", BadQuery, "function load_extension"),
    ("SELECT set_config('role', 'x', false)", BadQuery, "function set_config"),
    ("SELECT query_to_xml('DELETE FROM items', true, true, '')", BadQuery, "function query_to_xml"),
    ("SELECT * FROM pg_ls_dir('.')", BadQuery, "pg_ls_dir"),
    ("WITH mz_sources AS (SELECT 1 AS x) SELECT * FROM mz_catalog.mz_sources", BadQuery, "use another name in WITH"),
    ("SELECT name FROM mz_schemas LIMIT 'a'", BadQuery, "cannot answer this"),
    ("SELECT 1 AS x, 2 AS x FROM mz_schemas", BadQuery, "more than one column 'x'"),
]


def test_nothing_else_can_be_read(auction: Described) -> None:
    for query, refusal, told in REFUSALS:
        with pytest.raises(refusal) as refused:
            auction.query(query)
        assert told in f"{refused.value.message} {refused.value.hint}", query


NO_QUERIES = [
    "WITH gone AS (DELETE FROM mz_sources RETURNING id) SELECT * FROM gone",
    "SELECT * INTO mine FROM mz_sources",
    "SELECT * FROM mz_sources FOR UPDATE",
    "SELECT 1; DELETE FROM mz_sources",
    "PRAGMA writable_schema = 1",
    "COPY mz_sources TO '/tmp/x'",
]


def test_what_is_no_query_is_refused(auction: Described) -> None:
    before = auction.statements()
    for statement in NO_QUERIES:
        with pytest.raises(MzShareError):
            auction.run(statement)
    assert auction.statements() == before


def test_the_transaction_of_a_query_is_read_only_and_writes_go_on_after_it(auction: Described) -> None:
    with auction.catalog.write() as session:
        with pytest.raises(BadQuery, match=r"read.?only|prohibited"):
            fetching.fetch(session, "CREATE TABLE mine (x int)")
        session.execute(text("DELETE FROM status_history"))
    assert auction.query("SELECT * FROM mz_source_status_history") == []
    auction.run("BEGIN; SELECT count(*) FROM mz_sources; CREATE SCHEMA later; COMMIT")
    assert len(auction.query("SELECT id FROM mz_schemas")) == 2


HIDING = [
    "WITH items AS (SELECT * FROM items) SELECT * FROM items",
    "WITH items AS (SELECT 1 AS a) SELECT x.a FROM items AS x JOIN (SELECT name FROM public.items) AS y ON true",
    "SELECT x.a FROM (WITH items AS (SELECT 1 AS a) SELECT a FROM items) AS x, items",
    "SELECT name FROM mz_sources WHERE id IN (SELECT id FROM items)",
    "SELECT name FROM mz_sources ORDER BY (SELECT count(*) FROM items)",
    "SELECT name FROM mz_sources LIMIT (SELECT count(*) FROM items)",
    "SELECT s.name FROM mz_sources AS s JOIN mz_tables AS t ON EXISTS (SELECT 1 FROM items)",
    "SELECT coalesce((SELECT max(name) FROM items), 'x') AS n FROM mz_schemas",
    "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM items)) AS n FROM mz_schemas",
    "SELECT row_number() OVER (ORDER BY (SELECT count(*) FROM items)) AS n FROM mz_schemas",
    "SELECT id FROM mz_sources GROUP BY id HAVING (SELECT count(*) FROM items) > 0",
    "SELECT * FROM (VALUES ((SELECT count(*) FROM items))) AS v (n)",
    "SELECT id FROM mz_sources UNION SELECT id FROM items",
    "SELECT a.id FROM mz_sources AS a, LATERAL (SELECT id FROM items) AS b",
    "SELECT * FROM (mz_sources AS s JOIN items AS i ON i.id = s.id)",
]


def test_what_is_hidden_in_a_query_is_found(auction: Described) -> None:
    for query in HIDING:
        with pytest.raises(MzShareError) as refused:
            auction.query(query)
        assert not isinstance(refused.value, TransientError), query


def test_the_catalogs_own_tables_cannot_be_reached_past_the_names_either(auction: Described) -> None:
    with auction.catalog.read() as session, pytest.raises(BadQuery, match=r"prohibited|does not exist"):
        fetching.fetch(session, "SELECT name FROM items")


def test_a_query_that_takes_too_long_is_ended(auction: Described) -> None:
    auction.run("ALTER SYSTEM SET query_timeout = '1 second'")
    many = " CROSS JOIN ".join(f"(SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 3) AS t{n}" for n in range(24))
    began = time.monotonic()
    with pytest.raises(TookTooLong, match="took more than 1 second and was stopped") as ended:
        auction.query(f"SELECT count(*) FROM {many}")
    assert "ALTER SYSTEM SET query_timeout" in ended.value.hint
    assert time.monotonic() - began < 20
    assert auction.query("SELECT name FROM mz_sources") == [{"name": "a"}]


@pytest.mark.parametrize("value", ["0 seconds", "11 minutes", "soon", True])
def test_a_query_must_have_some_time_and_not_too_much(auction: Described, value: object) -> None:
    with pytest.raises(BadValue, match="at most 10 minutes"):
        auction.run(f"ALTER SYSTEM SET query_timeout = {value if value is True else repr(value)}")


def test_no_pattern_keeps_a_query_from_its_end(auction: Described) -> None:
    """Some take Python's own expressions for ever, and nothing can end a function that SQLite has called."""
    text = "a" * 60
    asked = f"SELECT '{text}!' ~ '^(a+)+$' AS a, '{text}' ~ '^(a+)+$' AS b, 'x' ~ NULL AS c, 'Ab' ~ 'a' AS d"
    assert auction.query(asked) == [{"a": False, "b": True, "c": None, "d": False}]
    with pytest.raises(BadQuery, match=r"pattern|regular expression"):
        auction.query("SELECT 'x' ~ '(' AS a")
    assert auction.query("SELECT name FROM mz_sources WHERE name ~ '^a$'") == [{"name": "a"}]


def test_a_query_with_too_many_rows_says_so(auction: Described, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MAX_ROWS", 3)
    assert len(auction.query("SELECT id FROM mz_source_references AS r JOIN mz_sources ON true LIMIT 3")) == 3
    with pytest.raises(TooManyRows):
        auction.query("SELECT name FROM mz_source_references")
    assert query_errors.MAX_ROWS == 100_000


def test_names_are_taken_as_names_whatever_is_in_them(described: Described) -> None:
    odd = ['a"b', "x'); DROP TABLE items; --", "😀 %s %(x)s :y", "{{ ds }} $(id) `whoami` --conf"]
    for name in odd:
        quoted = name.replace('"', '""')
        described.run(f'CREATE SOURCE "{quoted}" FROM LOAD GENERATOR COUNTER')
        assert described.query(f'SELECT * FROM "{quoted}"') == []
        literal = name.replace("'", "''")
        assert described.query(f"SELECT name FROM mz_sources WHERE name = '{literal}'") == [{"name": name}]
    assert len(described.query("SELECT create_sql FROM mz_sources")) == len(odd)
    assert described.statements() == described.printed()
