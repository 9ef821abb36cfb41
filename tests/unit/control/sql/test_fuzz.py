"""Mutated statements raise only our error and quickly; odd names and strings survive print and parse."""

from __future__ import annotations

import gc
import random
import string
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.control.sql.durations import MAX_MS, format_duration, parse_duration
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.statements import (
    AlterTable,
    CreateSource,
    CreateTable,
    DropItem,
    ShowCreate,
    Transaction,
    parse_name,
    parse_script,
    print_statement,
)
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.types.specs import ColumnSpec, Include, KafkaSourceSpec, Start

HERE = Path(__file__).parent
STATEMENTS = [
    block.partition("\n--> ")[0]
    for block in (HERE / "round_trip.sql").read_text(encoding="utf-8").strip().split("\n\n")[1:]
]
PIECES = [
    *"'\"()[]{};,.=-+*/\\`$#@!?%&|~^<>:", "--", "/*", "*/", "''", '""', "$$", "{{", "{#", "#}", "E'", "U&'", "x'",
    "0x", "1e9", "1.5", "\n", "\r", "\t", "\x00", "\x1b", "\u2028", "\u202e", "é", "😀", "\ud800", "BEGIN;", "COMMIT;",
    "SELECT", "ELSE", "END", "IF NOT EXISTS", "CASCADE", "FORMAT", "WITH (", "KEY", "NULL", "PARTITION BY", "9" * 5_000,
    "x" * 300,
]  # fmt: skip
ODD = [
    "select", "source", "table", "if", "a b", 'q"q', "$(rm -rf /)", "{{ x }}", "--conf", "/*", "';", "`", "\\", "%s",
    "😀", "\u202e", "İ", "ſource", "a.b", ".", "0", "public", "\u00a0",
]  # fmt: skip
LIMIT_SECONDS = 0.05

part = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=60),
    st.text(string.printable[:95], min_size=1, max_size=60),
)
names = st.builds(QualifiedName, part, part)
column_names = part.filter(lambda name: not set(name) & set(" ,;{}()=") and not name.lower().startswith("_mz_"))


@pytest.fixture(autouse=True, scope="module")
def quiet_collector() -> Iterator[None]:
    """What other tests left in memory is not walked while a parse is timed."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def attempt(text: str) -> tuple[tuple[Transaction, ...], StatementError | None]:
    """Parse; anything but our error is raised, and so is one that took too long."""
    started = time.thread_time()
    transactions: tuple[Transaction, ...] = ()
    refused = None
    try:
        transactions = parse_script(text)
    except StatementError as error:
        refused = error
    assert time.thread_time() - started < LIMIT_SECONDS, text
    if refused:
        assert refused.line_number is not None, text
        assert refused.column is not None, text
        assert 1 <= refused.line_number <= text.count("\n") + 1, text
        assert 1 <= refused.column <= len(text) + 1, text
        assert len(str(refused).splitlines()) == 1, text
    return transactions, refused


def mutate(text: str, source: random.Random) -> str:
    for _ in range(source.randint(1, 6)):
        at = source.randrange(len(text) + 1)
        end = min(len(text), at + source.randint(0, 8))
        other = source.choice(STATEMENTS)
        begin = source.randrange(len(other))
        cut = other[begin : begin + source.randint(1, 30)]
        text = text[:at] + source.choice(["", source.choice(PIECES), text[at:end] * 2, cut]) + text[end:]
    return text


@pytest.mark.parametrize("share", range(6))
def test_mutated_statements_raise_only_our_error_and_quickly(share: int) -> None:
    source = random.Random(share)
    count = 0
    for _ in range(700):
        text = mutate(source.choice(STATEMENTS), source)
        transactions, refused = attempt(text)
        count += refused is not None
        for transaction in transactions:
            for statement in transaction.statements:
                assert parse_script(print_statement(statement))[0].statements == (statement,), text
    assert 300 < count < 700


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_statements_mutated_by_hypothesis_raise_only_our_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(STATEMENTS))
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, len(text)))
    attempt(text[:at] + data.draw(st.one_of(st.text(max_size=20), st.sampled_from(PIECES))) + text[end:])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_raises_only_our_error(text: str) -> None:
    attempt(text)


@settings(max_examples=60, deadline=None)
@given(names, names, part)
def test_odd_names_survive_print_and_parse(name: QualifiedName, source: QualifiedName, reference: str) -> None:
    assert parse_name(str(name)) == name
    table = CreateTable(name, False, source, reference, "text", include=(Include(what="key", name="k"),))
    spec = KafkaSourceSpec(connection=reference, topic=reference, start=Start(mode="timestamp", timestamp=0))
    for statement in (
        table,
        CreateSource(name, True, reference, spec),
        DropItem("table", name, True, True),
        ShowCreate(None, name),
        ShowCreate("source", name),
        AlterTable(name, "resume"),
        AlterTable(name, "resnapshot"),
    ):
        assert parse_script(print_statement(statement))[0].statements == (statement,)


@settings(max_examples=60, deadline=None)
@given(st.lists(column_names, min_size=1, max_size=5, unique_by=str.lower))
def test_odd_column_names_survive_print_and_parse(columns: list[str]) -> None:
    name = QualifiedName("public", "t")
    specs = tuple(ColumnSpec(name=column, type="numeric(5,2)") for column in columns)
    statement = CreateTable(name, False, name, None, "json", columns=specs)
    assert parse_script(print_statement(statement))[0].statements == (statement,)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, MAX_MS))
def test_durations_survive_print_and_parse(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500), ("1s", 1_000), ("1.5 sec", 1_500), ("2m", 120_000), ("2 min", 120_000), ("1 hr", 3_600_000),
        ("1 DAY", 86_400_000), ("1w 1d", 691_200_000), ("1h30m", 5_400_000), (" 7 days ", 604_800_000), ("0s", 0),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
