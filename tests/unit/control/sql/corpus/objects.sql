-- Schemas, names, comments, the system, DROP, SHOW, EXPLAIN, and what would write. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

DROP SOURCE s
--> DROP SOURCE public.s

DROP SOURCE IF EXISTS a.s CASCADE
--> DROP SOURCE IF EXISTS a.s CASCADE

drop table "T"
--> DROP TABLE public."T"

DROP TABLE IF EXISTS t CASCADE
--> DROP TABLE IF EXISTS public.t CASCADE

SHOW SOURCES
--> SHOW SOURCES

SHOW CREATE SOURCE s
--> SHOW CREATE SOURCE public.s

SHOW CREATE TABLE a."t.t"
--> SHOW CREATE TABLE a."t.t"

SHOW CREATE t
--> SHOW CREATE public.t

SHOW CREATE "source".t
--> SHOW CREATE "source".t

SHOW CREATE SOURCE source.source
--> SHOW CREATE SOURCE source.source

INSERT INTO t VALUES (1)
--> INSERT INTO public.t

  update t set a = 1
--> UPDATE public.t

DROP SCHEMA s
--> DROP SCHEMA s

SHOW SCHEMAS
--> SHOW SCHEMAS

CREATE SCHEMA shop
--> CREATE SCHEMA shop

create schema if not exists "Shop 2"
--> CREATE SCHEMA IF NOT EXISTS "Shop 2"

DROP SCHEMA shop
--> DROP SCHEMA shop

DROP SCHEMA IF EXISTS shop CASCADE
--> DROP SCHEMA IF EXISTS shop CASCADE

DROP SCHEMA shop RESTRICT
--> DROP SCHEMA shop

DROP TABLE t RESTRICT
--> DROP TABLE public.t

DROP VIEW v
--> DROP VIEW public.v

DROP VIEW IF EXISTS shop.v CASCADE
--> DROP VIEW IF EXISTS shop.v CASCADE

DROP SOURCE s RESTRICT
--> DROP SOURCE public.s

ALTER SCHEMA shop RENAME TO store
--> ALTER SCHEMA shop RENAME TO store

ALTER SCHEMA blue SWAP WITH green
--> ALTER SCHEMA blue SWAP WITH green

ALTER SCHEMA blue SWAP WITH green FORCE
--> ALTER SCHEMA blue SWAP WITH green FORCE

ALTER VIEW v RENAME TO w
--> ALTER VIEW public.v RENAME TO w

ALTER VIEW shop."V" RENAME TO v
--> ALTER VIEW shop."V" RENAME TO v

ALTER SYSTEM SET force_source_table_syntax = true
--> ALTER SYSTEM SET force_source_table_syntax = true

alter system set FORCE_SOURCE_TABLE_SYNTAX to off
--> ALTER SYSTEM SET force_source_table_syntax = false

ALTER SYSTEM SET enable_create_table_from_source = 'False'
--> ALTER SYSTEM SET enable_create_table_from_source = false

ALTER SYSTEM SET enable_create_table_from_source = on
--> ALTER SYSTEM SET enable_create_table_from_source = true

ALTER SYSTEM SET status_history_retention = '30 days'
--> ALTER SYSTEM SET status_history_retention = '30 days'

ALTER SYSTEM SET limit_of_something = 005
--> ALTER SYSTEM SET limit_of_something = '5'

ALTER SYSTEM SET other = true
--> ALTER SYSTEM SET other = true

ALTER SYSTEM RESET force_source_table_syntax
--> ALTER SYSTEM RESET force_source_table_syntax

COMMENT ON SOURCE s IS 'orders of the shop'
--> COMMENT ON SOURCE public.s IS 'orders of the shop'

COMMENT ON TABLE shop.t IS 'it''s a
table'
--> COMMENT ON TABLE shop.t IS 'it''s a
table'

COMMENT ON VIEW v IS ''
--> COMMENT ON VIEW public.v IS ''

