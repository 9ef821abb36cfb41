"""Queries between text and syntax tree: the canonical print, which parses back to the same; for views and SELECT."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError

from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.query_grammar import QueryGrammar
from airflow_provider_mzshare.control.sql.scanning import refuse, scan
from airflow_provider_mzshare.errors import StatementError


def parse_query(text: str) -> exp.Query:
    """One query, in PostgreSQL's words, as sqlglot's tree. Raises StatementError."""
    clean, dialect = scan(text), MzShare()
    try:
        return QueryGrammar(dialect=dialect).read(dialect.tokenize(clean), clean)
    except ParseError as error:
        facts = error.errors[0]
        raise StatementError(facts["description"], line=facts["line"], column=facts["col"]) from None
    except TokenError as error:
        refuse(clean, error.start or 0, "the text cannot be read from about here on")


def print_query(tree: exp.Query) -> str:
    """One line; what PostgreSQL has no words for is a ValueError."""
    try:
        return tree.sql(dialect=MzShare, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise ValueError(f"PostgreSQL has no syntax for this: {error}") from None
    except RecursionError:
        raise ValueError("this query is nested too deeply: move parts of it into views") from None


def settled_print(tree: exp.Query) -> str:
    """The print that does not change any more when it is read and printed again. Raises ValueError.

    sqlglot does not promise this: a few of its prints mean something else to it, or nothing.
    """
    text = print_query(tree)
    for _ in range(2):
        try:
            again = print_query(parse_query(text))
        except StatementError:
            break
        if again == text:
            return text
        text = again
    raise ValueError(
        "this query cannot be stored: its printed form would have another meaning; write it in a simpler way"
    )
