-- CREATE TABLE … FROM SOURCE and ALTER TABLE. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

CREATE TABLE t FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON

CREATE TABLE t FROM SOURCE s FORMAT TEXT
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT TEXT

CREATE TABLE t FROM SOURCE s FORMAT BYTES
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT BYTES

CREATE TABLE IF NOT EXISTS a.t FROM SOURCE b.s (REFERENCE orders) FORMAT JSON ENVELOPE NONE
--> CREATE TABLE IF NOT EXISTS a.t FROM SOURCE b.s (REFERENCE orders) FORMAT JSON

CREATE TABLE t FROM SOURCE s (REFERENCE 'shop.orders-v1') FORMAT JSON
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE "shop.orders-v1") FORMAT JSON

CREATE TABLE t FROM SOURCE s (REFERENCE "Orders") FORMAT JSON
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE "Orders") FORMAT JSON

CREATE TABLE t (a bool, b boolean, c smallint, d int2, e int, f int4, g integer, h bigint, i int8) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (a boolean, b boolean, c smallint, d smallint, e integer, f integer, g integer, h bigint, i bigint) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t (a real, b float4, c float8, d float, e double, f DOUBLE   PRECISION) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (a real, b real, c double precision, d double precision, e double precision, f double precision) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t (a numeric, b decimal, c dec, d numeric(10), e decimal(10, 2), f numeric(38,38)) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (a numeric(38,9), b numeric(38,9), c numeric(38,9), d numeric(10,0), e numeric(10,2), f numeric(38,38)) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t (a text, b varchar, c string, d character varying, e CHAR VARYING, f json, g jsonb) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (a text, b text, c text, d text, e text, f jsonb, g jsonb) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t (a date, b timestamp, c timestamp without time zone, d timestamptz, e TIMESTAMP WITH TIME ZONE) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (a date, b timestamp, c timestamp, d timestamptz, e timestamptz) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t (userId int, "userName" text, "order" int, offset bigint, key text, source text, type text, date date) FROM SOURCE s FORMAT JSON
--> CREATE TABLE public.t (userid integer, "userName" text, "order" integer, offset bigint, key text, source text, type text, date date) FROM SOURCE public.s FORMAT JSON

CREATE TABLE t FROM SOURCE s FORMAT TEXT INCLUDE PARTITION, OFFSET, TIMESTAMP, KEY
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT TEXT INCLUDE PARTITION, OFFSET, TIMESTAMP, KEY

CREATE TABLE t FROM SOURCE s FORMAT BYTES INCLUDE KEY AS "Key", OFFSET AS o, OFFSET AS offset, TIMESTAMP as ts ENVELOPE NONE WITH (RETAIN HISTORY FOR '1 day')
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT BYTES INCLUDE KEY AS "Key", OFFSET AS o, OFFSET, TIMESTAMP AS ts

CREATE TABLE t (id bigint) FROM SOURCE s FORMAT JSON WITH (ON DECODE ERROR = 'STOP', RETAIN HISTORY = FOR '2 days')
--> CREATE TABLE public.t (id bigint) FROM SOURCE public.s FORMAT JSON WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '2 days')

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR = '1h 30 minutes', ON DECODE ERROR 'record')
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON WITH (RETAIN HISTORY FOR '90 minutes')

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR '0s')
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON WITH (RETAIN HISTORY FOR '0 seconds')

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT = false)
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON WITH (SNAPSHOT FALSE)

CREATE TABLE IF NOT EXISTS t (snapshot text) FROM SOURCE s FORMAT JSON WITH (snapshot False, ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '2 days')
--> CREATE TABLE IF NOT EXISTS public.t (snapshot text) FROM SOURCE public.s FORMAT JSON WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '2 days', SNAPSHOT FALSE)

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT TRUE)
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON

alter table t resume
--> ALTER TABLE public.t RESUME

ALTER TABLE shop."T" RESNAPSHOT;
--> ALTER TABLE shop."T" RESNAPSHOT

ALTER TABLE resume RESUME
--> ALTER TABLE public.resume RESUME

CREATE TABLE t FROM SOURCE s (REFERENCE shop.orders) FORMAT JSON
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE shop.orders) FORMAT JSON

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (TEXT COLUMNS (a))
--> CREATE TABLE public.t FROM SOURCE public.s FORMAT JSON WITH (TEXT COLUMNS (a))

