"""Which version of a table's spec a tick is executed with: what its rows are is fixed when the tick is minted.

A version is valid from its first tick on, until the next one's. A change never reaches a tick that has been minted,
since somebody may be writing that. So whoever executes a tick, as often as it takes, alone or in a group, and whoever
reads it or proves it later, finds the same version.

A table's versions are told here by their first ticks, oldest first. The first version begins at tick 1. Several may
begin at one tick, when nothing was minted between two changes: the last of them is valid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from airflow_provider_mzshare.core.ticklog.state import SourceState

FIRST_TICK = 1
"""The first tick of a table's first version, even if the table itself begins later."""


def first_tick_of_change(state: SourceState) -> int:
    """The first tick of a spec that is changed now: the next tick that is minted."""
    return state.last_number + 1


def version_at(first_ticks: Sequence[int], tick: int) -> int:
    """The index of the version that is valid at a tick."""
    return bisect_right(first_ticks, tick) - 1


def next_change(first_ticks: Sequence[int], tick: int) -> int | None:
    """The first tick after ``tick`` with another version: a group of the table must end before it."""
    at = bisect_right(first_ticks, tick)
    return first_ticks[at] if at < len(first_ticks) else None
