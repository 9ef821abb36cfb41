"""May a table take a name that is read by others? The rule of swaps, for statements and operators; pure.

Readers of a name get the table that takes it, without a word: they would believe a table that is empty or old.
So a table takes an existing name only if it is live, as far as its source is, and not older than the table that
readers had. A name that is made to keep a replaced table has no readers: a table in any state may get it. So a swap
can be rolled back when the new table has stalled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog.queries.standings import Standing
from airflow_provider_mzshare.control.lifecycle.live_errors import NotLive, NotLiveYet
from airflow_provider_mzshare.control.lifecycle.liveness import next_step

MAX_LAG_TICKS = 1
"""How many ticks a table may be behind its source: the one that is being written."""
MAX_LAG_MS = 300_000
"""How much older its newest tick may be than that of the table it replaces. Tables of one source share their ticks."""

_TOLD = 8


@dataclass(frozen=True)
class Taking:
    """:param table: takes the name of ``holder``, whose readers will get it. None: a new name, without readers."""

    table: Standing
    holder: Standing | None = None


def check_takings(takings: Sequence[Taking], all_the_same: str) -> None:
    """:param all_the_same: how to force the swap, for the hint."""
    refused = [(taking, why) for taking in takings if (why := obstacle(taking))]
    if not refused:
        return
    first = refused[0][0].table
    told = "; ".join(f"table {taking.table.table} is {why}" for taking, why in refused[:_TOLD])
    more = f"; and {len(refused) - _TOLD:,} more" if len(refused) > _TOLD else ""
    yet = all(taking.table.status != "stalled" and not taking.table.is_live for taking, _ in refused)
    error = NotLiveYet if yet else NotLive
    raise error(
        f"nothing was swapped, because readers would miss rows: {told}{more}",
        hint=f"{_next_step(first)}; or, to swap anyway, {all_the_same}",
    )


def obstacle(taking: Taking) -> str:
    """Why readers would get less than they had, in words; empty if they would not."""
    table, holder = taking.table, taking.holder
    if not table.is_live or table.lag > MAX_LAG_TICKS:
        return table.far
    if holder is not None and holder.upper - table.upper > MAX_LAG_MS:
        seconds = (holder.upper - table.upper) / 1000
        return f"{table.far}, but its newest tick is {seconds:,.0f} s older than that of {holder.table}"
    return ""


def _next_step(table: Standing) -> str:
    return hints.command("status", table.source) if table.is_live else next_step(table)