CREATE TABLE t FROM SOURCE s
--> CREATE TABLE public.t FROM SOURCE public.s

CREATE TABLE t FROM SOURCE s (REFERENCE users)
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE users)

CREATE TABLE t FROM SOURCE s (REFERENCE auction.users)
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE auction.users)

CREATE TABLE t FROM SOURCE s (REFERENCE = db.auction.users)
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE db.auction.users)

CREATE TABLE t FROM SOURCE s (REFERENCE "D.b"."S""c"."T t") ENVELOPE NONE
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE "D.b"."S""c"."T t")

CREATE TABLE t (id bigint, data bytea) FROM SOURCE s (REFERENCE auction.users)
--> CREATE TABLE public.t (id bigint, data bytea) FROM SOURCE public.s (REFERENCE auction.users)

CREATE TABLE t FROM SOURCE s (REFERENCE auction.users) WITH (TEXT COLUMNS (id, "Name"), EXCLUDE COLUMNS (org_id))
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE auction.users) WITH (TEXT COLUMNS (id, "Name"), EXCLUDE COLUMNS (org_id))

CREATE TABLE t FROM SOURCE s (REFERENCE auction.users) WITH (IGNORE COLUMNS = (org_id), TEXT COLUMNS = (id))
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE auction.users) WITH (TEXT COLUMNS (id), EXCLUDE COLUMNS (org_id))

CREATE TABLE t FROM SOURCE s (REFERENCE auction.users) WITH (RETAIN HISTORY = FOR '1 week', EXCLUDE COLUMNS (a), SNAPSHOT = false, ON DECODE ERROR = 'stop')
--> CREATE TABLE public.t FROM SOURCE public.s (REFERENCE auction.users) WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '7 days', SNAPSHOT FALSE, EXCLUDE COLUMNS (a))

CREATE TABLE t FROM SOURCE s WITH (RETAIN HISTORY FOR = '2h')
--> CREATE TABLE public.t FROM SOURCE public.s WITH (RETAIN HISTORY FOR '2 hours')

CREATE TABLE t (a text) FROM SOURCE s FORMAT JSON WITH (TEXT COLUMNS (a))
--> CREATE TABLE public.t (a text) FROM SOURCE public.s FORMAT JSON WITH (TEXT COLUMNS (a))

ALTER TABLE t SET (RETAIN HISTORY FOR '2 days')
--> ALTER TABLE public.t SET (RETAIN HISTORY FOR '2 days')

ALTER TABLE t SET (ON DECODE ERROR = 'stop', RETAIN HISTORY = FOR = '90m')
--> ALTER TABLE public.t SET (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '90 minutes')

alter table shop.t set (on decode error 'RECORD')
--> ALTER TABLE shop.t SET (ON DECODE ERROR 'RECORD')

ALTER TABLE t RESET (RETAIN HISTORY)
--> ALTER TABLE public.t RESET (RETAIN HISTORY)

ALTER TABLE t RESET (RETAIN HISTORY FOR, ON DECODE ERROR)
--> ALTER TABLE public.t RESET (RETAIN HISTORY, ON DECODE ERROR)

ALTER TABLE t RENAME TO u
--> ALTER TABLE public.t RENAME TO u

ALTER TABLE shop.t RENAME TO "select"
--> ALTER TABLE shop.t RENAME TO "select"

ALTER TABLE a SWAP WITH b
--> ALTER TABLE public.a SWAP WITH public.b

ALTER TABLE a SWAP WITH b force
--> ALTER TABLE public.a SWAP WITH public.b FORCE

ALTER TABLE force SWAP WITH "force" FORCE
--! line 1, column 1: a table cannot be swapped with itself

ALTER TABLE t SWAP WITH force
--> ALTER TABLE public.t SWAP WITH public.force

ALTER TABLE t SWAP WITH shop.force FORCE
--> ALTER TABLE public.t SWAP WITH shop.force FORCE

ALTER TABLE shop.a SWAP WITH stage."B"
--> ALTER TABLE shop.a SWAP WITH stage."B"

ALTER TABLE swap SWAP WITH rename
--> ALTER TABLE public.swap SWAP WITH public.rename

ALTER TABLE
--! line 1, column 12: expected a table name, found the end of the statement

ALTER TABLE t
--! line 1, column 14: expected RESUME, RESNAPSHOT, SET, RESET, RENAME TO or SWAP WITH, found the end of the statement

