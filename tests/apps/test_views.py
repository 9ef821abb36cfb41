"""Views read through Spark: the rows are right, and of one tick per source, whatever is committed meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_mzshare import connect
from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.author_checks import run_checks
from airflow_provider_mzshare.control.lifecycle.check_table import DamagedTable
from airflow_provider_mzshare.control.lifecycle.read_table import Query, count_rows, open_table, read_frame, read_table
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.control.views.read_view import plan_query, run_plan
from airflow_provider_mzshare.control.views.resolving import resolve
from airflow_provider_mzshare.control.views.view_errors import UnknownRelation
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.collections.values import python_rows
from tests.support.filled import Filled
from tests.support.postgres import Postgres
from tests.support.reading_page import examples, rows_of
from tests.support.reading_page import run as run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Make = Callable[[str, str], None]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        yield Filled(catalog, tmp_path)


@pytest.fixture
def make(filled: Filled) -> Callable[[str, str], None]:
    return lambda name, query: run(filled, f"CREATE VIEW {name} AS {query}")


def run(filled: Filled, text: str) -> None:
    execute_script(filled.catalog, text, FixedConnections({}))


def rows(filled: Filled, name: str, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(filled.catalog, filled.root, name, **asked).to_pylist()
    return found


def ask(filled: Filled, query: str) -> list[tuple[Any, ...]]:
    with filled.catalog.read() as session:
        plan = plan_query(session, resolve(session, query))
    table = run_plan(plan, filled.root, lambda frame: frame.toArrow(), jars=None)
    return [tuple(row.values()) for row in table.to_pylist()]


QUESTIONS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT id, amount FROM orders WHERE id > 1 ORDER BY id", [(2, Decimal("2.50")), (3, None)]),
    ("SELECT id / 2 AS h, id % 2 AS r, -7 / 2 AS n FROM orders WHERE id = 3", [(1, 1, -3)]),
    ("SELECT (amount * 1)::int AS i, 2.5::int AS j, '7'::bigint AS k FROM orders WHERE id = 2", [(3, 3, 7)]),
    ("SELECT note || 'x' AS a, concat(note, NULL, 'y') AS b FROM orders WHERE id = 2", [("b\\nox", "b\\noy")]),
    (r"SELECT id FROM orders WHERE note = 'b\no'", [(2,)]),
    ("SELECT 'it''s \\ `x` $(y) {{ z }} -- no' AS t", [("it's \\ `x` $(y) {{ z }} -- no",)]),
    ("SELECT doc ->> 'a' AS a, doc -> 'b' ->> 'c' AS c FROM orders WHERE id = 1", [("1", "x")]),
    ("SELECT count(*), sum(amount), max(id) FILTER (WHERE amount > 2) AS m FROM orders", [(3, Decimal("4.00"), 2)]),
    ("WITH big AS (SELECT * FROM orders WHERE id > 1) SELECT count(*) FROM big", [(2,)]),
    ("SELECT o.id, n FROM orders o LEFT JOIN numbers USING (id) ORDER BY 1 DESC", [(3, None), (2, 20), (1, 10)]),
    ("SELECT id FROM orders EXCEPT SELECT id FROM numbers", [(3,)]),
    ("SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM numbers n WHERE n.id = o.id) ORDER BY 1", [(1,), (2,)]),
    ("SELECT x FROM unnest(ARRAY[2, 1]) AS g(x) ORDER BY x", [(1,), (2,)]),
    ("SELECT a FROM (VALUES (1), (2)) AS v(a) WHERE a = ANY(ARRAY[2, 3])", [(2,)]),
    ("SELECT row_number() OVER (ORDER BY amount) AS n, id FROM orders ORDER BY n", [(1, 1), (2, 2), (3, 3)]),
    ("SELECT sum(n) FROM numbers WHERE id > 99", [(None,)]),
    (
        (
            "SELECT abs(avg(x) - 4.0 / 3) < 0.0000001 AS a FROM (SELECT g, sum(b) AS x FROM "
            "(VALUES (1, 1::bigint), (2, 1::bigint), (3, 2::bigint)) AS v(g, b) GROUP BY g) AS q"
        ),
        [(True,)],
    ),
    ("SELECT s.offset, s.tick FROM s", [(3, 1)]),
    ("SELECT n.id, o.id AS other FROM numbers n JOIN far.orders o USING (id)", [(1, 1)]),
]


def test_answers_are_those_of_postgresql(spark: SparkSession, filled: Filled) -> None:
    source, other = filled.source(), filled.source("t")
    filled.table(source, "orders", "id bigint, amount numeric(12,2), note text, doc jsonb")
    filled.table(source, "numbers", "id bigint, n integer")
    filled.table(other, "orders", "id bigint", schema="far")
    filled.feed(
        source,
        [
            {"id": 1, "amount": 1.5, "note": "a", "doc": {"a": 1, "b": {"c": "x"}}, "n": 10},
            {"id": 2, "amount": 2.5, "note": "b\\no", "n": 20},
            {"id": 3, "n": "no number"},
        ],
    )
    filled.feed(other, [{"id": 1}])
    wrong = {query: (found, wanted) for query, wanted in QUESTIONS if (found := ask(filled, query)) != wanted}
    assert not wrong


ODD_COLUMNS = [
    "`", "a`b", "``", "x`.`y", "a.b", "a b", " led", "trailed ", "it's", 'say "x"', "ünïcødé 😀", "select", "from", "A",
    "n" * 255, "(a, b)", "{a}", "a;b", "a=b", "$(x)", "--", "/*", "%s", "\\", "1",
]  # fmt: skip
"""Each is a field of the records, too. A name with a backtick broke every view on its table."""


def test_views_read_columns_of_any_name(spark: SparkSession, filled: Filled, make: Make) -> None:
    source = filled.source()
    spec = TableSpec(
        reference="t", format="json", columns=tuple(ColumnSpec(name=name, type="bigint") for name in ODD_COLUMNS)
    )
    with filled.catalog.write() as session:
        items.create_table(session, name=("public", "odd"), source_id=source, spec=spec)
    record = {name: number for number, name in enumerate(ODD_COLUMNS)}
    make("before", "SELECT * FROM odd")
    assert rows(filled, "before") == []
    filled.feed(source, [record])
    assert rows(filled, "odd") == [record]
    make("everything", "SELECT * FROM odd")
    assert rows(filled, "everything") == [record]
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in ODD_COLUMNS)
    make("by_name", f"SELECT {quoted} FROM everything")
    assert rows(filled, "by_name") == [record]
    assert read_frame(spark, filled.catalog, filled.root, "odd").collect()[0].asDict() == record


SCALARS = """
    ascii(note); btrim(note); chr(65); chr(8364); chr(128512); concat(note, NULL, id); concat_ws('-', note, NULL, 'x')
    left(note, 2); length(note); lower(upper(note)); lpad(note, 7, 'xy'); ltrim(note); md5(note); right(note, 2)
    octet_length(note); position('b' in note); repeat(note, 2); replace(note, 'b', 'zz'); reverse(note)
    rpad(note, 2, 'x'); rtrim(note); split_part(note, 'b', 1); starts_with(note, 'a'); substring(note, 2, 2)
    substring(note from 2); translate(note, 'ab', 'x'); trim(both 'a' from note); note || id; note LIKE 'a%'
    note NOT LIKE '%\\%'; note ILIKE 'A%'; note ~ '^a'; note IN ('ab', 'x'); note BETWEEN 'a' AND 'b'; abs(-id)
    acos(0.5); asin(0.5); atan(0.5); atan2(1, 2); cbrt(8); ceil(1.5); cos(1); cot(1); degrees(1); exp(1)
    floor(-1.5); ln(2); mod(id, 2); -7 % 3; pi(); power(2, 3); 2 ^ 3; radians(1); round(2.5); round(-2.5)
    round(1.2345, 2); sign(-id); sin(1); sqrt(4); tan(1); id / 2; -7 / 2; 7 / 2.0; amount / 2; amount::int
    (-amount)::bigint; 0.5::int; '12'::int + 1; amount::text; true::int; id::int::boolean; id & 6; id | 8; id # 1
    1 << 3; (7 / 2 * 3 / 2)::text; (amount * (id / 2))::int / 2; ((id + 6) / 2 / 2)::numeric; concat(id / 2, 2.5::int)
    ~id; date '2024-02-29' + 1; (timestamp '2024-02-29 13:14:15' + interval '1 day 2 hours')::text
    date_trunc('hour', timestamp '2024-02-29 13:14:15'); extract(year from date '2024-02-29')
    extract(quarter from date '2024-02-29'); extract(week from date '2024-12-30')
    extract(doy from date '2024-02-29'); extract(second from timestamp '2024-02-29 13:14:15'); date('2024-02-29')
    coalesce(amount, 0); nullif(id, 1); greatest(id, 2, NULL); least(amount, 2); CASE WHEN id > 1 THEN 'x' END
    CASE id WHEN 1 THEN 'one' ELSE 'more' END; amount IS NULL; amount IS DISTINCT FROM 1.5; NULL = NULL; NOT id = 1
    id = ANY(ARRAY[1, 3]); doc::json ->> 'a'; doc::jsonb -> 'b' ->> 'c'
    (SELECT max(n) FROM numbers WHERE numbers.id = orders.id)
    EXISTS (SELECT 1 FROM numbers WHERE numbers.id > orders.id)
    'it''s \\ "x" `y` $z'; left(note, -2); left(note, id::int - 2); right(note, -1); right(note, 2 - id::int)
    substring(note, 0, 3); substring(note, -1, 3); substring(note from -1); substring(note, id::int - 2, 2)
    extract(year from date '2024-02-29') / 3; left(note, NULL); substring(note, NULL, 2); left(note, 0)
    right(note, 0); substring(note, id::int, 2147483647); left(left(note, -1), -1); right(note, -99); left(note, -99)
    substring(note, -5, 2); substring(note, 0); (id * 0.5)::int; (id / 2.0)::int; (id * 2.5)::int
    octet_length(note) / 2; round(2.5::double precision); round(3.5::double precision); round(-0.5::double precision)
    round(ceil(amount) / 2); (5000000001 + id) / 2; 1 / 30000000.0 * 1e6; 5000000001 / 2
    length(note) / 2; ceil(amount) / 2; floor(2.5) / 2
