-- Scripts, transactions, and what is no statement of ours. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

show tables;
--> SHOW TABLES

SET x = 1
--! line 1, column 1: SET is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

FROBNICATE everything
--! line 1, column 1: FROBNICATE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

SHOW SOURCES; ELSE DROP SOURCE s CASCADE
--! line 1, column 15: ELSE is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

SHOW SOURCES; END
--! line 1, column 15: END is not supported; statements begin with CREATE, ALTER, DROP, SHOW, COMMENT ON, EXPLAIN, SELECT, BEGIN or COMMIT

'text'
--! line 1, column 1: expected a statement, found 'text'

"CREATE" SOURCE s
--! line 1, column 1: expected a statement, found "CREATE"

(SHOW SOURCES)
--! line 1, column 1: expected a statement, found (

CREATE
--! line 1, column 7: expected SOURCE, TABLE, VIEW, SCHEMA or SUBSOURCE, found the end of the statement

CREATE CONNECTION c TO KAFKA (BROKER 'b')
--! line 1, column 8: CREATE CONNECTION is not supported; CREATE takes SOURCE, TABLE, VIEW, SCHEMA or SUBSOURCE

BEGIN; SHOW SOURCES; BEGIN; COMMIT
--! line 1, column 22: BEGIN inside a transaction: expected COMMIT first

SHOW SOURCES; BEGIN; SHOW TABLES;
--! line 1, column 15: BEGIN without COMMIT: expected COMMIT before the end of the script

SHOW SOURCES; COMMIT
--! line 1, column 15: COMMIT without BEGIN

BEGIN ISOLATION LEVEL SERIALIZABLE; COMMIT
--! line 1, column 7: expected the end of the statement, found ISOLATION

BEGIN; DROP TABLE t; ROLLBACK
--! line 1, column 22: ROLLBACK is not supported: nothing is done before COMMIT, so leave the transaction out

SHOW SOURCES;
DROP TABLE 'it''s
--! line 2, column 12: this string never ends: expected a closing '
