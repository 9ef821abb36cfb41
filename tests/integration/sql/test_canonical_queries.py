"""The canonical print of a query means to a real PostgreSQL what was written."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from airflow_provider_mzshare.control.sql.script import Query, parse_script
from tests.support.postgres import Postgres

TABLES = """
    CREATE TABLE t (id bigint, "Name" text, amount numeric(12, 2), at timestamptz, data jsonb, "offset" int, key text);
    INSERT INTO t VALUES
        (1, 'a', 1.50, '2024-01-01 10:00+00', '{"a": {"b": 1}, "c": [1, 2]}', 7, 'x'),
        (2, 'B', -2.25, '2024-02-29 23:59:59+02', '{"a": null}', NULL, 'y'),
        (3, NULL, NULL, NULL, NULL, 9, 'x'), (4, 'it''s', 100, '1999-12-31 00:00+00', '[]', 0, '');
    CREATE TABLE "U" (id int, "T.x" text);
    INSERT INTO "U" VALUES (1, 'one'), (3, 'three'), (NULL, 'none');
"""
QUERIES = [
    "SELECT * FROM t", 'SELECT ID, "Name" AS name FROM T ORDER BY id DESC', 'SELECT "offset" FROM t',
    'SELECT t.id, u."T.x" FROM t LEFT JOIN "U" AS u ON u.id = t.id', 'SELECT id FROM t JOIN "U" USING (id)',
    'SELECT t.id FROM t, "U" u WHERE t.id = u.id', 'SELECT * FROM "U" CROSS JOIN (SELECT 1 AS one) AS x',
    "SELECT count(*), sum(amount), avg(amount), min(key), max(at) FROM t",
    "SELECT key, count(*) FROM t GROUP BY key HAVING count(*) > 1", "SELECT count(DISTINCT key) FROM t",
    "SELECT sum(amount) FILTER (WHERE amount > 0) FROM t", "SELECT string_agg(key, ',' ORDER BY id DESC) FROM t",
    "SELECT DISTINCT ON (key) key, id FROM t ORDER BY key, id DESC",
    "SELECT id FROM t ORDER BY \"offset\" NULLS FIRST, id",
    "SELECT id FROM t ORDER BY \"offset\" DESC", "SELECT id FROM t ORDER BY 1 LIMIT 2 OFFSET 1",
    "SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY",
    "SELECT id FROM t UNION SELECT id FROM t UNION ALL SELECT 9 EXCEPT SELECT 2 INTERSECT SELECT 2",
    "(SELECT id FROM t ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM t ORDER BY id DESC LIMIT 1)",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
    "WITH x AS MATERIALIZED (SELECT 1 AS a), y(b) AS (SELECT a + 1 FROM x) SELECT * FROM x, y",
    "SELECT row_number() OVER (PARTITION BY key ORDER BY id), lag(id, 1, 0) OVER (ORDER BY id) FROM t",
    "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT id::text || '!', amount::int, CAST(id AS numeric(5,1)), '5'::bigint, at::date FROM t",
    "SELECT data -> 'a', data ->> 'a', data -> 'a' ->> 'b', data #>> '{a,b}', data -> 'c' -> 0 FROM t",
    "SELECT data @> '{\"a\": null}', data ? 'a' FROM t", "SELECT id FROM t WHERE data ->> 'a' IS NULL",
    "SELECT CASE WHEN amount > 0 THEN 'p' WHEN amount < 0 THEN 'n' ELSE '?' END, CASE id WHEN 1 THEN 'x' END FROM t",
    "SELECT coalesce(amount, 0), nullif(key, 'x'), greatest(1, NULL, 3), least(2, 1) FROM t",
    "SELECT id BETWEEN 2 AND 3, key LIKE 'x%', key ILIKE 'X', \"Name\" ~ '^[aB]', \"Name\" !~* 'b' FROM t",
    "SELECT key NOT LIKE '_', key SIMILAR TO 'x|y', NOT key = 'x' FROM t",
    "SELECT amount IS NULL, amount IS NOT NULL, amount IS DISTINCT FROM 1.5, (id = 1) IS TRUE, NOT id = 1 FROM t",
    "SELECT id IN (1, 2), id NOT IN (SELECT id FROM \"U\" WHERE id IS NOT NULL), id = ANY (ARRAY[1, 3]) FROM t",
    "SELECT EXISTS (SELECT 1 FROM \"U\" u WHERE u.id = t.id), (SELECT max(id) FROM \"U\") FROM t",
    "SELECT 7 / 2, -7 / 2, 7 % 3, -7 % 3, 2 ^ 3, 2 ^ 3 ^ 2, 7.0 / 2, 1 + 2 * 3 - 4, (1 + 2) * 3, - -1, - 2 ^ 2, +3",
    "SELECT 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, 16 >> 2", "SELECT 1e3, .5, 5., 1.5E-3",
    "SELECT round(2.5), round(2.567, 2), floor(-1.5), ceil(1.2), abs(-3), mod(7, 3), power(2, 3), sqrt(9), trunc(1.9)",
    "SELECT lower('Ab'), upper('ab'), length('é😀'), substring('abcdef' FROM 2 FOR 3), substr('abc', 2), trim('  x ')",
    "SELECT replace('aXb', 'X', '-'), position('b' IN 'abc'), concat('a', NULL, 1)",
    "SELECT left('abc', 2), split_part('a,b', ',', 2)",
    "SELECT trim(both 'x' from 'xxaxx'), ltrim('  a'), rpad('a', 3, '-'), initcap('ab cd'), reverse('abc'), md5('x')",
    "SELECT date '2024-02-29' + 1, timestamp '2024-01-31 10:00' + interval '1 month', date_trunc('month', at) FROM t",
    "SELECT extract(year FROM at), extract(epoch FROM at), date_part('day', at), at AT TIME ZONE 'UTC' FROM t",
    "SELECT '1 day 02:00'::interval, interval '1' day, at - interval '90 minutes', age(at, at) FROM t",
    "SELECT interval '-1.5 days', interval '1d', interval '02:00', interval '1 month 3 days', interval '+2 hours'",
    "SELECT interval '1 year 2 months 3 days 04:05:06', interval '3 4:05:06', interval '1-2' year to month",
    "SELECT to_char(at, 'YYYY-MM-DD'), to_timestamp(0), make_date(2024, 1, 2) FROM t",
    "SELECT 'a''b', 'a\"b', 'x -- y', 'back\\slash', 'ü😀', 'two\nlines', '%s {{ x }} $1', ''",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, name) WHERE name <> 'a'",
    "SELECT i, i * 2 AS twice FROM generate_series(1, 5, 2) AS g(i)",
    "SELECT t.id, l.n FROM t, LATERAL (SELECT count(*) AS n FROM \"U\" u WHERE u.id <= t.id) AS l",
    "SELECT ARRAY[1, 2, 3], (ARRAY[1, 2, 3])[2], ARRAY[[1, 2], [3, 4]], array_length(ARRAY[1, 2], 1)",
    "SELECT 1 = ANY ('{1,2}'::int[])",
    "SELECT unnest(ARRAY[3, 1, 2]) AS x ORDER BY x", "SELECT ROW(1, 'a') = ROW(1, 'a'), (1, 2) < (1, 3)",
    "SELECT true AND false OR true, NOT true OR true, NULL OR true, true IS NOT FALSE",
    "SELECT a.id AS \"select\", a.\"Name\" AS \"x\"\"y\" FROM t AS a ORDER BY \"select\"",
    "SELECT grouping(key), key, count(*) FROM t GROUP BY ROLLUP (key)",
    "SELECT key, id, count(*) FROM t GROUP BY GROUPING SETS ((key), (id), ())",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM t", "SELECT every(id > 0), bool_or(id > 3) FROM t",
    "SELECT jsonb_build_object('a', id), to_jsonb(key), jsonb_array_length('[1, 2]'::jsonb) FROM t",
    "SELECT array_agg(id ORDER BY id DESC) FROM t", "SELECT max(id) FROM t WHERE key = 'x' AND (id > 1 OR amount < 5)",
]  # fmt: skip


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with postgres.connect(postgres.create_database()) as connection:
        connection.execute(TABLES)
        connection.execute("SET default_transaction_read_only = on")
        yield connection


@pytest.mark.parametrize("query", QUERIES)
def test_the_canonical_print_has_the_same_rows(database: psycopg.Connection[tuple[object, ...]], query: str) -> None:
    (transaction,) = parse_script(query)
    (statement,) = transaction.statements
    assert isinstance(statement, Query)
    written = database.execute(query.encode()).fetchall()
    canonical = database.execute(statement.text.encode()).fetchall()
    ordered = "ORDER BY" in query
    assert (canonical if ordered else sorted(canonical, key=repr)) == (
        written if ordered else sorted(written, key=repr)
    )
