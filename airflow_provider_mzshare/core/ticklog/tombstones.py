"""When a keyed table may have missed a delete, decided without input, output or clock of its own.

A compacted upstream removes a tombstone some time after it was written: Kafka keeps it for at least
``delete.retention.ms`` from the moment at which it first cleans the log there, and it cleans nothing younger than
``min.compaction.lag.ms``. A table that has a key's row and reads past the place of its tombstone later than that keeps
the row for ever. So a table has to be past the end that the upstream had at a time T, by T plus what is kept; else it
is stalled.

What is known are ends: a record at or behind the end seen at T was written after T. And a table that began to read at T
holds no row whose tombstone was cleaned before T. So a table at a position has until the later of two times: what is
kept after its reads began, and what is kept after the newest end that it has reached. Where nobody looked for a while,
the end before that counts: it is rather stalled too early than too late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, EndSeen, Left, Outcome, SourceState, TableState

REASON = "tombstones_lost"
"""Begins the reason of a table that is stalled by this rule."""

WRITTEN = ("live", "backfilling", "converging", "indexing")

_SHARES = 64
"""The ends that are kept are this share of the time apart: a table may be stalled so much too early, and no more."""
_SKEW_SHARES = 100
"""A clock may be this share of the time behind another's before that counts as a clock that was set back."""


def deadline(table: TableState, ends: Sequence[EndSeen]) -> int | None:
    """Until when the table has to have read on from its position; None where nothing can be lost.

    :param ends: of its source, oldest first.
    """
    if table.begun_at is None or not table.keyed or (limits := _limits(ends)) is None:
        return None
    kept, lag = limits
    reached = next((seen.at for seen in reversed(ends) if seen.end <= table.position), None)
    # What was old when the reads began may be cleaned at once: then only the tombstone's own time counts.
    since_begun = max(table.begun_at, _whole_until(ends)) + kept
    return since_begun if reached is None else max(since_begun, reached + kept + lag)


def _whole_until(ends: Sequence[EndSeen]) -> int:
    """The last time at which the upstream had never compacted yet, as far as is known."""
    before = list(takewhile(lambda seen: seen.kept_ms is None, ends))
    return before[-1].at if before else 0


def lost(state: SourceState, now: int) -> list[TableState]:
    """Tables and new generations that are written, and may have missed a delete by now, or will.

    :param now: when the newest of ``state.ends`` has just been seen: a table that has reached it is complete.
    """
    both = (*state.tables.values(), *state.replacements.values())
    return [table for table in both if table.status in WRITTEN and _is_over(table, state.ends, now)]


def may_have_missed(table: TableState, ends: Sequence[EndSeen]) -> bool:
    """Of a table that is stalled, for whatever reason: had its time run out when somebody last looked upstream?"""
    if table.reason is not None and table.reason.startswith(REASON):
        return True
    return bool(ends) and _is_over(table, ends, ends[-1].at)


def judged(
    tables: Mapping[ItemId, TableState],
    ends: Sequence[EndSeen],
    outcomes: Mapping[ItemId, Outcome],
    upper: Position,
    now: int,
) -> dict[ItemId, Outcome]:
    """The outcomes of reads that have just ended: what was read too late for a keyed table does not count.

    :param upper: where the reads ended.
    """
    return {
        table_id: _judged(tables.get(table_id), ends, outcome, upper, now) for table_id, outcome in outcomes.items()
    }


def _judged(table: TableState | None, ends: Sequence[EndSeen], outcome: Outcome, upper: Position, now: int) -> Outcome:
    if table is None or not isinstance(outcome, Done) or upper == table.position or not _is_over(table, ends, now):
        return outcome
    return Left(why(table, ends, now))


def _is_over(table: TableState, ends: Sequence[EndSeen], now: int) -> bool:
    until = deadline(table, ends)
    return until is not None and now > until


def why(table: TableState, ends: Sequence[EndSeen], now: int) -> str:
    """The reason to stall it."""
    kept, lag = _limits(ends) or (0, 0)
    until = deadline(table, ends)
    behind = now - (now if until is None else until) + kept + lag
    return (
        f"{REASON}: it was behind for {_told(behind)}, and the upstream keeps deletes for {_told(kept + lag)}: "
        "it may have missed some"
    )


def _told(ms: int) -> str:
    for size, unit in ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min")):
        if ms >= 2 * size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms / 1000:.1f} s"


# ── what is kept of the ends ──────────────────────────────────────────────────────────────────────────────────────────


def _limits(ends: Sequence[EndSeen]) -> tuple[int, int] | None:
    """The shortest times of all: a tombstone keeps the time that was set when it was cleaned. None: none compacts."""
    compacting = [(seen.kept_ms, seen.lag_ms) for seen in ends if seen.kept_ms is not None]
    return (min(kept for kept, _ in compacting), min(lag for _, lag in compacting)) if compacting else None


def with_end(ends: Sequence[EndSeen], new: EndSeen) -> tuple[EndSeen, ...]:
    """Those that are still of use, and the new one. Few, whatever the time: the newest is replaced until it is far
    enough from the one before."""
    limits = _limits((*ends, new))
    if limits is None:
        return (new,)
    found = [seen for seen in ends if seen.at + sum(limits) >= new.at]
    while found and _is_same(found[-1], new):
        found.pop()
    apart = sum(limits) // _SHARES
    if len(found) > 1 and found[-1].at - found[-2].at < apart and _settings(found[-1]) == _settings(new):
        found.pop()
    return (*found, new)


def _is_same(old: EndSeen, new: EndSeen) -> bool:
    """Nothing was written in between: the later one says more."""
    return old.end == new.end and _settings(old) == _settings(new)


def _settings(seen: EndSeen) -> tuple[int | None, int]:
    return seen.kept_ms, seen.lag_ms


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class SteadyClock:
    """One process's count of the time that has passed since the ends that are kept were seen.

    It goes on with the wall clock, and with the monotonic clock where that says more. So a wall clock that is set
    forward makes tables stall too early, and one that is set back under a running process changes nothing. A process
    that starts and finds its wall clock clearly behind the last end cannot know how much time has passed: it counts all
    of it. A clock that is set back while nothing runs, by less than that lasts, cannot be noticed.
    """

    def __init__(self, wall: Callable[[], int], monotonic: Callable[[], int]) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._last: tuple[int, int] | None = None

    def now(self, ends: Sequence[EndSeen]) -> int:
        wall, monotonic = self._wall(), self._monotonic()
        newest = ends[-1].at if ends else 0
        if self._last is not None:
            at = max(wall, newest, self._last[0] + monotonic - self._last[1])
        else:
            limit = sum(_limits(ends) or ())
            at = newest + limit + 1 if wall < newest - limit // _SKEW_SHARES else max(wall, newest)
        self._last = at, monotonic
        return at
