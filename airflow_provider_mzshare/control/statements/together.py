"""Which statements of a transaction are carried out together. Pure.

A transaction that creates a thousand tables holds the catalog's lock all that time. Each statement by itself does
little, but looks up much. So statements that follow each other, are of one kind and cannot affect
each other are given to one handler, which looks up and writes for all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.upstream_checks import Checked


def runs(checked: Sequence[Checked[Any]]) -> Iterator[list[Checked[Any]]]:
    """The statements in their order; each list is of one statement, or of several of one kind."""
    run: list[Checked[Any]] = []
    names: set[QualifiedName] = set()
    for one in checked:
        if run and not (_is_alike(run[0], one) and names.isdisjoint(_used(one.statement))):
            yield run
            run, names = [], set()
        run.append(one)
        if _is_joinable(one):
            names.add(one.statement.name)
    if run:
        yield run


def _is_alike(first: Checked[Any], other: Checked[Any]) -> bool:
    return _is_joinable(first) and _is_joinable(other) and type(first.statement) is type(other.statement)


def _is_joinable(checked: Checked[Any]) -> bool:
    """DROP … CASCADE is not: it may drop an object that the next statement names."""
    statement = checked.statement
    if checked.explained:
        return False
    if isinstance(statement, sql.DropItem):
        return statement.kind == "table" and not statement.cascade
    return isinstance(statement, sql.CreateTable)


def _used(statement: Any) -> set[QualifiedName]:
    """The names that the statement looks up."""
    return {statement.name, statement.source} if isinstance(statement, sql.CreateTable) else {statement.name}