ALTER TABLE t RESUME NOW
--! line 1, column 22: expected the end of the statement, found NOW

ALTER TABLE t SET (SNAPSHOT false)
--! line 1, column 20: there is no option SNAPSHOT FALSE here; options are: ON DECODE ERROR, RETAIN HISTORY

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT)
--! line 1, column 56: expected TRUE or FALSE, found )

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT = 'false')
--! line 1, column 59: expected TRUE or FALSE, found 'false'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT = 0)
--! line 1, column 59: expected TRUE or FALSE, found 0

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT false, SNAPSHOT true)
--! line 1, column 64: SNAPSHOT is given twice

CREATE TABLE t
--! line 1, column 15: expected a column list or FROM SOURCE, found the end of the statement

CREATE TABLE t FROM s
--! line 1, column 16: expected a column list or FROM SOURCE, found FROM

CREATE TABLE t FROM WEBHOOK BODY FORMAT JSON
--! line 1, column 16: FROM WEBHOOK is not supported yet; use FROM SOURCE

CREATE TABLE FROM SOURCE s FORMAT JSON
--! line 1, column 14: expected a table name, found FROM, a reserved word; to use it as a name, write "from"

CREATE TABLE t () FROM SOURCE s FORMAT JSON
--! line 1, column 17: expected a column name, found )

CREATE TABLE t (a) FROM SOURCE s FORMAT JSON
--! line 1, column 18: expected a column type, found )

CREATE TABLE t (a int, PRIMARY KEY (a)) FROM SOURCE s FORMAT JSON
--! line 1, column 24: no key is enforced: write PRIMARY KEY (a) NOT ENFORCED

CREATE TABLE t (user int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: expected a column name, found USER, a reserved word; to use it as a name, write "user"

CREATE TABLE t (a int NOT NULL) FROM SOURCE s FORMAT JSON
--! line 1, column 23: expected , or ), found NOT

CREATE TABLE t (a uuid) FROM SOURCE s FORMAT JSON
--! line 1, column 19: uuid is not a column type; there are: boolean, smallint, integer, bigint, real, double precision, numeric, text, date, timestamp, timestamptz, jsonb

CREATE TABLE t (a "int") FROM SOURCE s FORMAT JSON
--! line 1, column 19: expected a column type, found "int"

CREATE TABLE t (a 'double precision') FROM SOURCE s FORMAT JSON
--! line 1, column 19: expected a column type, found 'double precision'

CREATE TABLE t (a primary key) FROM SOURCE s FORMAT JSON
--! line 1, column 19: primary key is not a column type; there are: boolean, smallint, integer, bigint, real, double precision, numeric, text, date, timestamp, timestamptz, jsonb

CREATE TABLE t (a bytea) FROM SOURCE s FORMAT JSON
--! line 1, column 19: column a: JSON has no bytea; take text

CREATE TABLE t (a varchar(10)) FROM SOURCE s FORMAT JSON
--! line 1, column 26: varchar takes no length or precision

CREATE TABLE t (a timestamp(3)) FROM SOURCE s FORMAT JSON
--! line 1, column 28: timestamp takes no length or precision

CREATE TABLE t (a timestamp with zone) FROM SOURCE s FORMAT JSON
--! line 1, column 34: expected TIME, found zone

CREATE TABLE t (a numeric(39,0)) FROM SOURCE s FORMAT JSON
--! line 1, column 19: numeric(39,0): precision is 1 to 38, scale at most the precision

CREATE TABLE t (a numeric(5,6)) FROM SOURCE s FORMAT JSON
--! line 1, column 19: numeric(5,6): precision is 1 to 38, scale at most the precision

CREATE TABLE t (a numeric(5,2,1)) FROM SOURCE s FORMAT JSON
--! line 1, column 26: numeric takes a precision and a scale, no more

CREATE TABLE t (a int,
                b int, a text) FROM SOURCE s FORMAT JSON
--! line 2, column 24: column a occurs twice

CREATE TABLE t ("id" int, "ID" int) FROM SOURCE s FORMAT JSON
--! line 1, column 27: column ID occurs twice, once as id: upper and lower case count as the same

CREATE TABLE t (offset int) FROM SOURCE s FORMAT JSON INCLUDE KEY, OFFSET
--! line 1, column 68: column offset occurs twice

CREATE TABLE t FROM SOURCE s FORMAT TEXT INCLUDE KEY AS "Data"
--! line 1, column 57: column Data occurs twice, once as data: upper and lower case count as the same

