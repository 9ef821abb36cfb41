-- Each case: a script, then its exact error. $STATEMENTS is the list of what there is. Cases are separated by blank lines.

SELECT * FROM t
--! line 1, column 1: SELECT is not supported; $STATEMENTS

INSERT INTO t VALUES (1)
--! line 1, column 1: INSERT is not supported; $STATEMENTS

  update t set a = 1
--! line 1, column 3: UPDATE is not supported; $STATEMENTS

DELETE FROM t
--! line 1, column 1: DELETE is not supported; $STATEMENTS

EXPLAIN SELECT 1
--! line 1, column 1: EXPLAIN is not supported; $STATEMENTS

SET x = 1
--! line 1, column 1: SET is not supported; $STATEMENTS

FROBNICATE everything
--! line 1, column 1: FROBNICATE is not supported; $STATEMENTS

SHOW SOURCES; ELSE DROP SOURCE s CASCADE
--! line 1, column 15: ELSE is not supported; $STATEMENTS

SHOW SOURCES; END
--! line 1, column 15: END is not supported; $STATEMENTS

'text'
--! line 1, column 1: expected a statement, found 'text'

"CREATE" SOURCE s
--! line 1, column 1: expected a statement, found "CREATE"

(SHOW SOURCES)
--! line 1, column 1: expected a statement, found (

CREATE
--! line 1, column 7: expected SOURCE or TABLE, found the end of the statement

CREATE VIEW v AS SELECT 1
--! line 1, column 8: CREATE VIEW is not supported; $STATEMENTS

CREATE CONNECTION c TO KAFKA (BROKER 'b')
--! line 1, column 8: CREATE CONNECTION is not supported; $STATEMENTS

DROP SCHEMA s
--! line 1, column 6: DROP SCHEMA is not supported; $STATEMENTS

ALTER TABLE t RENAME TO u
--! line 1, column 15: expected RESUME or RESNAPSHOT, found RENAME

ALTER;
--! line 1, column 6: expected SOURCE or TABLE, found the end of the statement

ALTER VIEW v RESUME
--! line 1, column 7: ALTER VIEW is not supported; $STATEMENTS

ALTER TABLE
--! line 1, column 12: expected a table name, found the end of the statement

ALTER TABLE t
--! line 1, column 14: expected RESUME or RESNAPSHOT, found the end of the statement

ALTER TABLE t RESUME NOW
--! line 1, column 22: expected the end of the statement, found NOW

ALTER TABLE t SET (SNAPSHOT false)
--! line 1, column 15: expected RESUME or RESNAPSHOT, found SET

ALTER SOURCE s RESUME
--! line 1, column 16: expected SET or RESET, found RESUME

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT)
--! line 1, column 56: expected TRUE or FALSE, found )

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT = 'false')
--! line 1, column 59: expected TRUE or FALSE, found 'false'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT = 0)
--! line 1, column 59: expected TRUE or FALSE, found 0

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (SNAPSHOT false, SNAPSHOT true)
--! line 1, column 64: SNAPSHOT is given twice

ALTER SOURCE s SET (BACKFILL RATE -1)
--! line 1, column 35: expected records per second, a whole number, found -

ALTER SOURCE s SET (BACKFILL RATE = '10')
--! line 1, column 37: expected records per second, a whole number, found '10'

ALTER SOURCE s SET (BACKFILL RATE 1.5)
--! line 1, column 35: expected records per second, a whole number, found 1.5

ALTER SOURCE s SET (CUTOVER WAIT 250)
--! line 1, column 34: expected a duration such as '250ms', found 250

ALTER SOURCE s SET (CUTOVER WAIT 'never')
--! line 1, column 34: CUTOVER WAIT 'never' is not a duration such as '500ms', '10s' or '1 day'

SHOW
--! line 1, column 5: expected SOURCES, TABLES or CREATE, found the end of the statement

SHOW SCHEMAS
--! line 1, column 6: SHOW SCHEMAS is not supported; $STATEMENTS

SHOW SOURCES LIKE 'x'
--! line 1, column 14: expected the end of the statement, found LIKE

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
--! line 1, column 13: expected CASCADE or the end of the statement, found ,

DROP TABLE a CASCADE CASCADE
--! line 1, column 22: expected the end of the statement, found CASCADE

DROP TABLE a.b.c
--! line 1, column 15: a name has at most two parts, schema.name

DROP TABLE a.
--! line 1, column 14: expected a table name after the schema, found the end of the statement

