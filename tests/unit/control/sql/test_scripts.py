"""Scripts: groups, comments, places of errors, limits and names."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_provider_mzshare.control.sql.names import RESERVED, QualifiedName
from airflow_provider_mzshare.control.sql.parser import MzShareParser
from airflow_provider_mzshare.control.sql.scanning import MAX_SCRIPT_BYTES
from airflow_provider_mzshare.control.sql.script import (
    DropItem,
    Show,
    Transaction,
    parse_name,
    parse_script,
    print_statement,
)
from airflow_provider_mzshare.errors import StatementError
from tests.support.parsing import one, refusal

# ── scripts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_statements_outside_a_group_are_transactions_of_their_own() -> None:
    text = "SHOW SOURCES;; begin work; DROP TABLE t; SHOW TABLES; commit transaction; BEGIN; COMMIT; SHOW TABLES"
    drop = DropItem("table", QualifiedName("public", "t"))
    assert parse_script(text) == (
        Transaction((Show("sources"),), explicit=False),
        Transaction((drop, Show("tables")), explicit=True),
        Transaction((), explicit=True),
        Transaction((Show("tables"),), explicit=False),
    )


@pytest.mark.parametrize("text", ["", " \n\t", ";;;", "-- nothing", "/* a /* nested */ b */;", "\ufeff"])
def test_a_script_may_be_empty(text: str) -> None:
    assert parse_script(text) == ()


def test_comments_may_stand_anywhere_and_hide_everything_in_them() -> None:
    text = """\ufeff-- first; DROP TABLE a
    SHOW /* ' /*/ " */ ; */ SOURCES -- '
    /**//*;*/;/* DROP TABLE b; */ DROP TABLE "--" -- the end"""
    expected = (Show("sources"), DropItem("table", QualifiedName("public", "--")))
    assert tuple(transaction.statements[0] for transaction in parse_script(text)) == expected


def test_places_count_lines_and_characters_past_comments_strings_and_any_newline() -> None:
    text = "SHOW SOURCES; /* \n 😀 */\r\nDROP TABLE \"a\nb\"; /* x */ DROP 'é\n'"
    assert str(refusal(text)).startswith(
        "line 3, column 12: a table name must not contain the control character U+000A"
    )
    message = "line 3, column 31: expected SOURCE, TABLE, VIEW or SCHEMA, found 'é '"
    assert str(refusal(text.replace("a\nb", "ab"))) == message


def test_a_semantic_error_deep_in_a_script_has_its_place() -> None:
    text = "BEGIN;\nSHOW TABLES;\nALTER SOURCE s SET (\n  TRIGGER INTERVAL '1ms');\nCOMMIT"
    message = "line 4, column 20: TRIGGER INTERVAL must be greater than or equal to 50 milliseconds"
    assert str(refusal(text)) == message


def test_messages_are_one_short_line_without_escape_codes() -> None:
    long = "1\n" * 10_000
    for text in (
        "DROP TABLE '" + "x\n\ty " * 1_000 + "'",
        "X" * 20_000,
        "CREATE " + "X" * 20_000,
        f"CREATE TABLE t (a {'x' * 20_000}) FROM SOURCE s FORMAT JSON",
        f"ALTER SOURCE s SET ({'x ' * 10_000})",
        f"ALTER SOURCE s SET (TRIGGER INTERVAL '{long}')",
        f"CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (ON DECODE ERROR '{long}')",
        f"CREATE TABLE t FROM SOURCE s FORMAT JSON WITH (RETAIN HISTORY FOR '{long}')",
    ):
        message = str(refusal(text))
        assert len(message) < 300, message
        assert message.isprintable(), message


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\x07", "\x0b", "\x7f", "\x85", "\ud800"])
@pytest.mark.parametrize("text", ["SHOW\n{}SOURCES", "SHOW\n{}", "----\n{}", "----\n{}'", "DROP TABLE 'a\n{}'"])
def test_control_characters_are_refused_wherever_they_stand(char: str, text: str) -> None:
    expected = f"line 2, column 1: the character U+{ord(char):04X} is not allowed, not even in quotes"
    assert str(refusal(text.format(char))) == expected


def test_of_empty_statements_nothing_is_left_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ";" * 200_000 + "SHOW SOURCES" + "; ;\n" * 100_000 + "/* ; */;--;\n;" * 10_000 + " SHOW TABLES;;"
    tokens: list[int] = []
    parse = MzShareParser.parse

    def counted(self: MzShareParser, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        tokens.append(len(raw_tokens))
        return parse(self, raw_tokens, sql)

    monkeypatch.setattr(MzShareParser, "parse", counted)
    assert len(parse_script(text)) == 2
    assert tokens == [len(["SHOW", "SOURCES", ";", "SHOW", "TABLES", ";"])]
    error = refusal(";;\n; ; SHOW SOURCES;;;\n;; NONSENSE")
    assert str(error).startswith("line 3, column 4: NONSENSE is not supported")


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_script_of_a_mebibyte_is_read_and_one_byte_more_is_not() -> None:
    text = "SHOW SOURCES--"
    assert len(parse_script(text + "é" * ((MAX_SCRIPT_BYTES - len(text)) // 2))) == 1
    error = refusal(text + "é" * (MAX_SCRIPT_BYTES // 2))
    assert str(error) == "the script is 1048590 bytes long, the limit is 1048576"
    assert error.line_number is None


def test_ten_thousand_statements_are_read_and_one_more_is_not() -> None:
    assert len(parse_script("SHOW SOURCES;\n" * 10_000 + "; -- end")) == 10_000
    error = refusal("SHOW SOURCES;\n" * 10_000 + " SHOW TABLES")
    assert str(error) == "line 10001, column 2: the script has more than 10000 statements"


def test_nesting_is_limited_before_anything_is_parsed() -> None:
    expected = "SOURCES, TABLES, VIEWS, SUBSOURCES, SCHEMAS or CREATE"
    assert str(refusal("SHOW " + "(" * 64)) == f"line 1, column 6: expected {expected}, found ("
    columns = ", ".join(f"c{number} int" for number in range(1_000))
    assert len(one(f"CREATE TABLE t ({columns}) FROM SOURCE s FORMAT JSON").columns) == 1_000  # type: ignore[union-attr]
    more = refusal(f"CREATE TABLE t ({columns}, \nmore int) FROM SOURCE s FORMAT JSON INCLUDE KEY")
    assert str(more) == "line 2, column 1: 1,002 columns are too many: the limit is 1,000"
    assert str(refusal("SHOW " + "(" * 65)) == "line 1, column 70: brackets are nested more than 64 deep"
    assert str(refusal("SHOW " + "[(" * 40_000)) == "line 1, column 70: brackets are nested more than 64 deep"
    assert len(parse_script('SHOW SOURCES; DROP TABLE "' + "(" * 100 + '"')) == 2


def test_a_query_has_limits_of_its_own() -> None:
    assert one(f"SELECT {'(' * 24}1{')' * 24}")
    deeper = refusal(f"SHOW TABLES; SELECT {'(' * 25}1{')' * 25}")
    assert str(deeper) == "line 1, column 45: brackets in a query are nested more than 24 deep"
    listed = ", ".join("a" for _ in range(2_499))
    assert one(f"SELECT {listed}, a")
    longer = refusal(f"SHOW TABLES; SELECT {listed}, a, a")
    assert str(longer) == "line 1, column 14: the query has more than 5,000 words and signs"
    nested = refusal(f"SHOW TABLES; SELECT {'NOT ' * 500}a")
    assert str(nested) == "line 1, column 14: this query is nested too deeply: move parts of it into views"


def test_long_chains_in_a_query_are_not_deep() -> None:
    for chain in (" + 1", " AND a", " || 'x'", " UNION SELECT a"):
        statement = one(f"SELECT a{chain * 600}")
        assert one(print_statement(statement)) == statement


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "name", "printed"),
    [
        ("T", QualifiedName("public", "t"), "public.t"),
        ("a.B", QualifiedName("a", "b"), "a.b"),
        ('"A"."b"', QualifiedName("A", "b"), '"A".b'),
        ('"a.b"', QualifiedName("public", "a.b"), 'public."a.b"'),
        ('"a""b"', QualifiedName("public", 'a"b'), 'public."a""b"'),
        ("_x$1", QualifiedName("public", "_x$1"), "public._x$1"),
        ("ÄB", QualifiedName("public", "Äb"), 'public."Äb"'),
        ('"select"', QualifiedName("public", "select"), 'public."select"'),
    ],
)
def test_names_fold_without_quotes_and_keep_their_case_with_them(text: str, name: QualifiedName, printed: str) -> None:
    assert parse_name(text) == name
    assert str(name) == printed
    assert parse_name(str(name)) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected a name, found the end of the statement"),
        ("a;", "line 1, column 2: expected the end of the statement, found ;"),
        ("a b", "line 1, column 3: expected the end of the statement, found b"),
        ("a.b.c", "line 1, column 4: a name has at most two parts, schema.name"),
        ('"a\tb"', "line 1, column 1: a name must not contain the control character U+0009"),
        (f'"{"é" * 128}"', "line 1, column 1: a name is 256 bytes long, the limit is 255"),
    ],
)
def test_what_is_no_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse_name(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("part", ["", "a\x00", "\x85", "x" * 256, "\ud800"])
def test_a_qualified_name_cannot_be_made_of_what_cannot_be_written(part: str) -> None:
    with pytest.raises(StatementError):
        QualifiedName("public", part)
    with pytest.raises(StatementError):
        QualifiedName(part, "x")


def test_reserved_words_are_names_in_quotes_only() -> None:
    for word in RESERVED:
        assert one(f'DROP TABLE "{word}"') == DropItem("table", QualifiedName("public", word))
        assert f'"{word}"' in str(QualifiedName("public", word))
        with pytest.raises(StatementError, match="reserved word"):
            parse_name(word.upper())
