-- Old syntax: outputs of sources, subsources. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT TEXT ENVELOPE NONE
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT TEXT

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT BYTES INCLUDE PARTITION, OFFSET AS o, TIMESTAMP, KEY AS "K"
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT BYTES INCLUDE PARTITION, OFFSET AS o, TIMESTAMP, KEY AS "K"

CREATE SOURCE s (id bigint, "Name" varchar) FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (5)) FORMAT JSON INCLUDE KEY ENVELOPE NONE WITH (BACKFILL RATE = 10)
--> CREATE SOURCE public.s (id bigint, "Name" text) FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (5)) FORMAT JSON INCLUDE KEY WITH (BACKFILL RATE 10)

CREATE SOURCE IF NOT EXISTS s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS p
--> CREATE SOURCE IF NOT EXISTS public.s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS public.p

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS a."P" WITH (CUTOVER WAIT '1s')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS a."P" WITH (CUTOVER WAIT '1 second')

CREATE SOURCE s FROM LOAD GENERATOR COUNTER ENVELOPE NONE
--> CREATE SOURCE public.s FROM LOAD GENERATOR COUNTER ENVELOPE NONE

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE (KEYS 3) ENVELOPE NONE EXPOSE PROGRESS AS p
--> CREATE SOURCE public.s FROM LOAD GENERATOR KEY VALUE (KEYS 3) ENVELOPE NONE EXPOSE PROGRESS AS public.p

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR ALL TABLES

create source s from load generator auction (seed 1) for all tables expose progress as s_p with (trigger interval '2s')
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION (SEED 1) FOR ALL TABLES EXPOSE PROGRESS AS public.s_p WITH (TRIGGER INTERVAL '2 seconds')

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction)
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction)

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction, "Other Schema")
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction, "Other Schema")

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (users)
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS public.users)

CREATE SOURCE shop.s FROM LOAD GENERATOR AUCTION FOR TABLES (users, bids AS b, auction.accounts AS other."Acc", db.auction.auctions)
--> CREATE SOURCE shop.s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS shop.users, bids AS public.b, auction.accounts AS other."Acc", db.auction.auctions AS shop.auctions)

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES ("a.b"."c""d" AS "e.f")
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR TABLES ("a.b"."c""d" AS public."e.f")

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS (users.name, auction.bids.amount))
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS (users.name, auction.bids.amount))

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (IGNORE COLUMNS = (bids.amount), TEXT COLUMNS = ("Users"."N""ame"), MAX RECORDS PER TICK 5)
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (MAX RECORDS PER TICK 5, TEXT COLUMNS ("Users"."N""ame"), EXCLUDE COLUMNS (bids.amount))

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (users) WITH (EXCLUDE COLUMNS (db.auction.users.name))
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS public.users) WITH (EXCLUDE COLUMNS (db.auction.users.name))

ALTER SOURCE s ADD SUBSOURCE users
--> ALTER SOURCE public.s ADD SUBSOURCE users

ALTER SOURCE s ADD TABLE auction.users AS u, bids
--> ALTER SOURCE public.s ADD SUBSOURCE auction.users AS public.u, bids

ALTER SOURCE shop.s ADD SUBSOURCE bids AS shop.b WITH (TEXT COLUMNS (bids.amount), EXCLUDE COLUMNS (bids.id))
--> ALTER SOURCE shop.s ADD SUBSOURCE bids AS shop.b WITH (TEXT COLUMNS (bids.amount), EXCLUDE COLUMNS (bids.id))

ALTER SOURCE s DROP SUBSOURCE users
--> ALTER SOURCE public.s DROP SUBSOURCE public.users

ALTER SOURCE s DROP TABLE IF EXISTS users, shop.bids CASCADE
--> ALTER SOURCE public.s DROP SUBSOURCE IF EXISTS public.users, shop.bids CASCADE

ALTER SOURCE s DROP SUBSOURCE users RESTRICT
--> ALTER SOURCE public.s DROP SUBSOURCE public.users

ALTER SOURCE add ADD SUBSOURCE add AS add
--> ALTER SOURCE public.add ADD SUBSOURCE add AS public.add

CREATE SUBSOURCE users (id bigint, name text) OF SOURCE s WITH (EXTERNAL REFERENCE = auction.users)
--> CREATE SUBSOURCE public.users (id bigint, name text) OF SOURCE public.s WITH (EXTERNAL REFERENCE auction.users)

CREATE SUBSOURCE shop.u (id bigint, raw bytea) OF SOURCE shop.s WITH (EXTERNAL REFERENCE db.auction.users, TEXT COLUMNS (id), EXCLUDE COLUMNS (name))
--> CREATE SUBSOURCE shop.u (id bigint, raw bytea) OF SOURCE shop.s WITH (EXTERNAL REFERENCE db.auction.users, TEXT COLUMNS (id), EXCLUDE COLUMNS (name))

