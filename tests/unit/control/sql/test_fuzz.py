"""Mutated statements raise only our error, with its place, and quickly; what still parses prints and parses back."""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.control.sql.durations import parse_duration
from airflow_provider_mzshare.control.sql.script import Transaction, parse_script, print_statement
from airflow_provider_mzshare.errors import StatementError
from tests.support.sql_corpus import GOOD, STATEMENTS

PIECES = [
    *"'\"()[]{};,.=-+*/\\`$#@!?%&|~^<>:", "--", "/*", "*/", "''", '""', "$$", "{{", "{#", "#}", "E'", "U&'", "x'",
    "0x", "1e9", "1.5", "\n", "\r", "\t", "\x00", "\x1b", "\u2028", "\u202e", "é", "😀", "\ud800", "BEGIN;", "COMMIT;",
    "SELECT", "ELSE", "END", "IF NOT EXISTS", "CASCADE", "FORMAT", "WITH (", "KEY", "NULL", "PARTITION BY", "9" * 5_000,
    "x" * 300, "EXPLAIN", "FROM (", "AS", "CASE WHEN", "ARRAY[", "::", "UNION", "LATERAL", "FOR UPDATE", "INTO", "|>",
    "CAST(", "IN (", "OVER (", "->>", "INTERVAL", "struct(", "map[", "VALUES", "JOIN", "LIKE", "NOT", "BETWEEN",
]  # fmt: skip
NESTS = [
    ("(", ")"), ("(SELECT ", ")"), ("f(", ")"), ("ARRAY[", "]"), ("struct(", ")"), ("NOT ", ""), ("- ", ""), ("[", "]"),
    ("CASE WHEN ", " END"), ("CAST(", " AS int)"), ("SELECT 1 UNION ", ""), ("", "::int"), ("x IN (", ")"),
    ("(SELECT * FROM ", ") AS x"), ("EXPLAIN ", ""), ("/*", "*/"), ("a.", ""), ("WITH x AS (", ") SELECT 1"),
    ("", " + 1"),
]  # fmt: skip
TOKEN = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|\w+|\s+|.", re.DOTALL)
LIMIT_SECONDS = 0.5
"""Of the thread's own time. Nearly all need a hundredth of it; queries nested as deep as we let them need more."""
BASES = [case.sql for case in GOOD] + [case.sql for case in GOOD if case.file == "queries"] * 3 + STATEMENTS[::5]
"""Mostly what parses, and queries above all: theirs is the grammar that is not our own."""


