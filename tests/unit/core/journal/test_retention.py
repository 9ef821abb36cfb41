"""What of a journal may go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.journal.retention import may_go, may_go_below, needed
from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState, TableStatus, Tick


def table(name: str, at: int, status: TableStatus = "live", start: int = 0) -> TableState:
    return TableState(ItemId(name), status, 1, 1, Position({"0": start}), Position({"0": at}))


def source(*tables: TableState, replaced_at: int | None = None, pending: int | None = None) -> SourceState:
    state = SourceState(ItemId("u1"), "active", "journal:x", Position(), tables={one.table_id: one for one in tables})
    if replaced_at is not None:
        again = replace(table("u2", replaced_at, "backfilling"), backfill_id=BackfillId("b"))
        state = replace(state, replacements={again.table_id: again})
    if pending is not None:
        state = replace(state, pending=(Tick(9, Position({"0": pending}), Position({"0": 99}), 1),))
    return state


@pytest.mark.parametrize(
    ("state", "at"),
    [
        (source(), None),
        (source(table("u2", 5, "dropped")), None),
        (source(table("u2", 50), table("u3", 50)), 50),
        (source(table("u2", 50), table("u3", 20, "stalled")), 20),
        (source(table("u2", 50), table("u3", 30, "backfilling")), 30),
        (source(table("u2", 50), table("u3", 0, "created", start=50)), 50),
        (source(table("u2", 50), replaced_at=10), 10),
        (source(table("u2", 50), pending=40), 40),
    ],
)
def test_what_somebody_will_read_is_needed(state: SourceState, at: int | None) -> None:
    found = needed(state)
    assert (None if found is None else found["0"]) == at


def segments() -> list[Segment]:
    return [Segment(0, 1, n, 10 * n, 10 * n + 10, 100, 0, 100, announced_at=1_000 * n) for n in range(1, 5)]


@pytest.mark.parametrize(
    ("keep_from", "before", "to"),
    [
        (None, 10_000, 50),
        (None, 1_000, 0),
        (None, 3_000, 30),
        (0, 10_000, 0),
        (29, 10_000, 20),
        (30, 10_000, 30),
        (99, 2_001, 30),
    ],
)
def test_whole_segments_go_that_are_old_and_needed_by_nobody(keep_from: int | None, before: int, to: int) -> None:
    assert may_go(segments(), keep_from, before) == to


@pytest.mark.parametrize(
    ("keep_from", "before", "to"),
    [
        (None, 10_000, 40),  # The newest stays: its writer goes on with it.
        (None, 2_000, 20),
        (200, 10_000, 0),
        (201, 10_000, 20),
        (400, 10_000, 30),
        (401, 10_000, 40),
    ],
)
def test_by_positions_a_segment_goes_when_a_later_one_begins_below_what_is_needed(
    keep_from: int | None, before: int, to: int
) -> None:
    found = [replace(segment, low=100 * segment.number) for segment in segments()]
    assert may_go_below(found, keep_from, before) == to