COMMENT ON SCHEMA shop IS '{{ x }} $(y) `z`'
--> COMMENT ON SCHEMA shop IS '{{ x }} $(y) `z`'

COMMENT ON COLUMN t.a IS 'ü 😀'
--> COMMENT ON COLUMN public.t.a IS 'ü 😀'

COMMENT ON COLUMN shop."T"."A b" IS NULL
--> COMMENT ON COLUMN shop."T"."A b" IS NULL

comment on source s is null
--> COMMENT ON SOURCE public.s IS NULL

SHOW SOURCES FROM shop
--> SHOW SOURCES FROM shop

SHOW TABLES IN "Shop"
--> SHOW TABLES FROM "Shop"

SHOW VIEWS
--> SHOW VIEWS

SHOW VIEWS FROM shop
--> SHOW VIEWS FROM shop

SHOW SUBSOURCES
--> SHOW SUBSOURCES

SHOW SUBSOURCES FROM shop
--> SHOW SUBSOURCES FROM shop

show schemas
--> SHOW SCHEMAS

SHOW CREATE VIEW v
--> SHOW CREATE VIEW public.v

SHOW CREATE VIEW view.view
--> SHOW CREATE VIEW view.view

SHOW CREATE "view"
--> SHOW CREATE public.view

SHOW CREATE "view".x
--> SHOW CREATE "view".x

SHOW CREATE "table"
--> SHOW CREATE public."table"

EXPLAIN DROP TABLE t CASCADE
--> EXPLAIN DROP TABLE public.t CASCADE

explain create table t from source s format json
--> EXPLAIN CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON

EXPLAIN ALTER TABLE a SWAP WITH b
--> EXPLAIN ALTER TABLE public.a SWAP WITH public.b

EXPLAIN ALTER TABLE a SWAP WITH b FORCE
--> EXPLAIN ALTER TABLE public.a SWAP WITH public.b FORCE

EXPLAIN SELECT 1
--> EXPLAIN SELECT 1

EXPLAIN SHOW TABLES
--> EXPLAIN SHOW TABLES

INSERT INTO t VALUES (1, 'x')
--> INSERT INTO public.t

insert into shop."T" (a, b) select 1, 2
--> INSERT INTO shop."T"

UPDATE t SET a = 1 WHERE b = 2
--> UPDATE public.t

UPDATE ONLY shop.t SET a = 1
--> UPDATE shop.t

DELETE FROM t
--> DELETE FROM public.t

DELETE FROM shop.t USING x WHERE t.a = x.a
--> DELETE FROM shop.t

ALTER;
--! line 1, column 6: expected SOURCE, TABLE, VIEW, SCHEMA or SYSTEM, found the end of the statement

ALTER VIEW v RESUME
--! line 1, column 14: expected RENAME TO, found RESUME

SHOW
--! line 1, column 5: expected SOURCES, TABLES, VIEWS, SUBSOURCES, SCHEMAS or CREATE, found the end of the statement

SHOW SOURCES LIKE 'x'
--! line 1, column 14: expected FROM or the end of the statement, found LIKE

SHOW CREATE
--! line 1, column 12: expected a name, found the end of the statement

SHOW CREATE SOURCE
--! line 1, column 19: expected a source name, found the end of the statement

SHOW CREATE TABLE t u
--! line 1, column 21: expected the end of the statement, found u

DROP SOURCE
--! line 1, column 12: expected a source name, found the end of the statement

DROP TABLE IF t
--! line 1, column 15: expected EXISTS, found t

DROP TABLE a, b
--! line 1, column 13: expected CASCADE, RESTRICT or the end of the statement, found ,

DROP TABLE a CASCADE CASCADE
--! line 1, column 22: expected the end of the statement, found CASCADE

DROP TABLE a.
--! line 1, column 14: expected a table name after the schema, found the end of the statement