DROP TABLE 'a'
--! line 1, column 12: expected a table name, found 'a'

DROP TABLE 1a
--! line 1, column 12: expected a table name, found 1

DROP TABLE 😀
--! line 1, column 12: expected a table name, found 😀

DROP TABLE ""
--! line 1, column 12: a table name must not be empty

DROP TABLE select
--! line 1, column 12: expected a table name, found SELECT, a reserved word; as a name it is written "select"

CREATE SOURCE s FROM KAFKA
--! line 1, column 27: expected CONNECTION, found the end of the statement

CREATE SOURCE IF EXISTS s FROM KAFKA CONNECTION c (TOPIC 't')
--! line 1, column 18: expected NOT, found EXISTS

CREATE SOURCE s IN CLUSTER c FROM KAFKA CONNECTION c (TOPIC 't')
--! line 1, column 17: expected FROM, found IN

CREATE SOURCE s
FROM POSTGRES CONNECTION c
--! line 2, column 6: source kind POSTGRES is not supported yet; there is KAFKA

CREATE SOURCE s FROM MYSQL CONNECTION c
--! line 1, column 22: source kind MYSQL is not supported yet; there is KAFKA

CREATE SOURCE s FROM LOAD GENERATOR COUNTER
--! line 1, column 22: source kind LOAD GENERATOR is not supported yet; there is KAFKA

CREATE SOURCE s FROM FILE '/x'
--! line 1, column 22: source kind FILE is not supported yet; there is KAFKA

CREATE SOURCE s FROM WEBHOOK BODY FORMAT JSON
--! line 1, column 22: source kind WEBHOOK is not supported yet; there is KAFKA

CREATE SOURCE s FROM SQL SERVER CONNECTION c
--! line 1, column 22: source kind SQL SERVER is not supported yet; there is KAFKA

CREATE SOURCE s FROM PULSAR CONNECTION c
--! line 1, column 22: expected KAFKA, found PULSAR

CREATE SOURCE s FROM KAFKA CONNECTION c
--! line 1, column 40: expected (, found the end of the statement

CREATE SOURCE s FROM KAFKA CONNECTION a.b (TOPIC 't')
--! line 1, column 40: expected (, found .

CREATE SOURCE s FROM KAFKA CONNECTION c ()
--! line 1, column 42: expected TOPIC, START OFFSET or START TIMESTAMP, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC)
--! line 1, column 47: expected a topic in single quotes, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC "t")
--! line 1, column 48: expected a topic in single quotes, found "t"

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC E't')
--! line 1, column 48: expected a topic in single quotes, found E

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC N't')
--! line 1, column 48: expected a topic in single quotes, found N't'

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC '')
--! line 1, column 48: a topic must not be empty

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't'
--! line 1, column 51: expected , or ), found the end of the statement

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', TOPIC 'u')
--! line 1, column 53: TOPIC is given twice

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', GROUP ID PREFIX 'g')
--! line 1, column 53: there is no option GROUP ID PREFIX here; options are: TOPIC, START OFFSET, START TIMESTAMP

CREATE SOURCE s FROM KAFKA CONNECTION c (START OFFSET (1))
--! line 1, column 1: a KAFKA source needs TOPIC '…'

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET 5)
--! line 1, column 66: expected (, found 5

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET ())
--! line 1, column 67: expected an offset, a whole number, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (1, -1))
--! line 1, column 70: expected an offset, a whole number, found -

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (1.5))
--! line 1, column 67: expected an offset, a whole number, found 1.5

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (9223372036854775808))
--! line 1, column 67: the number is larger than 9223372036854775807

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP 'now')
--! line 1, column 69: expected milliseconds, a whole number, found 'now'

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (1), START TIMESTAMP 5)
--! line 1, column 71: START OFFSET and START TIMESTAMP exclude each other

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON
--! line 1, column 53: FORMAT on a source is not supported yet; give it to CREATE TABLE … FROM SOURCE

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') KEY FORMAT JSON VALUE FORMAT JSON
--! line 1, column 53: KEY FORMAT on a source is not supported yet; give it to CREATE TABLE … FROM SOURCE

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') extra
--! line 1, column 53: expected WITH or the end of the statement, found extra

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH ()
--! line 1, column 59: expected TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, BACKFILL RATE or CUTOVER WAIT, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (SIZE '1')
--! line 1, column 59: there is no option SIZE here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, BACKFILL RATE, CUTOVER WAIT

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL 500)
--! line 1, column 76: expected a duration such as '500ms', found 500

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL '10ms')
--! line 1, column 76: TRIGGER INTERVAL must be greater than or equal to 50 milliseconds

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL 'soon')
--! line 1, column 76: TRIGGER INTERVAL 'soon' is not a duration such as '500ms', '10s' or '1 day'

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL '')
--! line 1, column 76: TRIGGER INTERVAL '' is not a duration such as '500ms', '10s' or '1 day'

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL '1 fortnight')
--! line 1, column 76: TRIGGER INTERVAL '1 fortnight' has the unknown unit fortnight; there are: millisecond, second, minute, hour, day, week

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL '50.5ms')
--! line 1, column 76: TRIGGER INTERVAL '50.5ms' is not a whole number of milliseconds

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (IDLE TICK INTERVAL '99999999999 weeks')
--! line 1, column 78: IDLE TICK INTERVAL '99999999999 weeks' is longer than 100 years

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (IDLE TICK INTERVAL '0s')
--! line 1, column 78: IDLE TICK INTERVAL must be greater than 0 seconds

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (MAX RECORDS PER TICK 0)
--! line 1, column 80: MAX RECORDS PER TICK must be greater than or equal to 1

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (MAX RECORDS PER TICK '5')
--! line 1, column 80: expected a whole number, found '5'