@pytest.fixture(autouse=True, scope="module")
def quiet_collector() -> Iterator[None]:
    """What other tests left in memory is not walked while a parse is timed."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def attempt(text: str) -> tuple[tuple[Transaction, ...], float]:
    """Parse; anything but our error is raised, and so is one that took too long."""
    started = time.thread_time()
    transactions: tuple[Transaction, ...] = ()
    refused = None
    try:
        transactions = parse_script(text)
    except StatementError as error:
        refused = error
    took = time.thread_time() - started
    assert took < LIMIT_SECONDS, (took, text)
    if refused and refused.line_number is None:
        assert "the limit is" in str(refused), text
    elif refused:
        assert refused.column is not None, text
        assert 1 <= refused.line_number <= text.count("\n") + 1, text  # type: ignore[operator]
        assert 1 <= refused.column <= len(text) + 1, text
        assert len(str(refused).splitlines()) == 1, text
    return transactions, took


# ── mutations ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _delete(tokens: list[str], source: random.Random) -> None:
    del tokens[source.randrange(len(tokens))]


def _duplicate(tokens: list[str], source: random.Random) -> None:
    at = source.randrange(len(tokens))
    tokens.insert(at, tokens[at] * source.choice((1, 1, 1, 30)))


def _swap(tokens: list[str], source: random.Random) -> None:
    one, other = source.randrange(len(tokens)), source.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _insert(tokens: list[str], source: random.Random) -> None:
    tokens.insert(source.randrange(len(tokens) + 1), source.choice(PIECES))


def _unicode(tokens: list[str], source: random.Random) -> None:
    high = source.choice((0x80, 0x3000, 0x10FFFF))
    tokens.insert(source.randrange(len(tokens) + 1), "".join(chr(source.randrange(high)) for _ in range(3)))


def _truncate(tokens: list[str], source: random.Random) -> None:
    del tokens[source.randrange(len(tokens)) + 1 :]
    tokens[-1] = tokens[-1][: source.randint(1, len(tokens[-1]))] if tokens[-1] else ""


def _graft(tokens: list[str], source: random.Random) -> None:
    other = TOKEN.findall(source.choice(STATEMENTS))
    begin = source.randrange(len(other))
    at = source.randrange(len(tokens) + 1)
    tokens[at:at] = other[begin : begin + source.randint(1, 12)]


def _nest(tokens: list[str], source: random.Random) -> None:
    before, after = source.choice(NESTS)
    depth = source.choice((1, 2, 5, 12, 20, 60, 150))
    at = source.randrange(len(tokens))
    tokens[at] = before * depth + tokens[at] + after * depth


def _quote(tokens: list[str], source: random.Random) -> None:
    at = source.randrange(len(tokens))
    mark = source.choice("'\"")
    tokens[at] = mark + tokens[at] + source.choice((mark, ""))


MUTATIONS: list[Callable[[list[str], random.Random], None]] = [
    _delete, _duplicate, _swap, _insert, _unicode, _truncate, _graft, _nest, _quote,
]  # fmt: skip


def mutate(text: str, source: random.Random) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(source.choice((1, 1, 2, 3, 5))):
        source.choice(MUTATIONS)(tokens, source)
        tokens = tokens or [" "]
    return "".join(tokens)


def run(seed: int, count: int) -> tuple[int, float, str]:
    """How many of them parsed all the same, and the slowest."""
    source = random.Random(seed)
    parsed, slowest, slow_text = 0, 0.0, ""
    for _ in range(count):
        text = mutate(source.choice(BASES), source)
        transactions, took = attempt(text)
        if took > slowest:
            slowest, slow_text = took, text
        parsed += bool(transactions)
        for statement in (statement for transaction in transactions for statement in transaction.statements):
            printed = print_statement(statement)
            assert parse_script(printed)[0].statements == (statement,), text
    return parsed, slowest, slow_text


# ── tests ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_mutated_statements_raise_only_our_error_and_quickly(seed: int) -> None:
    parsed, _, _ = run(seed, 1_000)
    assert 50 < parsed < 500, "the mutations are too weak or too strong to show anything"


@pytest.mark.full
@pytest.mark.parametrize("share", range(10))
def test_a_hundred_thousand_mutated_statements(share: int) -> None:
    parsed, slowest, text = run(1_000 + share, 10_000)
    print(f"share {share}: {parsed:,} of 10,000 parsed; the slowest took {slowest * 1_000:.0f} ms: {text[:200]!r}")
    assert parsed > 500


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


@pytest.mark.parametrize("nest", NESTS, ids=str)
@pytest.mark.parametrize("depth", [5, 20, 24, 63, 1_000, pytest.param(20_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("begin", ["SELECT ", "SELECT * FROM ", "CREATE VIEW v AS SELECT a WHERE "])
def test_nesting_is_read_or_refused_but_never_hangs(nest: tuple[str, str], depth: int, begin: str) -> None:
    attempt(begin + nest[0] * depth + "a" + nest[1] * depth)
    attempt(begin + nest[0] * depth)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500), ("1s", 1_000), ("1.5 sec", 1_500), ("2m", 120_000), ("2 min", 120_000), ("1 hr", 3_600_000),
        ("1 DAY", 86_400_000), ("1w 1d", 691_200_000), ("1h30m", 5_400_000), (" 7 days ", 604_800_000), ("0s", 0),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
