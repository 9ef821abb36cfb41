"""SWAP asks whether the tables may take each other's names, inside its transaction, and says how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.lifecycle.swap_rule import Taking, check_takings, obstacle
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.printing import print_statement
from airflow_provider_mzshare.control.statements.answers import full_name
from airflow_provider_mzshare.control.statements.context import Context

_TOLD = 8
"""So many tables are told of in a message; EXPLAIN has a row for each."""


def take_names(takings: Sequence[Taking], statement: sql.Swap, context: Context) -> str:
    """Refuse, unless it is forced. Returns what is to be told of them beside the result."""
    if not statement.force:
        check_takings(takings, hints.sql(print_statement(replace(statement, force=True))))
    for taking in takings:
        context.does("check table", full_name(taking.table.name), taking.table.far)
    shown = takings if context.dry_run else [taking for taking in takings if obstacle(taking)]
    more = f"; and {len(shown) - _TOLD} more" if len(shown) > _TOLD else ""
    return "".join(f"; {one.table.table} is {one.table.far}" for one in shown[:_TOLD]) + more