CREATE TABLE t (_mz_x int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: column _mz_x: names that begin with _mz_ are reserved (_mz_tick, _mz_partition, _mz_offset, _mz_lsn, _mz_index)

CREATE TABLE t FROM SOURCE s FORMAT TEXT INCLUDE OFFSET AS "_MZ_offset"
--! line 1, column 60: column _MZ_offset: names that begin with _mz_ are reserved (_mz_tick, _mz_partition, _mz_offset, _mz_lsn, _mz_index)

CREATE TABLE t ("a b" int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: column "a b": Delta does not allow blanks or ,;{}()= in a column name

CREATE TABLE t (a int) FROM SOURCE s FORMAT TEXT
--! line 1, column 17: a column list needs FORMAT JSON; FORMAT TEXT has the one column data

CREATE TABLE t FROM SOURCE s (orders) FORMAT JSON
--! line 1, column 31: expected REFERENCE, found orders

CREATE TABLE t FROM SOURCE s (REFERENCE '') FORMAT JSON
--! line 1, column 41: a reference must not be empty

CREATE TABLE t FROM SOURCE s FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION r
--! line 1, column 37: FORMAT AVRO is not supported yet; use JSON, TEXT or BYTES

CREATE TABLE t FROM SOURCE s FORMAT CSV WITH HEADER
--! line 1, column 37: FORMAT CSV is not supported yet; use JSON, TEXT or BYTES

CREATE TABLE t FROM SOURCE s FORMAT PROTOBUF
--! line 1, column 37: FORMAT PROTOBUF is not supported yet; use JSON, TEXT or BYTES

CREATE TABLE t FROM SOURCE s FORMAT XML
--! line 1, column 37: expected JSON, TEXT or BYTES, found XML

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE HEADERS
--! line 1, column 50: INCLUDE HEADERS is not supported yet; use PARTITION, OFFSET, TIMESTAMP or KEY

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE OFFSET,
--! line 1, column 57: expected PARTITION, OFFSET, TIMESTAMP or KEY, found the end of the statement

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE OFFSET AS
--! line 1, column 59: expected a column name, found the end of the statement

CREATE TABLE t FROM SOURCE s FORMAT JSON ENVELOPE NONE INCLUDE KEY
--! line 1, column 56: expected WITH or the end of the statement, found INCLUDE

CREATE TABLE t FROM SOURCE s FORMAT JSON x
--! line 1, column 42: expected INCLUDE, ENVELOPE, WITH or the end of the statement, found x

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (ON DECODE ERROR = 'SKIP')
--! line 1, column 66: ON DECODE ERROR must be 'RECORD' or 'STOP', not 'SKIP'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY '1 day')
--! line 1, column 63: expected FOR, found '1 day'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR 'ever')
--! line 1, column 67: RETAIN HISTORY FOR 'ever' is not a duration such as '500ms', '10s' or '1 day'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR '1500ms')
--! line 1, column 67: RETAIN HISTORY FOR '1500ms' is not a whole number of seconds

CREATE TABLE t FROM SOURCE s (REFERENCE a.b.c.d)
--! line 1, column 46: a reference has at most 3 parts, database.schema.name

CREATE TABLE t FROM SOURCE s (REFERENCE a.)
--! line 1, column 43: expected a reference after the dot, found )

CREATE TABLE t FROM SOURCE s (REFERENCE a.'b')
--! line 1, column 43: expected a reference after the dot, found 'b'

CREATE TABLE t FROM SOURCE s (REFERENCE 'a'.b)
--! line 1, column 44: expected ), found .

CREATE TABLE t FROM SOURCE s (REFERENCE)
--! line 1, column 40: expected a reference, found )

CREATE TABLE t FROM SOURCE s (REFERENCE a, b)
--! line 1, column 42: expected ), found ,

CREATE TABLE t FROM SOURCE s INCLUDE KEY
--! line 1, column 38: INCLUDE needs FORMAT: without it the columns are the upstream's own

CREATE TABLE t FROM SOURCE s FORMAT NONE
--! line 1, column 37: expected JSON, TEXT or BYTES, found NONE

