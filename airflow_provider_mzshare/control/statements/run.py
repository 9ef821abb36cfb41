"""Runs parsed statements against the catalog: upstreams are asked first, then one transaction does all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.handlers.explain import explain
from airflow_provider_mzshare.control.statements.registry import READS, carry_out_run
from airflow_provider_mzshare.control.statements.together import runs
from airflow_provider_mzshare.control.statements.transaction_plans import Applied, with_plans
from airflow_provider_mzshare.control.statements.upstream_checks import Checked, Checks


class _DryRun(Exception):
    """Raised to roll back the transaction of a dry run."""


def execute_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> list[Result]:
    """Run a script; with ``dry_run`` everything is checked and nothing is kept."""
    return list(run_script(catalog, text, connections, dry_run=dry_run))


def run_script(catalog: Catalog, text: str, connections: ConnectionStore, *, dry_run: bool = False) -> Iterator[Result]:
    """The same, each transaction's results as soon as it is committed."""
    yield from run_transactions(
        catalog, [transaction.statements for transaction in parse_script(text)], connections, dry_run=dry_run
    )


def run_transactions(
    catalog: Catalog,
    transactions: Sequence[Sequence[sql.Statement]],
    connections: ConnectionStore,
    *,
    dry_run: bool = False,
) -> Iterator[Result]:
    """Statements as values, each inner sequence all or nothing."""
    groups = list(enumerate(transactions))
    if dry_run:
        # One transaction for all: nothing is committed, and later statements build on earlier ones.
        yield from _run(catalog, groups, connections, dry_run=True)
        return
    for group in groups:
        yield from _run(catalog, [group], connections, dry_run=False)


def _run(
    catalog: Catalog,
    groups: Sequence[tuple[int, Sequence[sql.Statement]]],
    connections: ConnectionStore,
    *,
    dry_run: bool,
) -> list[Result]:
    """Run in one transaction. The tables of each group are planned together, also if there are several groups."""
    numbers = [number for number, statements in groups for _ in statements]
    with Checks(catalog, connections, looks=dry_run) as checks:
        checked = list(checks.run([statement for _, statements in groups for statement in statements]))
    applied: list[Applied] = []
    if not checked:
        return []
    reads = all(isinstance(one.statement, READS) and not one.explained for one in checked)
    with _transaction(catalog, dry_run=dry_run, reads=reads) as session:
        for run in runs(checked):
            begin = len(applied)
            applied += _apply(session, numbers[begin : begin + len(run)], run, dry_run)
        if dry_run:
            raise _DryRun
    return with_plans(applied)


@contextmanager
def _transaction(catalog: Catalog, *, dry_run: bool, reads: bool) -> Iterator[Session]:
    try:
        with catalog.read() if reads else catalog.write() as session:
            yield session
    except _DryRun:
        if not dry_run:
            raise


def _apply(session: Session, groups: Sequence[int], run: Sequence[Checked[Any]], dry_run: bool) -> list[Applied]:
    """:param groups: the number of each statement's transaction in the script."""
    if run[0].explained:
        return [Applied(groups[0], explain(session, run[0]))]
    contexts = [Context(dry_run) for _ in run]
    results = carry_out_run(session, run, contexts)
    return [
        Applied(group, result, tuple(context.decisions))
        for group, result, context in zip(groups, results, contexts, strict=True)
    ]
