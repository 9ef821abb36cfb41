-- Names that want to be something else. Each case: a statement, then what it is printed as (-->), or its exact error (--!).

DROP TABLE "a.b"."c.d"
--> DROP TABLE "a.b"."c.d"

DROP TABLE "a""b"."""c"""
--> DROP TABLE "a""b"."""c"""

DROP TABLE """"
--> DROP TABLE public.""""

DROP TABLE "$(rm -rf /)"
--> DROP TABLE public."$(rm -rf /)"

DROP TABLE "{{ params.x }}"
--> DROP TABLE public."{{ params.x }}"

DROP TABLE "--conf"
--> DROP TABLE public."--conf"

DROP TABLE "; DROP TABLE t; --"
--> DROP TABLE public."; DROP TABLE t; --"

DROP TABLE "'"
--> DROP TABLE public."'"

DROP TABLE "`t`"
--> DROP TABLE public."`t`"

DROP TABLE "a\b"
--> DROP TABLE public."a\b"

DROP TABLE "😀"."🎉 x"
--> DROP TABLE "😀"."🎉 x"

DROP TABLE "naïve"
--> DROP TABLE public."naïve"

DROP TABLE naïve
--> DROP TABLE public."naïve"

DROP TABLE "İ"
--> DROP TABLE public."İ"

DROP TABLE "/* no comment */"
--> DROP TABLE public."/* no comment */"

DROP TABLE " "
--> DROP TABLE public." "

DROP TABLE "%s ${x} #{y} <z>"
--> DROP TABLE public."%s ${x} #{y} <z>"

CREATE SOURCE "$(x)" FROM KAFKA CONNECTION "--conf" (TOPIC '$(rm -rf /) {{ x }} `y` "z"')
--> CREATE SOURCE public."$(x)" FROM KAFKA CONNECTION "--conf" (TOPIC '$(rm -rf /) {{ x }} `y` "z"')

CREATE SOURCE "s.s" FROM LOAD GENERATOR AUCTION FOR TABLES ("a.b" AS "c.d"."e""f") EXPOSE PROGRESS AS "p.p"."q q" WITH (TEXT COLUMNS ("a.b"."c d"))
--> CREATE SOURCE public."s.s" FROM LOAD GENERATOR AUCTION FOR TABLES ("a.b" AS "c.d"."e""f") EXPOSE PROGRESS AS "p.p"."q q" WITH (TEXT COLUMNS ("a.b"."c d"))

ALTER SOURCE "a;b" ADD SUBSOURCE "x""y".z AS "--n"
--> ALTER SOURCE public."a;b" ADD SUBSOURCE "x""y".z AS public."--n"

ALTER SCHEMA "a.b" SWAP WITH "c""d"
--> ALTER SCHEMA "a.b" SWAP WITH "c""d"

ALTER TABLE "t;" RENAME TO "'; --"
--> ALTER TABLE public."t;" RENAME TO "'; --"

COMMENT ON COLUMN "a.b"."c.d"."e.f" IS '"; --'
--> COMMENT ON COLUMN "a.b"."c.d"."e.f" IS '"; --'

CREATE VIEW "{{ v }}" AS SELECT "a b", "$(x)" AS "y""z" FROM "--t"."😀" AS "{{ x }}"
--> CREATE VIEW public."{{ v }}" AS SELECT "a b", "$(x)" AS "y""z" FROM "--t"."😀" AS "{{ x }}"

SELECT "a.b", 'it''s {{ x }} $(y) `z` \n' FROM "x"
--> SELECT "a.b", 'it''s {{ x }} $(y) `z` \n' FROM x

SHOW TABLES FROM "a"";--"
--> SHOW TABLES FROM "a"";--"

CREATE TABLE "{{t}}" ("a.b" int, "c'd" text, "e""f" text, "$g" text, "😀" text) FROM SOURCE "--s" (REFERENCE "a.b"."c""d") FORMAT JSON INCLUDE KEY AS "`k`"
--> CREATE TABLE public."{{t}}" ("a.b" integer, "c'd" text, "e""f" text, "$g" text, "😀" text) FROM SOURCE public."--s" (REFERENCE "a.b"."c""d") FORMAT JSON INCLUDE KEY AS "`k`"

CREATE TABLE "{{t}}" ("a.b" int, "c'd" text, "e""f" text, "$(g)" text, "😀" text) FROM SOURCE "--s" (REFERENCE "a.b"."c""d") FORMAT JSON INCLUDE KEY AS "`k`"
--! line 1, column 59: column "$(g)": Delta does not allow blanks or ,;{}()= in a column name

DROP TABLE ""
--! line 1, column 12: a table name must not be empty

DROP TABLE a."b
--! line 1, column 14: this quoted name never ends: expected a closing "

DROP TABLE "a".""
--! line 1, column 16: a table name after the schema must not be empty

DROP TABLE a.b.c
--! line 1, column 15: a name has at most two parts, schema.name

DROP TABLE $(x)
--! line 1, column 12: expected a table name, found $

DROP TABLE --conf
--! line 1, column 11: expected a table name, found the end of the statement

DROP TABLE 😀
--! line 1, column 12: expected a table name, found 😀

DROP TABLE 1t
--! line 1, column 12: expected a table name, found 1

DROP TABLE t'
--! line 1, column 13: this string never ends: expected a closing '

DROP TABLE #t
--! line 1, column 12: expected a table name, found #

DROP TABLE @t
--! line 1, column 12: expected a table name, found @

CREATE TABLE "t" ("a b" int) FROM SOURCE s FORMAT JSON
--! line 1, column 19: column "a b": Delta does not allow blanks or ,;{}()= in a column name

CREATE TABLE "t" ("a=b" int) FROM SOURCE s
--! line 1, column 19: column "a=b": Delta does not allow blanks or ,;{}()= in a column name

CREATE SCHEMA select
--! line 1, column 15: expected a schema name, found SELECT, a reserved word; to use it as a name, write "select"

DROP TABLE a."select".b
--! line 1, column 22: a name has at most two parts, schema.name