CREATE TABLE t FROM SOURCE s FOR ALL TABLES
--! line 1, column 30: expected FORMAT, INCLUDE, ENVELOPE, WITH or the end of the statement, found FOR

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS)
--! line 1, column 48: expected (, found )

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS ())
--! line 1, column 50: expected a column name, found )

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS (a.b))
--! line 1, column 51: expected , or ), found .

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS ('a'))
--! line 1, column 50: expected a column name, found 'a'

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS (a, b, a))
--! line 1, column 56: column a is given twice

CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS (a, b), EXCLUDE COLUMNS (c, b))
--! line 1, column 77: column b is given twice

CREATE TABLE t FROM SOURCE s WITH (EXCLUDE COLUMNS (a), IGNORE COLUMNS (b))
--! line 1, column 57: EXCLUDE COLUMNS is given twice

CREATE TABLE t (id bigint, ID bigint) FROM SOURCE s
--! line 1, column 28: column id occurs twice

CREATE TABLE t (_mz_tick bigint) FROM SOURCE s
--! line 1, column 17: column _mz_tick: names that begin with _mz_ are reserved (_mz_tick, _mz_partition, _mz_offset, _mz_lsn, _mz_index)

CREATE TABLE t FROM WEBHOOK
--! line 1, column 16: FROM WEBHOOK is not supported yet; use FROM SOURCE

CREATE TABLE t (a int)
--! line 1, column 23: expected FROM SOURCE, found the end of the statement

CREATE TEMPORARY TABLE t FROM SOURCE s
--! line 1, column 8: CREATE TEMPORARY is not supported; CREATE takes SOURCE, TABLE, VIEW, SCHEMA or SUBSOURCE

ALTER TABLE t SET
--! line 1, column 18: expected (, found the end of the statement

ALTER TABLE t SET ()
--! line 1, column 20: expected ON DECODE ERROR or RETAIN HISTORY, found )

ALTER TABLE t SET (SNAPSHOT true)
--! line 1, column 20: there is no option SNAPSHOT TRUE here; options are: ON DECODE ERROR, RETAIN HISTORY

ALTER TABLE t SET (TEXT COLUMNS (a))
--! line 1, column 20: there is no option TEXT COLUMNS here; options are: ON DECODE ERROR, RETAIN HISTORY

ALTER TABLE t SET (RETAIN HISTORY FOR 5)
--! line 1, column 39: expected a duration such as '1 day', found 5

ALTER TABLE t SET (RETAIN HISTORY FOR '1ms')
--! line 1, column 39: RETAIN HISTORY FOR '1ms' is not a whole number of seconds

ALTER TABLE t SET (ON DECODE ERROR 'IGNORE')
--! line 1, column 36: ON DECODE ERROR must be 'RECORD' or 'STOP', not 'IGNORE'

ALTER TABLE t SET (ON DECODE ERROR 'STOP', ON DECODE ERROR 'STOP')
--! line 1, column 44: ON DECODE ERROR is given twice

ALTER TABLE t RESET (SNAPSHOT)
--! line 1, column 22: there is no option SNAPSHOT here; options are: ON DECODE ERROR, RETAIN HISTORY

ALTER TABLE t RESET (RETAIN HISTORY FOR '1 day')
--! line 1, column 41: expected , or ), found '1 day'

ALTER TABLE t RENAME u
--! line 1, column 22: expected TO, found u

ALTER TABLE t RENAME TO
--! line 1, column 24: expected a new name, found the end of the statement

ALTER TABLE t RENAME TO a.b
--! line 1, column 26: the new name has one part: a rename does not move anything to another schema

ALTER TABLE t RENAME COLUMN a TO b
--! line 1, column 22: expected TO, found COLUMN

ALTER TABLE t SWAP b
--! line 1, column 20: expected WITH, found b

ALTER TABLE t SWAP WITH
--! line 1, column 24: expected a table name, found the end of the statement

ALTER TABLE t SWAP WITH b, c
--! line 1, column 26: expected FORCE or the end of the statement, found ,

ALTER TABLE t SWAP WITH b FORCE FORCE
--! line 1, column 33: expected the end of the statement, found FORCE

ALTER TABLE t SWAP WITH public.t
--! line 1, column 1: a table cannot be swapped with itself

ALTER TABLE t ADD COLUMN a int
--! line 1, column 15: expected RESUME, RESNAPSHOT, SET, RESET, RENAME TO or SWAP WITH, found ADD

ALTER TABLE IF EXISTS t RESUME
--! line 1, column 13: expected a table name, found IF, a reserved word; to use it as a name, write "if"
