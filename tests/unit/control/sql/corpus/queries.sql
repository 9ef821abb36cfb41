-- Views and SELECT. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

SELECT * FROM t
--> SELECT * FROM t

CREATE VIEW v AS SELECT 1
--> CREATE VIEW public.v AS SELECT 1

SELECT 1
--> SELECT 1

select A, "B" from T
--> SELECT a, "B" FROM t

SELECT * FROM shop.orders
--> SELECT * FROM shop.orders

SELECT "a", "A", "a b", "select" FROM "t", "T"
--> SELECT a, "A", "a b", "select" FROM t, "T"

SELECT offset, "offset", key, "date" FROM t
--> SELECT "offset", "offset", key, "date" FROM t

SELECT u5.a FROM "u5" AS u5
--> SELECT u5.a FROM u5 AS u5

SELECT a AS "x""y" FROM t WHERE b = 'it''s' AND c <> 'a"b'
--> SELECT a AS "x""y" FROM t WHERE b = 'it''s' AND c <> 'a"b'

SELECT count(*), sum(a) FILTER (WHERE b), My_Function(c) FROM t GROUP BY d HAVING count(*) > 1
--> SELECT COUNT(*), SUM(a) FILTER(WHERE b), MY_FUNCTION(c) FROM t GROUP BY d HAVING COUNT(*) > 1

SELECT DISTINCT a FROM t ORDER BY a DESC NULLS LAST LIMIT 5 OFFSET 2
--> SELECT DISTINCT a FROM t ORDER BY a DESC NULLS LAST LIMIT 5 OFFSET 2

SELECT a FROM t WHERE b IN (1, 2) OR c IN (SELECT d FROM u) OR EXISTS(SELECT 1 FROM v)
--> SELECT a FROM t WHERE b IN (1, 2) OR c IN (SELECT d FROM u) OR EXISTS(SELECT 1 FROM v)

SELECT t.a, u.b FROM t JOIN u ON t.id = u.id LEFT JOIN v USING (id) CROSS JOIN w
--> SELECT t.a, u.b FROM t JOIN u ON t.id = u.id LEFT JOIN v USING (id) CROSS JOIN w

SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT c FROM v EXCEPT SELECT d FROM w INTERSECT SELECT e FROM x
--> SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT c FROM v EXCEPT (SELECT d FROM w INTERSECT SELECT e FROM x)

(SELECT a FROM t)
--> SELECT a FROM t

(SELECT a FROM t ORDER BY 1 LIMIT 1) UNION ALL (SELECT b FROM u)
--> (SELECT a FROM t ORDER BY 1 LIMIT 1) UNION ALL (SELECT b FROM u)

WITH x AS (SELECT 1 AS a), y(b) AS (SELECT a FROM x) SELECT * FROM y
--> WITH x AS (SELECT 1 AS a), y(b) AS (SELECT a FROM x) SELECT * FROM y

WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n
--> WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n

SELECT a::int, CAST(b AS text), c::numeric(10, 2) FROM t
--> SELECT CAST(a AS INT), CAST(b AS TEXT), CAST(c AS DECIMAL(10, 2)) FROM t

SELECT CASE WHEN a > 0 THEN 'p' WHEN a < 0 THEN 'n' ELSE NULL END FROM t
--> SELECT CASE WHEN a > 0 THEN 'p' WHEN a < 0 THEN 'n' ELSE NULL END FROM t

SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
--> SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t

SELECT data -> 'a' ->> 'b', data #>> '{a,b}' FROM t
--> SELECT data -> 'a' ->> 'b', data #>> '{a,b}' FROM t

SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, name)
--> SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, "name")

SELECT * FROM generate_series(1, 3) AS g(i)
--> SELECT * FROM GENERATE_SERIES(1, 3) AS g(i)

SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a) AS l
--> SELECT a FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a) AS l

SELECT now() - INTERVAL '1 day', extract(year FROM at), date '2024-01-01' FROM t
--> SELECT CURRENT_TIMESTAMP - INTERVAL '1 DAY', EXTRACT(YEAR FROM at), CAST('2024-01-01' AS DATE) FROM t

SELECT -a, - -a, NOT b, a || 'x', a % 2, a ^ 2 FROM t
--> SELECT -a, - -a, NOT b, a || 'x', a % 2, POWER(a, 2) FROM t

SELECT a BETWEEN 1 AND 2, b LIKE 'x%', c ILIKE 'y', d ~ '^z', e IS NOT NULL, f IS DISTINCT FROM g FROM t
--> SELECT a BETWEEN 1 AND 2, b LIKE 'x%', c ILIKE 'y', d ~ '^z', e IS NOT NULL, f IS DISTINCT FROM g FROM t

SELECT ARRAY[1, 2], x[1], ROW(1, 2) FROM t
--> SELECT ARRAY[1, 2], x[1], ROW(1, 2) FROM t

SELECT coalesce(a, b), nullif(a, b), greatest(a, b) FROM t
--> SELECT COALESCE(a, b), NULLIF(a, b), GREATEST(a, b) FROM t

SELECT 'a -- b /* c */' /* gone */ FROM t -- gone too
--> SELECT 'a -- b /* c */' FROM t

SELECT source_id, messages_received FROM mz_internal.mz_source_statistics WHERE source_id = 'u1'
--> SELECT source_id, messages_received FROM mz_internal.mz_source_statistics WHERE source_id = 'u1'

CREATE VIEW v AS SELECT 1 AS a
--> CREATE VIEW public.v AS SELECT 1 AS a

create view if not exists Shop.V as select A from Orders as O
--> CREATE VIEW IF NOT EXISTS shop.v AS SELECT a FROM orders AS o

CREATE VIEW "V" AS WITH x AS (SELECT 1) SELECT * FROM x
--> CREATE VIEW public."V" AS WITH x AS (SELECT 1) SELECT * FROM x

CREATE VIEW v AS (SELECT 1 AS a)
--> CREATE VIEW public.v AS SELECT 1 AS a

CREATE VIEW v AS SELECT a FROM shop.t UNION ALL SELECT b FROM "Shop"."T"
--> CREATE VIEW public.v AS SELECT a FROM shop.t UNION ALL SELECT b FROM "Shop"."T"

SELECT interval '1 day 2 hours', '1 day 02:00'::interval, date_part('day', at) FROM t
--> SELECT INTERVAL '1 day 2 hours', CAST('1 day 02:00' AS INTERVAL), EXTRACT(DAY FROM at) FROM t

SELECT ARRAY[ARRAY[ARRAY[1, 2]]] FROM t
--> SELECT ARRAY[ARRAY[ARRAY[1, 2]]] FROM t

SELECT
--! line 1, column 1: this query selects nothing: expected a column or *

SELECT FROM t
--! line 1, column 13: this query selects nothing: expected a column or *

SELECT a b c
--! line 1, column 12: expected the end of the statement, found c

SELECT a,
--! line 1, column 9: nothing comes after this comma

SELECT a FROM
--! line 1, column 14: the query cannot be read here, at the end of the statement

SELECT (a
--! line 1, column 10: expected ), found the end of the statement

SELECT a)
--! line 1, column 9: expected the end of the statement, found )

SELECT 'a
--! line 1, column 8: this string never ends: expected a closing '

SELECT a FROM t WHERE
--! line 1, column 22: the query cannot be read here, at the end of the statement

SELECT a FROM t;;SELECT
--! line 1, column 18: this query selects nothing: expected a column or *

SELECT $1
--! line 1, column 8: $1 is not a name, and a query has no parameters

SELECT ?
--! line 1, column 1: a query only reads: a parameter is not allowed in it

SELECT :a
--! line 1, column 1: a query only reads: a parameter is not allowed in it

SELECT @a
--! line 1, column 1: a query only reads: a parameter is not allowed in it

SELECT E'a\n'
--! line 1, column 9: expected the end of the statement, found 'a\n'

SELECT x'1F'
--! line 1, column 9: expected the end of the statement, found '1F'

SELECT $$a$$
--! line 1, column 8: $$a$$ is not a name, and a query has no parameters

