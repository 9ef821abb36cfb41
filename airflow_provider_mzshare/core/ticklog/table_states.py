"""The states of a table and how it gets from one to another: the rules ask it, and the drawing in the docs shows it.

A new generation of a table (RESNAPSHOT) goes the same way beside the current one, and takes its place where it joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from airflow_provider_mzshare.core.ticklog.state import TableStatus
from airflow_provider_mzshare.errors import LogConflict

Event = Literal[
    "made before the log",
    "made late",
    "armed",
    "joined",
    "without index",
    "failed",
    "resumed",
    "isolated",
    "join undone",
    "dropped",
]

BEGINNINGS: Mapping[Event, TableStatus] = {"made before the log": "created", "made late": "backfilling"}
"""A table that has missed nothing waits for the next tick. Otherwise a backfill brings what it has missed."""

TRANSITIONS: Mapping[Event, Mapping[TableStatus, TableStatus]] = {
    "armed": {"backfilling": "converging"},
    "joined": {"created": "live", "converging": "live", "indexing": "live"},
    "without index": {"live": "indexing"},
    "failed": dict.fromkeys(("live", "backfilling", "converging", "indexing"), "stalled"),
    "resumed": {"stalled": "backfilling"},
    "isolated": {"backfilling": "backfilling", "converging": "backfilling"},
    "join undone": {"live": "created"},
    "dropped": dict.fromkeys(("created", "backfilling", "converging", "live", "indexing", "stalled"), "dropped"),
}
"""What happens: a backfill is close enough; a tick makes it a member; its index is not there; it cannot be written, or
its backfill is retired; ALTER TABLE … RESUME; its backfill is parted; a repaired catalog has lost the tick it joined
by; DROP."""

TRUNCATED = "truncated"
"""Begins the reason of a table that has stalled before a record that takes all rows away: records of other lanes have
no order against it. It would stall there again."""


def status_after(status: TableStatus, event: Event) -> TableStatus:
    """LogConflict where this cannot happen to a table that is in this state."""
    found = TRANSITIONS[event].get(status)
    if found is None:
        raise LogConflict(f"a table that is {status} cannot be {event}")
    return found


def drawing() -> str:
    """As Mermaid draws it."""
    arrows = [f"    [*] --> {status}: {event}" for event, status in BEGINNINGS.items()]
    for event, pairs in TRANSITIONS.items():
        arrows += [f"    {before} --> {status}: {event}" for before, status in pairs.items() if status != "dropped"]
    arrows += ["    live --> [*]: dropped, from any state"]
    return "\n".join(["stateDiagram-v2", *arrows])