DROP TABLE 'a'
--! line 1, column 12: expected a table name, found 'a'

DROP TABLE 1a
--! line 1, column 12: expected a table name, found 1

DROP TABLE select
--! line 1, column 12: expected a table name, found SELECT, a reserved word; to use it as a name, write "select"

SHOW SOURCES SHOW TABLES
--! line 1, column 14: expected FROM or the end of the statement, found SHOW

DROP TABLE `t`
--! line 1, column 12: unexpected character `

DROP TABLE {{ name }}
--! line 1, column 12: unexpected character {

DROP TABLE a\b
--! line 1, column 13: unexpected character \

DROP TABLE "a""
--! line 1, column 12: this quoted name never ends: expected a closing "

SHOW SOURCES /* a /* b */
--! line 1, column 14: this comment never ends: expected */

DROP TABLE $$t$$
--! line 1, column 12: expected a table name, found $$t$$

CREATE SCHEMA
--! line 1, column 14: expected a schema name, found the end of the statement

CREATE SCHEMA a.b
--! line 1, column 16: a schema's name has one part

CREATE SCHEMA 'a'
--! line 1, column 15: expected a schema name, found 'a'

CREATE SCHEMA a AUTHORIZATION b
--! line 1, column 17: expected the end of the statement, found AUTHORIZATION

CREATE SCHEMA ""
--! line 1, column 15: a schema name must not be empty

CREATE SCHEMA IF EXISTS a
--! line 1, column 18: expected NOT, found EXISTS

DROP SCHEMA a.b
--! line 1, column 14: a schema's name has one part

DROP SCHEMA
--! line 1, column 12: expected a schema name, found the end of the statement

DROP SCHEMA a CASCADE RESTRICT
--! line 1, column 23: expected the end of the statement, found RESTRICT

DROP VIEW
--! line 1, column 10: expected a view name, found the end of the statement

DROP SYSTEM x
--! line 1, column 6: DROP SYSTEM is not supported; DROP takes SOURCE, TABLE, VIEW or SCHEMA

ALTER SCHEMA a
--! line 1, column 15: expected RENAME TO or SWAP WITH, found the end of the statement

ALTER SCHEMA a SWAP WITH a
--! line 1, column 1: a schema cannot be swapped with itself

ALTER SCHEMA a SWAP WITH b.c
--! line 1, column 27: a schema's name has one part

ALTER SCHEMA a RENAME TO b.c
--! line 1, column 27: the new name has one part: a rename does not move anything to another schema

ALTER SCHEMA a OWNER TO b
--! line 1, column 16: expected RENAME TO or SWAP WITH, found OWNER

ALTER VIEW v
--! line 1, column 13: expected RENAME TO, found the end of the statement

ALTER VIEW v SWAP WITH w
--! line 1, column 14: expected RENAME TO, found SWAP

ALTER VIEW v AS SELECT 1
--! line 1, column 14: expected RENAME TO, found AS

ALTER SYSTEM
--! line 1, column 13: expected SET or RESET, found the end of the statement

ALTER SYSTEM SET
--! line 1, column 17: expected the name of a setting, found the end of the statement

ALTER SYSTEM SET x
--! line 1, column 19: expected =, found the end of the statement

ALTER SYSTEM SET x true
--! line 1, column 20: expected =, found true

ALTER SYSTEM SET x =
--! line 1, column 21: expected true, false, a string or a whole number, found the end of the statement

ALTER SYSTEM SET x = maybe
--! line 1, column 22: expected true, false, a string or a whole number, found maybe

ALTER SYSTEM SET x = 1.5
--! line 1, column 22: expected true, false, a string or a whole number, found 1.5

ALTER SYSTEM SET x = 'a' 'b'
--! line 1, column 26: expected the end of the statement, found 'b'

ALTER SYSTEM SET a.b = 1
--! line 1, column 19: expected =, found .

ALTER SYSTEM SET force_source_table_syntax = 7
--! line 1, column 46: force_source_table_syntax must be true or false

ALTER SYSTEM SET force_source_table_syntax = 'maybe'
--! line 1, column 46: force_source_table_syntax must be true or false

ALTER SYSTEM RESET
--! line 1, column 19: expected the name of a setting, found the end of the statement

ALTER SYSTEM RESET ALL
--! line 1, column 20: expected the name of a setting, found ALL, a reserved word; to use it as a name, write "all"

ALTER SYSTEM RESET x = 1
--! line 1, column 22: expected the end of the statement, found =

COMMENT
--! line 1, column 8: expected ON, found the end of the statement

COMMENT ON
--! line 1, column 11: expected SOURCE, TABLE, VIEW, SCHEMA or COLUMN, found the end of the statement

COMMENT ON INDEX i IS 'x'
--! line 1, column 12: expected SOURCE, TABLE, VIEW, SCHEMA or COLUMN, found INDEX

COMMENT ON TABLE t
--! line 1, column 19: expected IS, found the end of the statement

COMMENT ON TABLE t IS
--! line 1, column 22: expected a comment in single quotes or NULL, found the end of the statement

COMMENT ON TABLE t IS x
--! line 1, column 23: expected a comment in single quotes or NULL, found x

COMMENT ON TABLE t IS 5
--! line 1, column 23: expected a comment in single quotes or NULL, found 5

COMMENT ON COLUMN a IS 'x'
--! line 1, column 19: expected table.column or schema.table.column

COMMENT ON COLUMN a.b.c.d IS 'x'
--! line 1, column 24: a column has at most 3 parts, schema.table.column

COMMENT ON SCHEMA a.b IS 'x'
--! line 1, column 20: a schema's name has one part

COMMENT ON TABLE t IS 'x' 'y'
--! line 1, column 27: expected the end of the statement, found 'y'

SHOW SCHEMAS FROM a
--! line 1, column 14: expected the end of the statement, found FROM

SHOW TABLES FROM
--! line 1, column 17: expected a schema name, found the end of the statement

SHOW TABLES FROM a.b
--! line 1, column 19: a schema's name has one part

SHOW VIEWS LIKE 'x'
--! line 1, column 12: expected FROM or the end of the statement, found LIKE

SHOW ALL
--! line 1, column 6: SHOW ALL is not supported; SHOW takes SOURCES, TABLES, VIEWS, SUBSOURCES, SCHEMAS or CREATE

SHOW CREATE SCHEMA s
--! line 1, column 20: expected the end of the statement, found s

EXPLAIN
--! line 1, column 8: expected a statement to explain, found the end of the statement

EXPLAIN EXPLAIN SHOW TABLES
--! line 1, column 9: expected a statement to explain, found EXPLAIN

EXPLAIN BEGIN
--! line 1, column 9: expected a statement to explain, found BEGIN

EXPLAIN ANALYZE SELECT 1
--! line 1, column 9: ANALYZE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

EXPLAIN DROP
--! line 1, column 13: expected SOURCE, TABLE, VIEW or SCHEMA, found the end of the statement

INSERT t VALUES (1)
--! line 1, column 8: expected INTO, found t

INSERT INTO
--! line 1, column 12: expected a table name, found the end of the statement

INSERT INTO a.b.c VALUES (1)
--! line 1, column 16: a name has at most two parts, schema.name

UPDATE
--! line 1, column 7: expected a table name, found the end of the statement

UPDATE 't' SET a = 1
--! line 1, column 8: expected a table name, found 't'

DELETE t
--! line 1, column 8: expected FROM, found t

TRUNCATE t
--! line 1, column 1: TRUNCATE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE
--! line 1, column 1: MERGE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

COPY t FROM '/etc/passwd'
--! line 1, column 1: COPY is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

GRANT SELECT ON t TO u
--! line 1, column 1: GRANT is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT
