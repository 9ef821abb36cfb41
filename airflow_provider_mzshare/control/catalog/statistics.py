"""Counters of sources and tables, moved on in the transactions that commit ticks: a replay counts nothing twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from airflow_provider_mzshare.storage.ticks.state import Committed, Done, Outcome, Tick
from airflow_provider_mzshare.types.ids import ItemId

_ADD = text(
    "INSERT INTO statistics (id, messages_received, bytes_received, updates_staged, updates_committed) "
    "VALUES (:id, :messages, :bytes, :staged, :committed) ON CONFLICT (id) DO UPDATE SET "
    "messages_received = statistics.messages_received + excluded.messages_received, "
    "bytes_received = statistics.bytes_received + excluded.bytes_received, "
    "updates_staged = statistics.updates_staged + excluded.updates_staged, "
    "updates_committed = statistics.updates_committed + excluded.updates_committed"
)
_NOTE_END = text(
    "INSERT INTO statistics (id, offset_known) VALUES (:id, :known) ON CONFLICT (id) DO UPDATE SET "
    "offset_known = CASE WHEN excluded.offset_known > statistics.offset_known THEN excluded.offset_known "
    "ELSE statistics.offset_known END"
)


@dataclass(frozen=True)
class Growth:
    """By how much the counters of one source or table grow."""

    id: ItemId
    messages: int = 0
    bytes: int = 0
    staged: int = 0
    committed: int = 0


def count_tick(session: Session, source_id: ItemId, committed: Committed, stats: Mapping[str, float]) -> None:
    """A tick that is being committed. One that is empty changes no counter."""
    tick, outcomes = committed.tick, committed.outcomes
    if tick.lower == tick.upper:
        return
    messages, size = _received(tick, outcomes.values(), stats)
    growths = [Growth(source_id, messages=messages, bytes=size)]
    for table_id, outcome in outcomes.items():
        if isinstance(outcome, Done):
            growths.append(of_rows(table_id, outcome.rows + outcome.errors))
    count(session, growths)


def of_rows(table_id: ItemId, rows: int, *, in_place: bool = True) -> Growth:
    """:param in_place: they are in the generation that is read."""
    return Growth(table_id, messages=rows, staged=rows, committed=rows if in_place else 0)


def _received(tick: Tick, outcomes: Iterable[Outcome], stats: Mapping[str, float]) -> tuple[int, int]:
    """What the read of the tick brought: told by the pass, else by a commit that a predecessor made of it.

    Where nobody tells (nothing was read, or long ago), a record per offset is the best there is.
    """
    if "messages" in stats:
        return int(stats["messages"]), int(stats.get("bytes", 0))
    for outcome in outcomes:
        for written in outcome.written if isinstance(outcome, Done) else ():
            if written.messages is not None:
                return written.messages, written.bytes
    return tick.upper.gap(tick.lower), 0


def count(session: Session, growths: Iterable[Growth]) -> None:
    rows: list[dict[str, Any]] = [asdict(growth) for growth in growths]
    if rows:
        session.connection().execute(_ADD, rows)


def note_end(session: Session, source_id: ItemId, known: int) -> None:
    """The upstream's end, summed over partitions; it is not known to be less than it was."""
    session.execute(_NOTE_END, {"id": source_id, "known": known})