"""
AGGREGATES = """
    avg(id); avg(amount); bit_and(id); bit_or(id); bool_and(id > 0); bool_or(id > 5); corr(id, n); count(*)
    count(amount); count(DISTINCT note); covar_pop(id, n); covar_samp(id, n); every(id > 1); max(note); min(amount)
    stddev(id); stddev_pop(id); sum(id); sum(amount); variance(id); var_pop(id); sum(id) FILTER (WHERE id > 1)
    length(string_agg(note, ', ')); sum(id) / 4; sum(n) / 4; sum(DISTINCT id) / 4; sum(id + 9223372036854775800)
    coalesce(sum(id), 0) / 4; sum(id) * 1.0 / 30000000 * 1e6; 100.0 * sum(id) / count(*) / 7; avg(id)::int
    (sum(id) * 0.5)::int; avg(n)::int; sum(CASE WHEN id > 1 THEN 5000000001 ELSE 0 END) / 4; round(avg(n))
"""
WINDOWS = """
    cume_dist(); dense_rank(); first_value(id); lag(id); lead(id, 1, 0); last_value(id); nth_value(id, 2); ntile(2)
    percent_rank(); rank(); row_number(); sum(id)
"""
DATA = [
    {"id": 1, "amount": 1.5, "note": "abcab", "doc": {"a": 1, "b": {"c": "x"}}, "n": 10},
    {"id": 2, "amount": -2.5, "note": " b\\no ", "doc": {"a": "t"}, "n": 20},
    {"id": 3, "note": "ab", "n": 5},
]


def _listed(text: str) -> list[str]:
    return [part.strip() for line in text.split("\n") for part in line.split("; ") if part.strip()]


def _plain(value: Any) -> Any:
    """What kind of number it is, and how a time is shown, is not the question."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return round(float(value), 6)
    return str(value)


def test_functions_answer_as_postgresql_does(spark: SparkSession, filled: Filled, postgres: Postgres) -> None:
    source = filled.source()
    filled.table(source, "orders", "id bigint, amount numeric(12,2), note text, doc jsonb")
    filled.table(source, "numbers", "id bigint, n integer")
    filled.feed(source, DATA)
    over = " OVER (ORDER BY amount DESC, id)"
    asked = {
        "scalars": (_listed(SCALARS), "FROM orders ORDER BY id"),
        "aggregates": (_listed(AGGREGATES), "FROM orders JOIN numbers USING (id)"),
        "windows": ([one + over for one in _listed(WINDOWS)], "FROM orders ORDER BY id"),
    }
    queries = {
        kind: f"SELECT {', '.join(f'{one} AS c{n}' for n, one in enumerate(parts))} {rest}"
        for kind, (parts, rest) in asked.items()
    }
    name = postgres.create_database()
    with postgres.connect(name) as database:
        database.execute("CREATE TABLE orders (id bigint, amount numeric(12,2), note text, doc jsonb)")
        database.execute("CREATE TABLE numbers (id bigint, n integer)")
        for row in DATA:
            values = (row["id"], row.get("amount"), row["note"], json.dumps(row["doc"]) if "doc" in row else None)
            database.execute("INSERT INTO orders VALUES (%s, %s, %s, %s)", values)
            database.execute("INSERT INTO numbers VALUES (%s, %s)", (row["id"], row["n"]))
        theirs = {kind: database.execute(query).fetchall() for kind, query in queries.items()}
    postgres.drop_database(name)
    ours = {kind: ask(filled, query) for kind, query in queries.items()}
    wrong = {}
    for kind, (parts, _) in asked.items():
        for number, part in enumerate(parts):
            found, wanted = ([_plain(row[number]) for row in answer[kind]] for answer in (ours, theirs))
            if found != wanted:
                wrong[part] = (found, wanted)
    assert not wrong


