"""Helpers of all bindings: names, checked values, and errors that point at their place in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql.checks import Clause, Misfit
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, QualifiedName, quote
from airflow_provider_mzshare.control.sql.options import COLUMN_OPTIONS
from airflow_provider_mzshare.control.sql.scanning import refuse

T = TypeVar("T")


def qualified_name(table: exp.Expr) -> QualifiedName:
    return QualifiedName(table.text("db") or DEFAULT_SCHEMA, table.name)


def parts(path: nodes.Path) -> tuple[str, ...]:
    return tuple(part.name for part in path.expressions)


def as_sql(names: Iterable[str]) -> str:
    """``a."B".c``"""
    return ".".join(quote(name) for name in names)


class Binding:
    """``text`` is what the nodes were parsed from; their positions point into it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def refuse(self, node: exp.Expr, message: str) -> NoReturn:
        placed = next((found for found in node.walk() if "start" in found.meta), node)
        refuse(self._text, placed.meta.get("start", 0), message)

    def _checked(self, node: exp.Expr, check: Callable[[], T]) -> T:
        try:
            return check()
        except ValueError as error:
            self.refuse(node, str(error))

    def _fits(self, place: Callable[[Clause], exp.Expr], check: Callable[[], None]) -> None:
        """:param place: finds the node of a clause, which the error points at."""
        try:
            check()
        except Misfit as error:
            self.refuse(place(error.clause), str(error))

    def _options(self, node: exp.Expr) -> dict[str, nodes.Option]:
        return {option.name: option for option in node.args.get("settings") or ()}

    def _once(self, what: str, listed: Sequence[tuple[exp.Expr, str]]) -> tuple[str, ...]:
        """Return the texts; a text that is listed twice is refused."""
        seen: set[str] = set()
        for node, text in listed:
            if text in seen:
                self.refuse(node, f"{what} {text} is given twice")
            seen.add(text)
        return tuple(text for _, text in listed)

    def _column_options(self, node: exp.Expr, read: Callable[[Any], str]) -> dict[str, Any]:
        """TEXT COLUMNS and EXCLUDE COLUMNS, as fields; a column is in one of them at most."""
        options = self._options(node)
        given = [options[name] for name in COLUMN_OPTIONS if name in options]
        self._once("column", [(column, read(column)) for option in given for column in option.expression.expressions])
        return {
            COLUMN_OPTIONS[option.name].field: tuple(read(column) for column in option.expression.expressions)
            for option in given
        }
