-- CREATE SOURCE and ALTER SOURCE. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't')

create source if not exists Shop.Orders from kafka connection KAFKA_MAIN (topic 'Orders');
--> CREATE SOURCE IF NOT EXISTS shop.orders FROM KAFKA CONNECTION kafka_main (TOPIC 'Orders')

CREATE SOURCE "Shop"."my orders" FROM KAFKA CONNECTION "Kafka-1" (TOPIC = 'it''s')
--> CREATE SOURCE "Shop"."my orders" FROM KAFKA CONNECTION "Kafka-1" (TOPIC 'it''s')

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (0, 10, 100))
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (0, 10, 100))

CREATE SOURCE s FROM KAFKA CONNECTION c (START OFFSET = (007), TOPIC = 't')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (7))

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (0, 0))
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (0, 0))

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (9223372036854775807))
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (9223372036854775807))

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP 1700000000000)
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP 1700000000000)

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP = -3600000)
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP -3600000)

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP -0)
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP 0)

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't')
  WITH (TRIGGER INTERVAL = '500ms', MAX RECORDS PER TICK = 100000, IDLE TICK INTERVAL = '10s')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') WITH (TRIGGER INTERVAL '500 milliseconds', MAX RECORDS PER TICK 100000, IDLE TICK INTERVAL '10 seconds')

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (IDLE TICK INTERVAL '1.5 s')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') WITH (IDLE TICK INTERVAL '1500 milliseconds')

ALTER SOURCE s SET (TRIGGER INTERVAL '500ms', MAX RECORDS PER TICK 1000, IDLE TICK INTERVAL '5s')
--> ALTER SOURCE public.s SET (TRIGGER INTERVAL '500 milliseconds', MAX RECORDS PER TICK 1000, IDLE TICK INTERVAL '5 seconds')

alter source a.s set (max records per tick = 1)
--> ALTER SOURCE a.s SET (MAX RECORDS PER TICK 1)

ALTER SOURCE s RESET (IDLE TICK INTERVAL, TRIGGER INTERVAL)
--> ALTER SOURCE public.s RESET (IDLE TICK INTERVAL, TRIGGER INTERVAL)

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (CUTOVER WAIT = '250ms', BACKFILL RATE = 5000)
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 't') WITH (BACKFILL RATE 5000, CUTOVER WAIT '250 milliseconds')

ALTER SOURCE s SET (BACKFILL RATE 0, CUTOVER WAIT '0s')
--> ALTER SOURCE public.s SET (BACKFILL RATE 0, CUTOVER WAIT '0 seconds')

ALTER SOURCE s RESET (CUTOVER WAIT, BACKFILL RATE)
--> ALTER SOURCE public.s RESET (CUTOVER WAIT, BACKFILL RATE)

CREATE SOURCE s FROM LOAD GENERATOR COUNTER
--> CREATE SOURCE public.s FROM LOAD GENERATOR COUNTER

create source if not exists a.s from load generator counter (tick interval '250ms', up to 10)
--> CREATE SOURCE IF NOT EXISTS a.s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '250 milliseconds', UP TO 10)

CREATE SOURCE s FROM LOAD GENERATOR AUCTION
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION

CREATE SOURCE s FROM LOAD GENERATOR AUCTION (TICK INTERVAL = '1 second', SEED = 42, BATCH SIZE = 5)
--> CREATE SOURCE public.s FROM LOAD GENERATOR AUCTION (SEED 42, BATCH SIZE 5)

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE
--> CREATE SOURCE public.s FROM LOAD GENERATOR KEY VALUE

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE (PARTITIONS 3, VALUE SIZE 9, KEYS 7, UP TO 100, BATCH SIZE 10, TICK INTERVAL '500ms', SEED 5) WITH (BACKFILL RATE 5)
--> CREATE SOURCE public.s FROM LOAD GENERATOR KEY VALUE (SEED 5, TICK INTERVAL '500 milliseconds', BATCH SIZE 10, UP TO 100, KEYS 7, VALUE SIZE 9, PARTITIONS 3) WITH (BACKFILL RATE 5)

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (SEED -1)
--> CREATE SOURCE public.s FROM LOAD GENERATOR COUNTER (SEED -1)

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (SEED 0, TICK INTERVAL '1s', BATCH SIZE 1)
--> CREATE SOURCE public.s FROM LOAD GENERATOR COUNTER

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (UP TO 0) WITH (TRIGGER INTERVAL '100ms')
--> CREATE SOURCE public.s FROM LOAD GENERATOR COUNTER (UP TO 0) WITH (TRIGGER INTERVAL '100 milliseconds')

