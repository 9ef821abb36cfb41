"""Column lists outside of a statement: ``n bigint, s text``, read with the statement's own grammar."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql.column_grammar import ColumnGrammar
from airflow_provider_mzshare.control.sql.column_types import from_sql
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.scanning import refuse, scan
from airflow_provider_mzshare.core.specs import ColumnSpec
from airflow_provider_mzshare.errors import StatementError


class _ColumnList(ColumnGrammar):
    def read_all(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr]:
        self._begin(raw_tokens, sql)
        columns = [self._read_one()]
        while self._match(TokenType.COMMA):
            columns.append(self._read_one())
        self._read_end()
        return columns

    def _read_one(self) -> exp.Expr:
        """Outside of a statement a key is an argument of its own."""
        column = None if self._match(TokenType.PRIMARY_KEY, advance=False) else self._read_column()
        if column is None or self._match(TokenType.PRIMARY_KEY, advance=False):
            self.raise_error("PRIMARY KEY is not written here: name its columns in primary_key")
        return column

    def read_one_type(self, raw_tokens: list[Token], sql: str) -> exp.Expr:
        self._begin(raw_tokens, sql)
        found = self._read_type()
        self._read_end()
        return found


def parse_columns(text: str) -> tuple[ColumnSpec, ...]:
    """Names fold and quote as in SQL. Raises StatementError with line and column."""
    clean, tokens, parser = _prepared(text)
    try:
        columns = parser.read_all(tokens, clean)
    except ParseError as error:
        raise _told(error) from None
    return tuple(ColumnSpec(name=c.name, type=from_sql(c.args["kind"].name)) for c in columns)


def parse_type(text: str) -> str:
    """The canonical name of a column type as SQL spells it."""
    clean, tokens, parser = _prepared(text)
    try:
        return from_sql(parser.read_one_type(tokens, clean).name)
    except ParseError as error:
        raise _told(error) from None


def _prepared(text: str) -> tuple[str, list[Token], _ColumnList]:
    clean, dialect = scan(text), MzShare()
    try:
        return clean, dialect.tokenize(clean), _ColumnList(dialect=dialect)
    except TokenError as error:
        refuse(clean, error.start or 0, "the text cannot be read from about here on")


def _told(error: ParseError) -> StatementError:
    facts = error.errors[0]
    return StatementError(facts["description"], line=facts["line"], column=facts["col"])
