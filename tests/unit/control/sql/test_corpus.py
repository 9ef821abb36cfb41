"""Every statement of the golden corpus has its exact canonical print, and that parses back; or its exact error."""

from __future__ import annotations

import re
from typing import get_args

import pytest
import sqlglot

from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.column_types import ALIASES, COLUMN_TYPES
from airflow_provider_mzshare.control.sql.parser import STATEMENTS
from airflow_provider_mzshare.control.sql.script import parse_script, print_statement
from airflow_provider_mzshare.errors import StatementError
from tests.support.sql_corpus import BAD, CASES, GOOD, Case


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_statement_prints_canonically_and_parses_back_to_the_same(case: Case) -> None:
    ((statement,),) = (transaction.statements for transaction in parse_script(case.sql))
    assert print_statement(statement) == case.printed
    ((again,),) = (transaction.statements for transaction in parse_script(str(case.printed)))
    assert again == statement
    assert print_statement(again) == case.printed


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_the_dialect_round_trips_its_own_syntax_trees(case: Case) -> None:
    tree = sqlglot.parse_one(case.sql, read="mzshare")
    text = tree.sql(dialect="mzshare")
    again = sqlglot.parse_one(text, read="mzshare")
    assert again == tree
    assert again.sql(dialect="mzshare") == text


@pytest.mark.parametrize("case", BAD, ids=str)
def test_error_says_where_and_what(case: Case) -> None:
    with pytest.raises(StatementError) as caught:
        parse_script(case.sql)
    assert str(caught.value) == case.error
    line, column = map(int, re.findall(r"\d+", str(case.error))[:2])
    assert (caught.value.line_number, caught.value.column) == (line, column)


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    assert len(CASES) >= 600
    assert len(GOOD) >= 200
    assert len({case.sql for case in CASES}) == len(CASES)


def test_the_corpus_has_every_statement_and_type() -> None:
    text = " ".join(case.sql for case in GOOD).upper()
    for words in (*STATEMENTS[:-2], *COLUMN_TYPES, *ALIASES):
        assert re.search(rf"\b{re.sub(' ', r' +', words.upper())}\b", text), words
    seen = {type(statement) for case in GOOD for t in parse_script(case.sql) for statement in t.statements}
    assert seen == {*get_args(values.Plain), values.Explain}


def test_equals_signs_in_options_change_nothing() -> None:
    """Once with, once without, wherever the canonical print has an option."""
    words = "TOPIC|SEED|UP TO|KEYS|BACKFILL RATE|CUTOVER WAIT|EXTERNAL REFERENCE|TEXT COLUMNS"
    option = re.compile(rf"(?<=[(, ])({words}) (?=['(\w])")
    tried = 0
    for case in GOOD:
        spaced = option.sub(r"\1 = ", str(case.printed))
        if "RESET" in case.sql or spaced == case.printed:
            continue
        assert parse_script(spaced) == parse_script(str(case.printed)), spaced
        tried += 1
    assert tried >= 40