CREATE SOURCE load FROM LOAD GENERATOR COUNTER
--> CREATE SOURCE public.load FROM LOAD GENERATOR COUNTER

CREATE SOURCE kafka.generator FROM KAFKA CONNECTION connection (TOPIC 'topic')
--> CREATE SOURCE kafka.generator FROM KAFKA CONNECTION connection (TOPIC 'topic')

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 'a.b-c_d')
--> CREATE SOURCE public.s FROM KAFKA CONNECTION c (TOPIC 'a.b-c_d')

ALTER SOURCE s REFRESH REFERENCES
--> ALTER SOURCE public.s REFRESH REFERENCES

alter source U7 refresh references
--> ALTER SOURCE u7 REFRESH REFERENCES

ALTER SOURCE "u7" REFRESH REFERENCES
--> ALTER SOURCE public.u7 REFRESH REFERENCES

ALTER SOURCE public.u7 REFRESH REFERENCES
--> ALTER SOURCE public.u7 REFRESH REFERENCES

ALTER SOURCE "U7" REFRESH REFERENCES
--> ALTER SOURCE public."U7" REFRESH REFERENCES

ALTER SOURCE u07 REFRESH REFERENCES
--> ALTER SOURCE public.u07 REFRESH REFERENCES

ALTER SOURCE shop."My Source" RENAME TO "Other ""Source"""
--> ALTER SOURCE shop."My Source" RENAME TO "Other ""Source"""

ALTER SOURCE set SET (MAX RECORDS PER TICK 1)
--> ALTER SOURCE public.set SET (MAX RECORDS PER TICK 1)

ALTER SOURCE s RESUME
--! line 1, column 16: expected SET, RESET, RENAME TO, ADD SUBSOURCE, DROP SUBSOURCE or REFRESH REFERENCES, found RESUME

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

CREATE SOURCE s FROM KAFKA
--! line 1, column 27: expected CONNECTION, found the end of the statement

CREATE SOURCE IF EXISTS s FROM KAFKA CONNECTION c (TOPIC 't')
--! line 1, column 18: expected NOT, found EXISTS

CREATE SOURCE s IN CLUSTER c FROM KAFKA CONNECTION c (TOPIC 't')
--! line 1, column 17: expected FROM, found IN

CREATE SOURCE s
FROM MYSQL CONNECTION c
--! line 2, column 6: source kind MYSQL is not supported yet; use KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES

CREATE SOURCE s FROM MYSQL CONNECTION c
--! line 1, column 22: source kind MYSQL is not supported yet; use KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES

CREATE SOURCE s FROM FILE '/x'
--! line 1, column 22: source kind FILE is not supported yet; use KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES

CREATE SOURCE s FROM WEBHOOK BODY FORMAT JSON
--! line 1, column 22: source kind WEBHOOK is not supported yet; use KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES

CREATE SOURCE s FROM SQL SERVER CONNECTION c
--! line 1, column 22: source kind SQL SERVER is not supported yet; use KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES

CREATE SOURCE s FROM PULSAR CONNECTION c
--! line 1, column 22: expected KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES, found PULSAR

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
--! line 1, column 71: START OFFSET and START TIMESTAMP cannot be used together

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') extra
--! line 1, column 53: expected WITH or the end of the statement, found extra

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH ()
--! line 1, column 59: expected TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL, TEXT COLUMNS or EXCLUDE COLUMNS, found )

CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't') WITH (SIZE '1')
--! line 1, column 59: there is no option SIZE here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL, TEXT COLUMNS, EXCLUDE COLUMNS

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

ALTER SOURCE s
--! line 1, column 15: expected SET, RESET, RENAME TO, ADD SUBSOURCE, DROP SUBSOURCE or REFRESH REFERENCES, found the end of the statement

ALTER SOURCE s SET TRIGGER INTERVAL '1s'
--! line 1, column 20: expected (, found TRIGGER

ALTER SOURCE s SET (TRIGGER INTERVAL '1s', TRIGGER INTERVAL '2s')
--! line 1, column 44: TRIGGER INTERVAL is given twice

ALTER SOURCE s RESET (TRIGGER INTERVAL '1s')
--! line 1, column 40: expected , or ), found '1s'

ALTER SOURCE s RESET (TOPIC)
--! line 1, column 23: there is no option TOPIC here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL

CREATE SOURCE s FROM LOAD
--! line 1, column 22: expected KAFKA, LOAD GENERATOR, JOURNAL or POSTGRES, found LOAD

CREATE SOURCE s FROM LOAD GENERATOR
--! line 1, column 36: expected COUNTER, AUCTION or KEY VALUE, found the end of the statement

CREATE SOURCE s FROM LOAD GENERATOR TPCH
--! line 1, column 37: LOAD GENERATOR TPCH is not supported yet; use COUNTER, AUCTION or KEY VALUE

CREATE SOURCE s FROM LOAD GENERATOR MARKETING (SEED 1)
--! line 1, column 37: LOAD GENERATOR MARKETING is not supported yet; use COUNTER, AUCTION or KEY VALUE

CREATE SOURCE s FROM LOAD GENERATOR RANDOM
--! line 1, column 37: expected COUNTER, AUCTION or KEY VALUE, found RANDOM

CREATE SOURCE s FROM LOAD GENERATOR KEY
--! line 1, column 37: expected COUNTER, AUCTION or KEY VALUE, found KEY

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE COUNTER
--! line 1, column 47: expected WITH or the end of the statement, found COUNTER

CREATE SOURCE s FROM LOAD GENERATOR COUNTER ()
--! line 1, column 46: expected SEED, TICK INTERVAL, BATCH SIZE or UP TO, found )

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (KEYS 5)
--! line 1, column 46: there is no option KEYS here; options are: SEED, TICK INTERVAL, BATCH SIZE, UP TO

CREATE SOURCE s FROM LOAD GENERATOR AUCTION (VALUE SIZE 5)
--! line 1, column 46: there is no option VALUE SIZE here; options are: SEED, TICK INTERVAL, BATCH SIZE, UP TO

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (SEED 1, SEED 2)
--! line 1, column 54: SEED is given twice

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (SEED 'x')
--! line 1, column 51: expected a whole number, found 'x'

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (SEED 1.5)
--! line 1, column 51: expected a whole number, found 1.5

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL 5)
--! line 1, column 60: expected a duration such as '1s', found 5

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '0s')
--! line 1, column 60: TICK INTERVAL must be greater than or equal to 1 millisecond

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL 'often')
--! line 1, column 60: TICK INTERVAL 'often' is not a duration such as '500ms', '10s' or '1 day'

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (BATCH SIZE 0)
--! line 1, column 57: BATCH SIZE must be greater than or equal to 1

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (UP TO -1)
--! line 1, column 52: expected a whole number, found -

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE (PARTITIONS 65)
--! line 1, column 59: PARTITIONS must be less than or equal to 64

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE (KEYS 0)
--! line 1, column 53: KEYS must be greater than or equal to 1

CREATE SOURCE s FROM LOAD GENERATOR COUNTER CONNECTION c
--! line 1, column 45: expected WITH or the end of the statement, found CONNECTION

