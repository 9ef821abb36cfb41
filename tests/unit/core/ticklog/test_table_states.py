"""The states of a table: one table of transitions, and the drawing of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from airflow_provider_mzshare.core.ticklog.state import TableStatus
from airflow_provider_mzshare.core.ticklog.table_states import BEGINNINGS, TRANSITIONS, Event, drawing, status_after
from airflow_provider_mzshare.errors import LogConflict

ROOT = Path(__file__).parents[4]
STATES = set(get_args(TableStatus))


def test_every_state_is_reached_and_left_and_every_event_is_one_of_them() -> None:
    assert set(BEGINNINGS) | set(TRANSITIONS) == set(get_args(Event))
    reached = {*BEGINNINGS.values(), *(to for pairs in TRANSITIONS.values() for to in pairs.values())}
    left = {before for pairs in TRANSITIONS.values() for before in pairs}
    assert (reached, left) == (STATES, STATES - {"dropped"})


def test_what_is_not_foreseen_is_refused() -> None:
    assert status_after("stalled", "resumed") == "backfilling"
    with pytest.raises(LogConflict, match="a table that is live cannot be resumed"):
        status_after("live", "resumed")


def test_the_drawing_in_the_docs_is_made_from_it() -> None:
    (drawn,) = re.findall(r"```mermaid\n(stateDiagram.*?)\n```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
    assert drawn == drawing()


def test_nobody_else_says_what_comes_next() -> None:
    """A status that is assigned is one that the table has given; comparisons are free."""
    assigned = re.compile(
        r"""status(?:"]?\s*[:=](?!=)\s*|=)["'](created|backfilling|converging|live|indexing|stalled)["']"""
    )
    files = [*(ROOT / "airflow_provider_mzshare" / "core").rglob("*.py")]
    files += (ROOT / "airflow_provider_mzshare" / "control" / "catalog").rglob("*.py")
    found = [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if assigned.search(line) and "SourceRow" not in line and "migrations" not in file.parts
    ]
    assert found == SOURCES_OWN


SOURCES_OWN = ["tick_rows.py:44"]
"""A source has states of its own."""