CREATE SUBSOURCE u OF SOURCE s WITH (IGNORE COLUMNS (a), EXTERNAL REFERENCE 'users')
--> CREATE SUBSOURCE public.u OF SOURCE public.s WITH (EXTERNAL REFERENCE users, EXCLUDE COLUMNS (a))

CREATE SUBSOURCE s_progress ("partition" int, "offset" bigint) OF SOURCE s WITH (PROGRESS)
--> CREATE SUBSOURCE public.s_progress (partition integer, offset bigint) OF SOURCE public.s WITH (PROGRESS)

CREATE SUBSOURCE s_progress OF SOURCE s WITH (progress)
--> CREATE SUBSOURCE public.s_progress OF SOURCE public.s WITH (PROGRESS)

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') KEY FORMAT JSON VALUE FORMAT JSON
--! line 1, column 53: KEY FORMAT JSON decodes nothing: add INCLUDE KEY, or write FORMAT JSON alone

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT AVRO
--! line 1, column 60: FORMAT AVRO is not supported yet; use JSON, TEXT or BYTES

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT
--! line 1, column 59: expected JSON, TEXT or BYTES, found the end of the statement

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') ENVELOPE NONE
--! line 1, column 53: ENVELOPE is not allowed here: an old-style KAFKA source needs FORMAT

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') INCLUDE KEY
--! line 1, column 61: INCLUDE is not allowed here: an old-style KAFKA source needs FORMAT

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON INCLUDE HEADERS
--! line 1, column 73: INCLUDE HEADERS is not supported yet; use PARTITION, OFFSET, TIMESTAMP or KEY

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON FOR ALL TABLES
--! line 1, column 65: FOR ALL TABLES is not allowed here: a KAFKA source has one output

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FOR TABLES (t)
--! line 1, column 53: FOR TABLES is not allowed here: a KAFKA source has one output

CREATE SOURCE s (a int) FROM KAFKA CONNECTION c (TOPIC 't')
--! line 1, column 18: a column list is not allowed here: an old-style KAFKA source needs FORMAT

CREATE SOURCE s (a int) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT TEXT
--! line 1, column 18: a column list needs FORMAT JSON; FORMAT TEXT has the one column data

CREATE SOURCE s (a int, A text) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--! line 1, column 25: column a occurs twice

CREATE SOURCE s (a int, "A" text) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--! line 1, column 25: column A occurs twice, once as a: upper and lower case count as the same

CREATE SOURCE s (a bytea) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--! line 1, column 20: column a: JSON has no bytea; take text

CREATE SOURCE s () FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--! line 1, column 18: expected a column name, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT TEXT INCLUDE KEY AS data
--! line 1, column 80: column data occurs twice

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON WITH (TEXT COLUMNS (t.a))
--! line 1, column 71: on a source, TEXT COLUMNS needs FOR ALL TABLES; otherwise use it in CREATE TABLE

CREATE SOURCE s FROM LOAD GENERATOR AUCTION WITH (EXCLUDE COLUMNS (users.name))
--! line 1, column 51: on a source, EXCLUDE COLUMNS needs FOR ALL TABLES; otherwise use it in CREATE TABLE

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') EXPOSE PROGRESS AS p
--! line 1, column 72: EXPOSE PROGRESS AS is only for old syntax: the source's own relation is its progress

CREATE SOURCE s FROM LOAD GENERATOR AUCTION EXPOSE PROGRESS AS p
--! line 1, column 64: EXPOSE PROGRESS AS is only for old syntax: the source's own relation is its progress

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS
--! line 1, column 80: expected AS, found the end of the statement

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON EXPOSE PROGRESS AS
--! line 1, column 83: expected a name for the progress, found the end of the statement

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON WITH (SNAPSHOT false)
--! line 1, column 71: there is no option SNAPSHOT FALSE here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL, TEXT COLUMNS, EXCLUDE COLUMNS

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON extra
--! line 1, column 65: expected INCLUDE, ENVELOPE, EXPOSE PROGRESS AS, WITH or the end of the statement, found extra

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON ENVELOPE NONE extra
--! line 1, column 79: expected EXPOSE PROGRESS AS, WITH or the end of the statement, found extra

CREATE SOURCE s (a int) FROM LOAD GENERATOR COUNTER ENVELOPE NONE
--! line 1, column 18: a column list is not allowed here: a LOAD GENERATOR has columns of its own

CREATE SOURCE s FROM LOAD GENERATOR COUNTER FORMAT JSON
--! line 1, column 45: FORMAT is not allowed here: a LOAD GENERATOR has columns of its own

CREATE SOURCE s FROM LOAD GENERATOR COUNTER INCLUDE KEY ENVELOPE NONE
--! line 1, column 53: INCLUDE is not allowed here: a LOAD GENERATOR has columns of its own

