"""What readers are told about tables that are not live: their state, how far they are, the next step. Pure.

This is about reads of the present. A read as of a time or a tick is final, whatever state the table is in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.queries.standings import Standing
from airflow_provider_mzshare.control.lifecycle.live_errors import NotLive, NotLiveYet

NotLiveTables = Callable[[Sequence[Standing]], None]
"""Called with the tables of a read that are not live, before any row is read, if there are such."""


def ignore(tables: Sequence[Standing]) -> None:
    """Read the rows that are there, and say nothing."""


def refuse(tables: Sequence[Standing]) -> None:
    """Refuse to read: all rows or none."""
    error = NotLive if any(table.status == "stalled" for table in tables) else NotLiveYet
    raise error("; ".join(f"table {table.table} is {table.far}" for table in tables), hint=next_step(tables[0]))


def remark(table: Standing) -> str:
    """One line, for a reader who gets the rows that are there."""
    return f"table {table.table} is {table.far}: it has not got all rows. Try: {next_step(table)}"


def next_step(table: Standing) -> str:
    return hints.heal(table.table, table.reason) if table.status == "stalled" else hints.become_live(table.table)