def test_a_view_shows_one_tick_of_each_source(spark: SparkSession, filled: Filled, make: Make) -> None:
    source, other = filled.source(), filled.source("t")
    filled.table(source, "a", "id bigint")
    second = filled.table(source, "b", "id bigint")
    filled.table(other, "c", "id bigint")
    make("pairs", "SELECT a.id, b.id AS other FROM a FULL JOIN b ON a.id = b.id ORDER BY 1, 2")
    make("again", "SELECT count(*) AS n, max(tick) AS tick FROM pairs, s")
    make("either", "SELECT id FROM a UNION ALL SELECT id FROM c ORDER BY 1")
    assert rows(filled, "pairs") == []
    tick = filled.feed(source, [{"id": 1}])
    filled.feed(source, [{"id": 2}])
    # The second table stops here: what the first one has got since is of no tick that both have.
    filled.feed(source, [{"id": 3}], stall=[second])
    assert rows(filled, "a", query=Query(ordered=True)) == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert rows(filled, "pairs") == [{"id": 1, "other": 1}, {"id": 2, "other": 2}]
    assert rows(filled, "pairs", tick=1) == rows(filled, "pairs", as_of_ms=tick.mz_timestamp) == [{"id": 1, "other": 1}]
    assert rows(filled, "again") == [{"n": 2, "tick": 2}]
    assert rows(filled, "again", tick=1) == [{"n": 1, "tick": 1}]
    assert count_rows(filled.catalog, filled.root, "pairs") == 2
    assert rows(filled, "pairs", query=Query(columns=["other"], limit=1)) == [{"other": 1}]
    filled.feed(other, [{"id": 9}])
    assert rows(filled, "either") == [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 9}]
    frame = read_frame(spark, filled.catalog, filled.root, "pairs", tick=1)
    assert [row.asDict() for row in frame.collect()] == [{"id": 1, "other": 1}]
    assert not spark.catalog.listTables(), "nothing is left in the session of the caller"
    for asked, words in (
        ({"name": "either", "tick": 1}, "this query reads several: s, t"),
        ({"name": "pairs", "tick": 3}, "not final"),
        ({"name": "pairs", "query": Query(errors=True)}, "no errors of its own"),
        ({"name": "pairs", "query": Query(columns=["zzz"])}, "there is no column zzz"),
    ):
        with pytest.raises(NotReadable, match=words):
            rows(filled, **asked)  # type: ignore[arg-type]
    filled.table(source, "late", "id bigint")
    make("uneven", "SELECT late.id FROM late, a")
    with pytest.raises(NotReadable, match="late has no committed tick yet"):
        rows(filled, "uneven")


def test_what_spark_refuses_is_told_in_one_line(spark: SparkSession, filled: Filled, make: Make) -> None:
    source = filled.source()
    filled.table(source, "a", "id bigint")
    filled.feed(source, [{"id": 0}])
    make("v", "SELECT 1 / id AS n FROM a")
    with pytest.raises(NotReadable, match="DIVIDE_BY_ZERO") as caught:
        rows(filled, "v")
    assert "\n" not in caught.value.line


