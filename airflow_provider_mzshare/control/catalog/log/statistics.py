"""Counters, moved on in the transactions that commit ticks: a replay counts nothing twice.

A table's rows are counted where its progress is. Here are a source's reads, and what tables had in generations that
are there no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import text
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.base import MOST
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.state import Committed, Done, Outcome, Tick

# Where the number of messages is not known, offsets are counted. Those of a database's log can exceed a column.
_GROW = (
    " ON CONFLICT (id) DO UPDATE SET "
    f"messages_received = CASE WHEN statistics.messages_received > {MOST} - excluded.messages_received THEN {MOST} "
    "ELSE statistics.messages_received + excluded.messages_received END, "
    "bytes_received = statistics.bytes_received + excluded.bytes_received, "
    "updates_staged = statistics.updates_staged + excluded.updates_staged, "
    "updates_committed = statistics.updates_committed + excluded.updates_committed"
)
_READ = text("INSERT INTO statistics (id, messages_received, bytes_received) VALUES (:id, :messages, :bytes)" + _GROW)
_KEEP = "INSERT INTO statistics (id, messages_received, updates_staged, updates_committed) SELECT "
_RECORDS = "rows + folded + errors"
_KEEP_CURRENT = text(_KEEP + f"id, {_RECORDS}, {_RECORDS}, {_RECORDS} FROM tables WHERE id = :id" + _GROW)
_KEEP_REPLACEMENT = text(_KEEP + f"table_id, {_RECORDS}, {_RECORDS}, 0 FROM replacements WHERE table_id = :id" + _GROW)
_NOTE_END = text(
    "INSERT INTO statistics (id, offset_known) VALUES (:id, :known) ON CONFLICT (id) DO UPDATE SET "
    "offset_known = CASE WHEN excluded.offset_known > statistics.offset_known THEN excluded.offset_known "
    "ELSE statistics.offset_known END"
)


def count_tick(session: Session, source_id: ItemId, committed: Committed, stats: Mapping[str, float]) -> None:
    """Count what was read for a tick that is being committed. An empty tick changes no counter."""
    tick = committed.tick
    if tick.lower != tick.upper:
        messages, size = _received(tick, committed.outcomes.values(), stats)
        session.execute(_READ, {"id": source_id, "messages": messages, "bytes": size})


def keep_current(session: Session, table_id: ItemId) -> None:
    """The table's generation is about to be replaced: keep its counts, as rows that could be read."""
    session.execute(_KEEP_CURRENT, {"id": table_id})


def keep_replacement(session: Session, table_id: ItemId) -> None:
    """The table's new generation is about to be given up: keep its counts, as rows that were written and never read."""
    session.execute(_KEEP_REPLACEMENT, {"id": table_id})


def _received(tick: Tick, outcomes: Iterable[Outcome], stats: Mapping[str, float]) -> tuple[int, int]:
    """Messages and bytes that were read for the tick: from the pass, else from a commit that an earlier app made of it.

    Where neither says (nothing was read, or an old version wrote it), one message per offset is assumed.
    """
    if "messages" in stats:
        return int(stats["messages"]), int(stats.get("bytes", 0))
    for outcome in outcomes:
        for written in outcome.written if isinstance(outcome, Done) else ():
            if written.messages is not None:
                return written.messages, written.bytes
    return min(tick.upper.gap(tick.lower), MOST), 0


def note_end(session: Session, source_id: ItemId, known: int) -> None:
    """Where the upstream ends, summed over partitions. The stored number never gets smaller."""
    session.execute(_NOTE_END, {"id": source_id, "known": min(known, MOST)})
