"""Names that want to be something else: quoted right or refused, and in no printed text anything but a name."""

from __future__ import annotations

import pytest
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote
from airflow_provider_mzshare.control.sql.queries import parse_query, print_query
from airflow_provider_mzshare.control.sql.script import parse_name, parse_script, print_statement
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.errors import StatementError

NASTY = [
    '"', '""', "'", "''", '"; DROP TABLE t; --', "a.b", "..", "`", "``", "$(rm -rf /)", "${HOME}", "$$", "$a$", "a$b",
    "{{ x }}", "{% raw %}", "{#", "--conf", "-- ", "/*", "*/", "\\", "\\'", "%s", "%(x)s", ":x", "?", "😀",
    "👩\u200d👧", "\u202e", "\u200b", "é", "İ", "ß", "ſ", "Ａ", " ", "a b", "0", "1a", "A", "select", "source", "view",
    "offset", "u1", "NULL", "true", "*", "a=b", "x" * 255, "é" * 127, "😀" * 63,
]  # fmt: skip
TOO_LONG = ["x" * 256, "é" * 128, "😀" * 64, "x" * 1_000_000, "ab." * 300_000]


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_is_quoted_right_wherever_it_stands(name: str) -> None:
    full = QualifiedName(name, name)
    assert parse_name(str(full)) == full
    legacy = LegacySpec(shape="tables", tables=((quote(name), str(full)),), progress=str(full))
    for statement in (
        values.DropItem("table", full),
        values.CreateSchema(name),
        values.Rename("source", full, name),
        values.CommentOn("column", full, name, name),
        values.CreateTable(full, False, full, (name, name, name), "text", options={"text_columns": (name,)}),
        values.CreateSource(full, False, name, KafkaSourceSpec(connection=name, topic=name)),
        values.CreateSource(full, False, None, LoadGeneratorSpec(generator="auction", legacy=legacy)),
        values.CreateSubsource(full, (), full, (name,), (name,)),
        values.CreateView(full, False, query_on(name)),
    ):
        printed = print_statement(statement)
        assert parse_script(printed)[0].statements == (statement,)
        # Nothing of the name begins a statement, a comment or an option of its own.
        assert [t.statements for t in parse_script(f"{printed}; SHOW TABLES")] == [
            (statement,),
            (values.Show("tables"),),
        ]


def query_on(name: str) -> str:
    name = '"' + name.replace('"', '""') + '"'
    return print_query(parse_query(f"SELECT {name}.{name} AS {name} FROM {name}.{name} AS {name}"))


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_in_a_query_is_one_word_to_postgresql_too(name: str) -> None:
    words = [token for token in Postgres().tokenize(query_on(name)) if token.text == name]
    assert len(words) == 6
    assert {word.token_type for word in words} <= {TokenType.IDENTIFIER, TokenType.VAR}


@pytest.mark.parametrize("name", TOO_LONG, ids=lambda name: f"{len(name):,}")
@pytest.mark.parametrize(
    "text",
    [
        'DROP TABLE "{}"', 'DROP TABLE a."{}"', 'CREATE SCHEMA "{}"', 'ALTER TABLE t RENAME TO "{}"',
        'CREATE TABLE t FROM SOURCE s (REFERENCE a."{}")', 'CREATE TABLE t FROM SOURCE s WITH (TEXT COLUMNS ("{}"))',
        "CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC '{}')", 'SHOW TABLES FROM "{}"',
        "CREATE SOURCE s FROM KAFKA CONNECTION \"{}\" (TOPIC 't')",
        'COMMENT ON COLUMN t."{}" IS NULL', 'SELECT "{}" FROM t', 'CREATE VIEW v AS SELECT a FROM "{}"',
    ],
)  # fmt: skip
def test_a_name_that_is_too_long_is_refused_in_one_short_line(text: str, name: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse_script(text.format(name))
    message = str(caught.value)
    assert f"is {len(name.encode())} bytes long, the limit is 255" in message
    assert len(message) < 200


@pytest.mark.parametrize("text", ["DROP TABLE {}", "SELECT {} FROM t", "SELECT a FROM {}"])
def test_a_word_of_a_megabyte_is_refused(text: str) -> None:
    with pytest.raises(StatementError, match="the limit is 255"):
        parse_script(text.format("x" * 1_000_000))


def test_a_script_of_more_than_a_mebibyte_is_not_looked_at() -> None:
    with pytest.raises(StatementError, match="the script is 2097165 bytes long, the limit is 1048576"):
        parse_script(f'DROP TABLE "{"x" * (2 << 20)}"')