def test_the_command_line_reads_views_in_a_session_of_its_own(filled: Filled, make: Make, tmp_path: Path) -> None:
    source = filled.source()
    filled.table(source, "a", "id bigint")
    filled.feed(source, [{"id": 5}, {"id": 6}])
    make("v", "SELECT id, tick FROM a, s ORDER BY id DESC")
    env = {**os.environ, "MZSHARE_HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "airflow_provider_mzshare.cli.main",
        "read",
        "v",
        "--limit",
        "1",
        "--output",
        "json",
    ]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [{"id": 6, "tick": 1}]


def test_checks_are_selects_that_must_be_true_on_one_snapshot(spark: SparkSession, filled: Filled, make: Make) -> None:
    source = filled.source()
    old = filled.table(source, "orders", "id bigint")
    filled.table(source, "orders__next", "id bigint, n integer")
    filled.feed(source, [{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    # Only the new one gets this: both are compared as of the tick before.
    filled.feed(source, [{"id": 3, "n": 3}], stall=[old])
    make("v", "SELECT max(n) AS n FROM orders__next")
    stand_ins = {"old": QualifiedName("public", "orders"), "new": QualifiedName("public", "orders__next")}
    checks = {
        "SELECT (SELECT count(*) FROM new) = (SELECT count(*) FROM old)": (True, "true", {"s": 1}),
        "SELECT count(*) = 0 FROM (SELECT id FROM old EXCEPT SELECT id FROM new) AS lost": (True, "true", {"s": 1}),
        "SELECT count(*) = 3 FROM new": (True, "true", {"s": 2}),
        "SELECT n = 3 FROM v": (True, "true", {"s": 2}),
        "SELECT n > 5 FROM v": (False, "false", {"s": 2}),
        "SELECT 1": (False, "1", {}),
        "SELECT NULL::boolean": (False, "None", {}),
        "SELECT true WHERE false": (False, "no row", {}),
        "SELECT id > 0 FROM new": (False, "more than one row", {"s": 2}),
    }
    results = run_checks(filled.catalog, filled.root, list(checks), stand_ins=stand_ins)
    assert {one.check: (one.passed, one.found, dict(one.ticks)) for one in results} == checks
    with pytest.raises(UnknownRelation, match=r"public\.new|new"):
        run_checks(filled.catalog, filled.root, ["SELECT true FROM public.new"], stand_ins=stand_ins)


def test_spark_reads_a_table_as_the_page_says(
    spark: SparkSession, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.table(source := filled.source(), "orders", "id bigint, amount bigint")
    for number in range(5):
        filled.feed(source, [{"id": number, "amount": 7}])
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path))
    with connect() as mz:
        path, everything = mz.path("orders"), mz.read("orders").num_rows
    now, as_of = examples("Spark")
    assert rows_of(run_example(now, spark=spark, path=path)["frame"]) == [(n, 7) for n in range(everything)]
    assert rows_of(run_example(as_of, spark=spark)["frame"]) == [(n, 7) for n in range(3)]


def test_a_view_is_read_in_parts_in_its_order_with_times_that_python_cannot_hold(
    spark: SparkSession, filled: Filled, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_times, "hold", lambda given: given)  # As versions before did.
    far = 253_402_300_800_000_000
    source = filled.source()
    filled.table(source, "t", "n bigint", include=[Include(what="timestamp", name="at")])
    for first in (0, 1_500):
        numbers = range(first, first + 1_500)
        filled.feed(source, [{"n": n} for n in numbers], timestamps=[far + n * 1_000_000 for n in numbers])
    make("v", "SELECT n, at FROM t ORDER BY n DESC")
    with open_table(filled.catalog, filled.root, "v") as found:
        batches = list(found)
    read = [row for batch in batches for row in python_rows(batch)]
    assert [row["n"] for row in read] == list(range(2_999, -1, -1))
    assert read[-1]["at"] == "10000-01-01 00:00:00+00"
    assert max(batch.num_rows for batch in batches) < 3_000
    assert count_rows(filled.catalog, filled.root, "v") == 3_000


def test_a_view_of_a_damaged_table_names_the_damage(spark: SparkSession, filled: Filled, make: Make) -> None:
    source = filled.source()
    filled.table(source, "t", "n bigint")
    filled.feed(source, [{"n": n} for n in range(5)])
    make("v", "SELECT sum(n) AS s FROM t")
    (file,) = Path(filled.root).glob("*-data-*/*.parquet")
    os.truncate(file, 60)
    with pytest.raises(DamagedTable, match=f"{file.name} has 60 bytes"):
        read_table(filled.catalog, filled.root, "v")