CREATE TABLE t
--! line 1, column 15: expected a column list or FROM SOURCE, found the end of the statement

CREATE TABLE t (a int)
--! line 1, column 23: expected FROM SOURCE, found the end of the statement

CREATE TABLE t FROM s
--! line 1, column 16: expected a column list or FROM SOURCE, found FROM

CREATE TABLE t FROM WEBHOOK BODY FORMAT JSON
--! line 1, column 16: FROM WEBHOOK is not supported yet; there is FROM SOURCE

CREATE TABLE FROM SOURCE s FORMAT JSON
--! line 1, column 14: expected a table name, found FROM, a reserved word; as a name it is written "from"

CREATE TABLE t () FROM SOURCE s FORMAT JSON
--! line 1, column 17: expected a column name, found )

CREATE TABLE t (a) FROM SOURCE s FORMAT JSON
--! line 1, column 18: expected a column type, found )

CREATE TABLE t (a int, PRIMARY KEY (a)) FROM SOURCE s FORMAT JSON
--! line 1, column 24: expected a column name, found PRIMARY KEY

CREATE TABLE t (user int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: expected a column name, found USER, a reserved word; as a name it is written "user"

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
--! line 1, column 27: column ID occurs twice, the other time as id: case makes no difference

CREATE TABLE t (offset int) FROM SOURCE s FORMAT JSON INCLUDE KEY, OFFSET
--! line 1, column 68: column offset occurs twice

CREATE TABLE t FROM SOURCE s FORMAT TEXT INCLUDE KEY AS "Data"
--! line 1, column 57: column Data occurs twice, the other time as data: case makes no difference

CREATE TABLE t (_mz_x int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: column _mz_x: names that begin with _mz_ are reserved (_mz_tick, _mz_partition, _mz_offset)

CREATE TABLE t FROM SOURCE s FORMAT TEXT INCLUDE OFFSET AS "_MZ_offset"
--! line 1, column 60: column _MZ_offset: names that begin with _mz_ are reserved (_mz_tick, _mz_partition, _mz_offset)

CREATE TABLE t ("a b" int) FROM SOURCE s FORMAT JSON
--! line 1, column 17: column "a b": Delta allows no blank and none of ,;{}()= in a column name

CREATE TABLE t (a int) FROM SOURCE s FORMAT TEXT
--! line 1, column 17: a column list needs FORMAT JSON; FORMAT TEXT has the one column data

CREATE TABLE t FROM SOURCE s
--! line 1, column 29: expected FORMAT, found the end of the statement

CREATE TABLE t FROM SOURCE s (orders) FORMAT JSON
--! line 1, column 31: expected REFERENCE, found orders

CREATE TABLE t FROM SOURCE s (REFERENCE shop.orders) FORMAT JSON
--! line 1, column 45: a reference with dots is written in quotes

CREATE TABLE t FROM SOURCE s (REFERENCE '') FORMAT JSON
--! line 1, column 41: a reference must not be empty

CREATE TABLE t FROM SOURCE s FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION r
--! line 1, column 37: FORMAT AVRO is not supported yet; there is JSON, TEXT and BYTES

CREATE TABLE t FROM SOURCE s FORMAT CSV WITH HEADER
--! line 1, column 37: FORMAT CSV is not supported yet; there is JSON, TEXT and BYTES

CREATE TABLE t FROM SOURCE s FORMAT PROTOBUF
--! line 1, column 37: FORMAT PROTOBUF is not supported yet; there is JSON, TEXT and BYTES

CREATE TABLE t FROM SOURCE s FORMAT XML
--! line 1, column 37: expected JSON, TEXT or BYTES, found XML

CREATE TABLE t FROM SOURCE s KEY FORMAT TEXT VALUE FORMAT JSON
--! line 1, column 30: KEY FORMAT is not supported yet; there is FORMAT

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE HEADERS
--! line 1, column 50: INCLUDE HEADERS is not supported yet; there is PARTITION, OFFSET, TIMESTAMP and KEY

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE OFFSET,
--! line 1, column 57: expected PARTITION, OFFSET, TIMESTAMP or KEY, found the end of the statement

CREATE TABLE t FROM SOURCE s FORMAT JSON INCLUDE OFFSET AS
--! line 1, column 59: expected a column name, found the end of the statement

CREATE TABLE t FROM SOURCE s FORMAT JSON ENVELOPE UPSERT
--! line 1, column 51: ENVELOPE UPSERT is not supported yet; there is NONE

CREATE TABLE t FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 51: ENVELOPE DEBEZIUM is not supported yet; there is NONE

CREATE TABLE t FROM SOURCE s FORMAT JSON ENVELOPE NONE INCLUDE KEY
--! line 1, column 56: expected WITH or the end of the statement, found INCLUDE

CREATE TABLE t FROM SOURCE s FORMAT JSON x
--! line 1, column 42: expected INCLUDE, ENVELOPE, WITH or the end of the statement, found x

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (ON DECODE ERROR = 'SKIP')
--! line 1, column 66: ON DECODE ERROR is 'RECORD' or 'STOP', not 'SKIP'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY '1 day')
--! line 1, column 63: expected FOR, found '1 day'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR 'ever')
--! line 1, column 67: RETAIN HISTORY FOR 'ever' is not a duration such as '500ms', '10s' or '1 day'

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR '1500ms')
--! line 1, column 67: RETAIN HISTORY FOR '1500ms' is not a whole number of seconds

CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (TEXT COLUMNS (a))
--! line 1, column 48: there is no option TEXT COLUMNS here; options are: ON DECODE ERROR, RETAIN HISTORY, SNAPSHOT

ALTER SOURCE s
--! line 1, column 15: expected SET or RESET, found the end of the statement

ALTER SOURCE s SET TRIGGER INTERVAL '1s'
--! line 1, column 20: expected (, found TRIGGER

ALTER SOURCE s SET (TRIGGER INTERVAL '1s', TRIGGER INTERVAL '2s')
--! line 1, column 44: TRIGGER INTERVAL is given twice

ALTER SOURCE s RESET (TRIGGER INTERVAL '1s')
--! line 1, column 40: expected , or ), found '1s'

ALTER SOURCE s RESET (TOPIC)
--! line 1, column 23: there is no option TOPIC here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, BACKFILL RATE, CUTOVER WAIT

BEGIN; SHOW SOURCES; BEGIN; COMMIT
--! line 1, column 22: BEGIN inside a transaction: expected COMMIT first

SHOW SOURCES; BEGIN; SHOW TABLES;
--! line 1, column 15: BEGIN without COMMIT: expected COMMIT before the end of the script

SHOW SOURCES; COMMIT
--! line 1, column 15: COMMIT without BEGIN

BEGIN ISOLATION LEVEL SERIALIZABLE; COMMIT
--! line 1, column 7: expected the end of the statement, found ISOLATION

BEGIN; DROP TABLE t; ROLLBACK
--! line 1, column 22: ROLLBACK is not supported: nothing is done before COMMIT, so leave the group out

SHOW SOURCES SHOW TABLES
--! line 1, column 14: expected the end of the statement, found SHOW

DROP TABLE `t`
--! line 1, column 12: unexpected character `

DROP TABLE {{ name }}
--! line 1, column 12: unexpected character {

DROP TABLE a\b
--! line 1, column 13: unexpected character \

SHOW SOURCES;
DROP TABLE 'it''s
--! line 2, column 12: this string never ends: expected a closing '

DROP TABLE "a""
--! line 1, column 12: this quoted name never ends: expected a closing "

SHOW SOURCES /* a /* b */
--! line 1, column 14: this comment never ends: expected */

DROP TABLE $$t$$
--! line 1, column 12: expected a table name, found $$t$$