CREATE SOURCE s FROM LOAD GENERATOR COUNTER FOR ALL TABLES
--! line 1, column 45: FOR ALL TABLES is not allowed here: COUNTER has one output

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE FOR TABLES (key_value)
--! line 1, column 47: FOR TABLES is not allowed here: KEY VALUE has one output

CREATE SOURCE s FROM LOAD GENERATOR AUCTION ENVELOPE NONE
--! line 1, column 45: ENVELOPE is not allowed here: AUCTION has several outputs; FOR ALL TABLES makes them

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR
--! line 1, column 48: expected ALL TABLES, SCHEMAS or TABLES, found the end of the statement

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL
--! line 1, column 52: expected TABLES, found the end of the statement

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR EVERYTHING
--! line 1, column 49: expected ALL TABLES, SCHEMAS or TABLES, found EVERYTHING

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR SCHEMAS
--! line 1, column 56: expected (, found the end of the statement

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (a, b, A)
--! line 1, column 64: schema a is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR SCHEMAS (a.b)
--! line 1, column 59: expected , or ), found .

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES ()
--! line 1, column 57: expected a reference, found )

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS)
--! line 1, column 65: expected a subsource name, found )

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS a,
  users AS b)
--! line 2, column 3: reference users is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (users AS a, bids AS public.a)
--! line 1, column 69: subsource public.a is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR TABLES (a.b.c.d)
--! line 1, column 62: a reference has at most 3 parts, database.schema.name

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES FOR ALL TABLES
--! line 1, column 60: expected EXPOSE PROGRESS AS, WITH or the end of the statement, found FOR

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS (users.a, users.a))
--! line 1, column 89: column users.a is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS (users.a), IGNORE COLUMNS (users.a))
--! line 1, column 106: column users.a is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (EXCLUDE COLUMNS (users.a), IGNORE COLUMNS (users.b))
--! line 1, column 93: EXCLUDE COLUMNS is given twice

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS (a.b.c.d.e))
--! line 1, column 87: a column has at most 4 parts, database.schema.name.column

CREATE SOURCE s FROM LOAD GENERATOR AUCTION FOR ALL TABLES WITH (TEXT COLUMNS users.a)
--! line 1, column 79: expected (, found users

ALTER SOURCE s ADD users
--! line 1, column 20: expected SUBSOURCE or TABLE, found users

ALTER SOURCE s ADD SUBSOURCE
--! line 1, column 29: expected a reference, found the end of the statement

ALTER SOURCE s ADD SUBSOURCE users, users AS b
--! line 1, column 37: reference users is given twice

ALTER SOURCE s ADD SUBSOURCE users WITH (SNAPSHOT false)
--! line 1, column 42: there is no option SNAPSHOT FALSE here; options are: TEXT COLUMNS, EXCLUDE COLUMNS

ALTER SOURCE s ADD SUBSOURCE users bids
--! line 1, column 36: expected a comma, WITH or the end of the statement, found bids

ALTER SOURCE s DROP
--! line 1, column 20: expected SUBSOURCE or TABLE, found the end of the statement

ALTER SOURCE s DROP SUBSOURCE IF users
--! line 1, column 34: expected EXISTS, found users

ALTER SOURCE s DROP SUBSOURCE users, public.users
--! line 1, column 45: subsource public.users is given twice

ALTER SOURCE s DROP SUBSOURCE users AS u
--! line 1, column 37: expected a comma, CASCADE, RESTRICT or the end of the statement, found AS

CREATE SUBSOURCE IF NOT EXISTS u OF SOURCE s WITH (PROGRESS)
--! line 1, column 18: expected a subsource name, found IF, a reserved word; to use it as a name, write "if"

CREATE SUBSOURCE u (id int)
--! line 1, column 28: expected OF, found the end of the statement

CREATE SUBSOURCE u (id int) OF SOURCE s
--! line 1, column 40: expected WITH, found the end of the statement

CREATE SUBSOURCE u (id int) OF SOURCE s WITH (TEXT COLUMNS (id))
--! line 1, column 1: a subsource needs WITH (EXTERNAL REFERENCE …), or PROGRESS instead

CREATE SUBSOURCE u (id int) OF SOURCE s WITH (EXTERNAL REFERENCE a, PROGRESS)
--! line 1, column 1: a subsource needs WITH (EXTERNAL REFERENCE …), or PROGRESS instead

CREATE SUBSOURCE u (id int) OF SOURCE s WITH (EXTERNAL REFERENCE)
--! line 1, column 65: expected a reference, found )

CREATE SUBSOURCE u (id int, id text) OF SOURCE s WITH (EXTERNAL REFERENCE a)
--! line 1, column 29: column id occurs twice

CREATE SUBSOURCE u (id int) OF SOURCE s WITH (EXTERNAL REFERENCE a) FORMAT JSON
--! line 1, column 69: expected the end of the statement, found FORMAT

DROP SUBSOURCE s
--! line 1, column 6: DROP SUBSOURCE is not supported; DROP takes SOURCE, TABLE, VIEW or SCHEMA
