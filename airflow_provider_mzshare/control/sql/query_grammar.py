"""The grammar of queries: sqlglot's PostgreSQL, kept to one query that only reads, and within limits."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.parser import SENTINEL_NONE
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_mzshare.control.sql.grammar import Reader
from airflow_provider_mzshare.control.sql.names import RESERVED, check_name, fold, is_bare, needs_quotes
from airflow_provider_mzshare.control.sql.query_tokens import check_kept, check_tokens
from airflow_provider_mzshare.control.sql.scanning import refuse, shown

MAX_QUERY_DEPTH = 64
STEPS_PER_TOKEN, STEPS = 12, 4_000
"""Limits of sqlglot's steps for a query: it tries several readings, and nested, a few rules take exponential time."""

BEGINNINGS = (TokenType.SELECT, TokenType.WITH)
_NOT_READING = {
    exp.Into: "SELECT INTO",
    exp.Lock: "FOR UPDATE or FOR SHARE",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.SessionParameter: "a parameter",
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
    exp.DDL: "a change of definitions",
    exp.DML: "a change of data",
    exp.Command: "a command",
    exp.Describe: "DESCRIBE",
    exp.Summarize: "SUMMARIZE",
}
_CHAINS = (exp.Binary, exp.SetOperation)
_KEYWORDS = frozenset(Postgres.Tokenizer.KEYWORDS)
SLIPS = (AttributeError, TypeError, ValueError, KeyError, IndexError, AssertionError, NotImplementedError)
"""Errors that sqlglot raises, besides its own, on text that it does not understand."""


def needs_quotes_in_query(name: str) -> bool:
    """In a query more names need quotes: sqlglot has more keywords, and reads ``$`` in several ways."""
    return needs_quotes(name) or "$" in name or name.upper() in _KEYWORDS


class QueryGrammar(Reader):
    # No statement but a query, wherever sqlglot would take any.
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {}
    _steps = 0

    def read(self, tokens: list[Token], sql: str) -> exp.Query:
        """The tokens, all of them, as one query in canonical form. Raises ParseError or StatementError."""
        self._steps = STEPS + STEPS_PER_TOKEN * len(tokens)
        self._begin(tokens, sql)
        first = next((token for token in tokens if token.token_type != TokenType.L_PAREN), None)
        if not first or first.token_type not in BEGINNINGS:
            self._expected("a query, SELECT …")
        check_tokens(sql, tokens)
        try:
            tree = self._read_tree()
            _check_depth(tree)
            tree = _canonical(self._checked(tree))
            check_kept(sql, tokens, self.dialect.tokenize(tree.sql(dialect=self.dialect)))
            return tree
        except RecursionError:
            refuse(sql, tokens[0].start, "this query is nested too deeply: move parts of it into views")
        except SLIPS:
            refuse(sql, tokens[0].start, "this query cannot be read")

    def _read_tree(self) -> exp.Query:
        tree = self._parse_statement()
        self._read_end()
        while isinstance(tree, exp.Subquery) and tree.is_wrapper:
            tree = tree.this
        if not isinstance(tree, exp.Query):
            refuse(self.sql, self._tokens[0].start, "this is not a query: expected SELECT …")
        return tree

    def _checked(self, tree: exp.Query) -> exp.Query:
        for node in tree.walk():
            for kind, what in _NOT_READING.items():
                if isinstance(node, kind):
                    self._refuse(node, f"a query only reads: {what} is not allowed in it")
            if isinstance(node, exp.Table) and node.args.get("catalog"):
                self._refuse(node, "a name has at most two parts, schema.name")
            if isinstance(node, exp.Select) and not node.expressions:
                self._refuse(node, "this query selects nothing: expected a column or *")
            if isinstance(node, exp.Identifier):
                self._check_identifier(node)
        return tree

    def _check_identifier(self, node: exp.Identifier) -> None:
        if not node.args.get("quoted"):
            if not is_bare(node.name):
                self._refuse(node, f"{shown(node.name)} is not a name, and a query has no parameters")
            if fold(node.name) in RESERVED:
                name = fold(node.name)
                self._refuse(node, f'{name.upper()} is a reserved word; to use it as a name, write "{name}"')
        try:
            check_name(node.name, "a name")
        except ValueError as error:
            self._refuse(node, str(error))

    def _refuse(self, node: exp.Expr, message: str) -> NoReturn:
        placed = next((found for found in (node, *node.walk()) if "start" in found.meta), None)
        refuse(self.sql, placed.meta["start"] if placed else self._tokens[0].start, message)

    def _expected(self, what: str) -> NoReturn:
        Reader.raise_error(self, f"expected {what}, found {self._found()}")

    # ── what sqlglot calls ────────────────────────────────────────────────────────────────────────────────────────────

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        """sqlglot's messages in our words: many of them speak of its own classes."""
        if message.startswith("Expecting "):
            super().raise_error(f"expected {message.removeprefix('Expecting ')}, found {self._found()}", token)
        super().raise_error(f"the query cannot be read here, at {self._found()}", token)

    def _advance(self, times: int = 1) -> None:
        self._steps -= 1
        if not self._steps:
            refuse(self.sql, self._tokens[0].start, "this query is too complex to be read: nest it less")
        super()._advance(times)

    def _parse_as_command(self, start: Token) -> NoReturn:
        self.raise_error("a command", start)


def _check_depth(tree: exp.Query) -> None:
    """Limit how deeply a query is nested. A chain of operators, ``a + b + c``, counts as one level."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_QUERY_DEPTH:
            raise RecursionError
        for child in node.iter_expressions():
            chained = isinstance(node, _CHAINS) and isinstance(child, _CHAINS) and child.arg_key == "this"
            waiting.append((child, depth if chained else depth + 1))


def _canonical(tree: exp.Query) -> exp.Query:
    """One tree for one meaning, however names were written."""
    for node in list(tree.walk()):
        if isinstance(node, exp.Identifier):
            name = node.name if node.args.get("quoted") else fold(node.name)
            node.set("this", name)
            node.set("quoted", needs_quotes_in_query(name))
        elif isinstance(node, exp.Anonymous) and isinstance(node.this, str):
            node.set("this", node.this.upper())
    return tree
