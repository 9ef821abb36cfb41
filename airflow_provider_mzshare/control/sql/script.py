"""The door to this package: scripts to transactions of statements, names, and statements back to SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from airflow_provider_mzshare.control.sql.binding import Binder, qualified_name
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, QualifiedName
from airflow_provider_mzshare.control.sql.parser import MzShareParser
from airflow_provider_mzshare.control.sql.printing import (
    print_create_source,
    print_create_table,
    print_settings,
    print_statement,
)
from airflow_provider_mzshare.control.sql.queries import parse_query, print_query
from airflow_provider_mzshare.control.sql.scanning import refuse, scan
from airflow_provider_mzshare.control.sql.values import (  # fmt: skip
    AddSubsources,
    AlterSourceSet,
    AlterSystem,
    AlterTable,
    AlterTableSet,
    CommentOn,
    CreateSchema,
    CreateSource,
    CreateSubsource,
    CreateTable,
    CreateView,
    DropItem,
    DropSchema,
    DropSubsources,
    Explain,
    Kind,
    Output,
    Plain,
    Query,
    RefreshReferences,
    Rename,
    Show,
    ShowCreate,
    Statement,
    Swap,
    Transaction,
    Write,
)
from airflow_provider_mzshare.errors import StatementError

__all__ = [
    "DEFAULT_SCHEMA", "AddSubsources", "AlterSourceSet", "AlterSystem", "AlterTable", "AlterTableSet", "CommentOn",
    "CreateSchema", "CreateSource", "CreateSubsource", "CreateTable", "CreateView", "DropItem", "DropSchema",
    "DropSubsources", "Explain", "Kind", "Output", "Plain", "QualifiedName", "Query", "RefreshReferences", "Rename",
    "Show", "ShowCreate", "Statement", "Swap", "Transaction", "Write", "parse_name", "parse_query", "parse_script",
    "print_create_source", "print_create_table", "print_query", "print_settings",
    "print_statement",
]  # fmt: skip

T = TypeVar("T")


def parse_script(text: str) -> tuple[Transaction, ...]:
    """Every statement of a script, in order. Raises StatementError with line and column; then nothing is to be done."""
    clean = scan(text)
    dialect = MzShare()
    parsed = _parsed(clean, lambda: MzShareParser(dialect=dialect).parse(dialect.tokenize(clean), clean))
    return _transactions(clean, [node for node in parsed if node is not None])


def parse_name(text: str) -> QualifiedName:
    """``[schema.]name`` as in a statement: without quotes, upper case is folded."""
    clean = scan(text)
    dialect = MzShare()
    node = _parsed(clean, lambda: MzShareParser(dialect=dialect).parse_name(dialect.tokenize(clean), clean))
    return qualified_name(node)


def _parsed(text: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except ParseError as error:
        facts = error.errors[0]
        raise StatementError(facts["description"], line=facts["line"], column=facts["col"]) from None
    except TokenError as error:
        refuse(text, error.start or 0, "the text cannot be read from about here on")


def _transactions(text: str, parsed: list[exp.Expr]) -> tuple[Transaction, ...]:
    binder = Binder(text)
    transactions: list[Transaction] = []
    group: list[Statement] | None = None
    begin: exp.Expr | None = None
    for node in parsed:
        if isinstance(node, exp.Transaction):
            if begin:
                binder.refuse(node, "BEGIN inside a transaction: expected COMMIT first")
            begin, group = node, []
        elif isinstance(node, exp.Commit):
            if group is None:
                binder.refuse(node, "COMMIT without BEGIN")
            transactions.append(Transaction(tuple(group), explicit=True))
            begin = group = None
        elif group is None:
            transactions.append(Transaction((binder.bind(node),), explicit=False))
        else:
            group.append(binder.bind(node))
    if begin:
        binder.refuse(begin, "BEGIN without COMMIT: expected COMMIT before the end of the script")
    return tuple(transactions)
