"""A query as a tree of ours: one SELECT, every name folded and quoted, what it reads found. Looks nothing up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, fold
from airflow_provider_mzshare.control.sql.queries import parse_query
from airflow_provider_mzshare.control.sql.query_grammar import SLIPS, needs_quotes_in_query
from airflow_provider_mzshare.control.views.admitted import refusal
from airflow_provider_mzshare.control.views.view_errors import BadQuery
from airflow_provider_mzshare.errors import StatementError

DIALECT = "postgres"
_UNNAMED = "?column?"


def read_query(text: str) -> exp.Query:
    """:param text: one SELECT, UNION or WITH; anything that is not admitted is refused by name."""
    tree = read_stored(text)
    check_admitted(tree)
    return tree


def check_admitted(tree: exp.Query, of: str = "") -> None:
    """Every query is checked before it runs: one that was allowed when it was stored may no longer be."""
    if why := refusal(tree):
        raise BadQuery(f"{of}: {why}" if of else why)


def read_stored(text: str) -> exp.Query:
    """The query of an existing view: it can be shown, renamed and dropped, even if it would be refused now."""
    try:
        tree = parse_query(text)
    except StatementError as error:
        raise BadQuery(f"the query cannot be read: {error}") from None
    for node in tree.walk():
        node.comments = None
    for name in tree.find_all(exp.Identifier):
        if not name.args.get("quoted"):
            name.set("this", fold(name.this))
        name.set("quoted", True)
    return tree


@contextmanager
def understood() -> Iterator[None]:
    """sqlglot raises many errors on text that it does not expect; users get one error for all of them."""
    try:
        yield
    except (SqlglotError, RecursionError, *SLIPS) as error:
        raise BadQuery("mzshare does not understand this query", hint="write it in a simpler way") from error


def tables_of(tree: exp.Query) -> list[exp.Table]:
    """Every table of the query that is not defined by its own WITH."""
    with understood():
        return [
            table
            for scope in traverse_scope(tree)
            for table in scope.tables
            if table.args.get("db") or table.name not in scope.cte_sources
        ]


def full_name(table: exp.Table) -> tuple[str, str]:
    return (table.text("db") or DEFAULT_SCHEMA, table.name)


def print_query(tree: exp.Query, *, quote_all: bool = False) -> str:
    """On one line, in the words of PostgreSQL; names are quoted where they have to be, or all of them."""
    shown = tree.copy()
    for name in shown.find_all(exp.Identifier):
        name.set("quoted", quote_all or needs_quotes_in_query(name.this))
    return shown.sql(DIALECT, comments=False)


def name_outputs(tree: exp.Query) -> exp.Query:
    """Give each column that was left without a name the one that PostgreSQL gives it."""
    for select in tree.find_all(exp.Select):
        select.set("expressions", [_named(projection) for projection in select.expressions])
    return tree


def _named(projection: exp.Expr) -> exp.Expr:
    if isinstance(projection, exp.Alias) or projection.is_star:
        return projection
    return exp.alias_(projection, exp.to_identifier(_own_name(projection), quoted=True))


def _own_name(node: exp.Expr) -> str:
    if isinstance(node, (exp.Paren, exp.Window, exp.Filter, exp.WithinGroup)):
        return _own_name(node.this)
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Subquery):
        first = node.this.selects[0]
        return first.alias or _own_name(first)
    if isinstance(node, exp.Cast):
        inner = _own_name(node.this)
        return inner if inner != _UNNAMED else node.to.sql(DIALECT).lower().split("(")[0]
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Binary)):
        return node.sql(DIALECT).split("(")[0].lower()
    return _UNNAMED