SELECT `a`
--! line 1, column 8: unexpected character `

SELECT {a}
--! line 1, column 8: unexpected character {

SELECT a FROM x.y.z
--! line 1, column 19: a name has at most two parts, schema.name

SELECT a INTO b FROM t
--! line 1, column 15: a query only reads: SELECT INTO is not allowed in it

SELECT a FROM t FOR UPDATE
--! line 1, column 1: a query only reads: FOR UPDATE or FOR SHARE is not allowed in it

SELECT a FROM t FOR SHARE OF t
--! line 1, column 30: a query only reads: FOR UPDATE or FOR SHARE is not allowed in it

WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x
--! line 1, column 19: expected ), found FROM

WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x
--! line 1, column 12: expected ), found INSERT

WITH x AS (SELECT 1) DELETE FROM t
--! line 1, column 29: the query cannot be read here, at FROM

WITH x AS (SELECT 1) INSERT INTO t SELECT 1
--! line 1, column 22: the query cannot be read here, at INSERT

WITH x AS SELECT 1
--! line 1, column 11: expected (, found SELECT

WITH x
--! line 1, column 7: expected (, found the end of the statement

SELECT 1 UNION
--! line 1, column 15: the query cannot be read here, at the end of the statement

SELECT 1; DROP
--! line 1, column 15: expected SOURCE, TABLE, VIEW or SCHEMA, found the end of the statement

VALUES (1)
--! line 1, column 1: VALUES is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

TABLE t
--! line 1, column 1: TABLE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

FROM t
--! line 1, column 1: FROM is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

CREATE VIEW v
--! line 1, column 14: expected AS, found the end of the statement

CREATE VIEW v AS
--! line 1, column 17: expected a query, SELECT …, found the end of the statement

CREATE VIEW v AS DROP TABLE t
--! line 1, column 18: expected a query, SELECT …, found DROP

CREATE VIEW v AS DELETE FROM t
--! line 1, column 18: expected a query, SELECT …, found DELETE

CREATE VIEW v AS VALUES (1)
--! line 1, column 18: expected a query, SELECT …, found VALUES

CREATE VIEW v AS SELECT 1; extra
--! line 1, column 28: EXTRA is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

CREATE VIEW v (a) AS SELECT 1
--! line 1, column 15: a view has no column list; name its columns in the query, as in SELECT a AS b

CREATE OR REPLACE VIEW v AS SELECT 1
--! line 1, column 8: CREATE OR is not supported; CREATE takes SOURCE, TABLE, VIEW, SCHEMA or SUBSOURCE

CREATE MATERIALIZED VIEW v AS SELECT 1
--! line 1, column 8: CREATE MATERIALIZED is not supported; CREATE takes SOURCE, TABLE, VIEW, SCHEMA or SUBSOURCE

CREATE VIEW v AS SELECT a FROM t
  WHERE a = (SELECT
    b FROM x.y.z)
--! line 3, column 16: a name has at most two parts, schema.name

CREATE VIEW v AS SELECT ""
--! line 1, column 25: a name must not be empty

SELECT a FROM ""
--! line 1, column 15: a name must not be empty

SELECT interval '1 day 02:00'
--! line 1, column 17: this interval cannot be stored as it is; write '1 day 02:00'::interval

SELECT interval '1 day ago' FROM t
--! line 1, column 17: this interval cannot be stored as it is; write '1 day ago'::interval

SELECT interval ''
--! line 1, column 17: this interval cannot be stored as it is; write ''::interval

SELECT user
--! line 1, column 8: USER is a reserved word; to use it as a name, write "user"

SELECT a AS end FROM t
--! line 1, column 13: END is a reserved word; to use it as a name, write "end"

SELECT 1a
--! line 1, column 8: 1a is not a number

SELECT 0x1F
--! line 1, column 8: 0x1F is not a number

SELECT a,, b FROM t
--! line 1, column 9: nothing comes after this comma

(SELECT a) t
--! line 1, column 1: this is not a query: expected SELECT …

SELECT a t, LATERAL (SELECT b FROM u) AS l
--! line 1, column 1: this query cannot be stored: its printed form would have another meaning; write it in a simpler way

SELECT ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[ARRAY[a]]]]]]]]]]]] FROM t
--! line 1, column 1: this query is too complex to be read: nest it less