CREATE SOURCE s FROM LOAD GENERATOR COUNTER WITH (SEED 1)
--! line 1, column 51: there is no option SEED here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL, TEXT COLUMNS, EXCLUDE COLUMNS

CREATE SOURCE s FROM LOAD GENERATOR COUNTER FORMAT
--! line 1, column 51: expected JSON, TEXT or BYTES, found the end of the statement

CREATE SOURCE s FROM KAFKA (TOPIC 't')
--! line 1, column 28: expected CONNECTION, found (

ALTER SOURCE s REFRESH
--! line 1, column 23: expected REFERENCES, found the end of the statement

ALTER SOURCE s REFRESH TABLES
--! line 1, column 24: expected REFERENCES, found TABLES

ALTER SOURCE s REFRESH REFERENCES NOW
--! line 1, column 35: expected the end of the statement, found NOW

ALTER SOURCE s RENAME
--! line 1, column 22: expected TO, found the end of the statement

ALTER SOURCE s RENAME TO a.b
--! line 1, column 27: the new name has one part: a rename does not move anything to another schema

ALTER SOURCE s RENAME TO select
--! line 1, column 26: expected a new name, found SELECT, a reserved word; to use it as a name, write "select"

ALTER SOURCE s SWAP WITH t
--! line 1, column 16: expected SET, RESET, RENAME TO, ADD SUBSOURCE, DROP SUBSOURCE or REFRESH REFERENCES, found SWAP

ALTER SOURCE s SET (SNAPSHOT false)
--! line 1, column 21: there is no option SNAPSHOT FALSE here; options are: TRIGGER INTERVAL, MAX RECORDS PER TICK, IDLE TICK INTERVAL, DRIVER READS, BACKFILL RATE, CUTOVER WAIT, RETAIN JOURNAL, MAX JOURNAL

CREATE SOURCE s FROM LOAD GENERATOR KEY VALUE (VALUE SIZE 1048577)
--! line 1, column 59: VALUE SIZE must be less than or equal to 1048576

CREATE SOURCE s FROM LOAD GENERATOR COUNTER (BATCH SIZE 1000001)
--! line 1, column 57: BATCH SIZE must be less than or equal to 1000000

create source if not exists shop from postgres connection Pg (publication = 'Orders''s')
--> CREATE SOURCE IF NOT EXISTS public.shop FROM POSTGRES CONNECTION pg (PUBLICATION 'Orders''s')

CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') WITH (TRIGGER INTERVAL '500ms')
--> CREATE SOURCE public.s FROM POSTGRES CONNECTION c (PUBLICATION 'p') WITH (TRIGGER INTERVAL '500 milliseconds')

CREATE SOURCE s FROM POSTGRES CONNECTION c
--! line 1, column 43: expected (, found the end of the statement

CREATE SOURCE s FROM POSTGRES (PUBLICATION 'p')
--! line 1, column 31: expected CONNECTION, found (

CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION '')
--! line 1, column 57: a publication must not be empty

CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION p)
--! line 1, column 57: expected a publication in single quotes, found p

CREATE SOURCE s FROM POSTGRES CONNECTION c (TOPIC 'p')
--! line 1, column 45: there is no option TOPIC here; options are: PUBLICATION

CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FORMAT JSON
--! line 1, column 62: FORMAT is not allowed here: for a POSTGRES source, write it in CREATE TABLE … FROM SOURCE

CREATE SOURCE s FROM POSTGRES CONNECTION c (PUBLICATION 'p') FOR ALL TABLES
--! line 1, column 62: FOR ALL TABLES is not allowed here: for a POSTGRES source, write it in CREATE TABLE … FROM SOURCE

CREATE TABLE t FROM SOURCE s (REFERENCE public.t) FORMAT POSTGRES
--! line 1, column 58: expected JSON, TEXT or BYTES, found POSTGRES

CREATE TABLE t FROM SOURCE s (REFERENCE public.t) ENVELOPE POSTGRES
--! line 1, column 60: expected NONE, UPSERT or DEBEZIUM, found POSTGRES
