-- ENVELOPE DEBEZIUM and its keys. Each case: a statement, then its print (-->), or its exact error (--!).

CREATE TABLE t (id bigint, name text, primary key (id) not enforced) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--> CREATE TABLE public.t (id bigint, name text, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE public.s FORMAT JSON ENVELOPE DEBEZIUM

CREATE TABLE t ("Id" bigint, region varchar, PRIMARY KEY (region, "Id") NOT ENFORCED) FROM SOURCE s (REFERENCE 'a.b') FORMAT JSON INCLUDE OFFSET, TIMESTAMP AS at ENVELOPE DEBEZIUM WITH (DELETION VECTORS = false)
--> CREATE TABLE public.t ("Id" bigint, region text, PRIMARY KEY (region, "Id") NOT ENFORCED) FROM SOURCE public.s (REFERENCE "a.b") FORMAT JSON INCLUDE OFFSET, TIMESTAMP AS at ENVELOPE DEBEZIUM WITH (DELETION VECTORS FALSE)

CREATE TABLE t (name text) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM
--> CREATE TABLE public.t (name text) FROM SOURCE public.s KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM

CREATE SOURCE s (id bigint, name text, PRIMARY KEY (id) NOT ENFORCED) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON ENVELOPE DEBEZIUM
--> CREATE SOURCE public.s (id bigint, name text, PRIMARY KEY (id) NOT ENFORCED) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON ENVELOPE DEBEZIUM

CREATE SOURCE s (name text) FROM KAFKA CONNECTION c (TOPIC 't') KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM EXPOSE PROGRESS AS p
--> CREATE SOURCE public.s (name text) FROM KAFKA CONNECTION c (TOPIC 't') KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM EXPOSE PROGRESS AS public.p

CREATE TABLE t (id bigint, name text) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 65: ENVELOPE DEBEZIUM needs a key: PRIMARY KEY (column, …) NOT ENFORCED in the column list, or INCLUDE KEY (column type, …) with KEY FORMAT JSON; a table that has no key upstream needs ENVELOPE NONE, where each change is a row

CREATE TABLE t (id bigint, name text) FROM SOURCE s FORMAT JSON INCLUDE KEY ENVELOPE DEBEZIUM
--! line 1, column 73: with ENVELOPE DEBEZIUM the key is columns: PRIMARY KEY (column, …) NOT ENFORCED in the column list, or INCLUDE KEY (column type, …) with KEY FORMAT JSON

CREATE TABLE t (name text) FROM SOURCE s KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY ENVELOPE DEBEZIUM
--! line 1, column 42: ENVELOPE DEBEZIUM needs KEY FORMAT JSON

CREATE TABLE t FROM SOURCE s FORMAT TEXT ENVELOPE DEBEZIUM
--! line 1, column 42: ENVELOPE DEBEZIUM needs FORMAT JSON

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s ENVELOPE DEBEZIUM
--! line 1, column 73: ENVELOPE DEBEZIUM needs FORMAT JSON, and so an upstream whose records are decoded; a load generator cannot have it

CREATE SOURCE s FROM LOAD GENERATOR COUNTER ENVELOPE DEBEZIUM
--! line 1, column 45: ENVELOPE DEBEZIUM needs FORMAT JSON, and so an upstream whose records are decoded; a load generator cannot have it

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 73: KEY FORMAT JSON decodes nothing: the key is PRIMARY KEY, so write FORMAT JSON alone

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY ENVELOPE DEBEZIUM
--! line 1, column 115: with ENVELOPE DEBEZIUM the key is PRIMARY KEY: leave INCLUDE KEY out

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s FORMAT JSON INCLUDE KEY ENVELOPE DEBEZIUM
--! line 1, column 93: with ENVELOPE DEBEZIUM the key is PRIMARY KEY: leave INCLUDE KEY out

CREATE TABLE t (name text) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 42: KEY FORMAT JSON decodes nothing: add INCLUDE KEY (column type, …), or write FORMAT JSON alone

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE UPSERT
--! line 1, column 28: PRIMARY KEY needs ENVELOPE DEBEZIUM; with ENVELOPE UPSERT the key is INCLUDE KEY

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s ENVELOPE UPSERT
--! line 1, column 28: PRIMARY KEY needs ENVELOPE DEBEZIUM; with ENVELOPE UPSERT the key is the upstream's own

CREATE TABLE t FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM
--! line 1, column 88: ENVELOPE DEBEZIUM needs a column list: the columns of the table upstream

CREATE TABLE t (name text, PRIMARY KEY (name) NOT ENFORCED) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM
--! line 1, column 122: the key is given twice: by PRIMARY KEY and by INCLUDE KEY

CREATE TABLE t (id bigint, PRIMARY KEY (id, "no") NOT ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 45: PRIMARY KEY: there is no column no in the list

CREATE TABLE t (id bigint, PRIMARY KEY (id, id) NOT ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 45: PRIMARY KEY names column id twice

CREATE TABLE t (id double, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 41: column id: double precision cannot be in a key: equal values have several forms; take numeric

CREATE TABLE t (id bigint, PRIMARY KEY (id)) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 28: no key is enforced: write PRIMARY KEY (id) NOT ENFORCED

CREATE TABLE t (id bigint, "Region" text, PRIMARY KEY ("Region", id) ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 43: no key is enforced: write PRIMARY KEY ("Region", id) NOT ENFORCED

CREATE TABLE t (id bigint PRIMARY KEY, name text) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 27: a key has a place of its own: write PRIMARY KEY (id) NOT ENFORCED at the end of the column list

CREATE TABLE t (name text, "Id" numeric(12,2) primary key not enforced) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 47: a key has a place of its own: write PRIMARY KEY ("Id") NOT ENFORCED at the end of the column list

CREATE SOURCE s (id bigint PRIMARY KEY) FROM KAFKA CONNECTION c (TOPIC 't') FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 28: a key has a place of its own: write PRIMARY KEY (id) NOT ENFORCED at the end of the column list

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED, name text) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM
--! line 1, column 59: PRIMARY KEY comes last in the column list, and once

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s FORMAT JSON
--! line 1, column 28: PRIMARY KEY needs ENVELOPE DEBEZIUM; with ENVELOPE NONE there is no key

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s FORMAT JSON INCLUDE KEY ENVELOPE UPSERT
--! line 1, column 28: PRIMARY KEY needs ENVELOPE DEBEZIUM; with ENVELOPE UPSERT the key is INCLUDE KEY

CREATE TABLE t (id bigint, PRIMARY KEY (id) NOT ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM (VALUE DECODING ERRORS = INLINE)
--! line 1, column 104: VALUE DECODING ERRORS = INLINE does not go with ENVELOPE DEBEZIUM: what cannot be decoded is in the table's errors
