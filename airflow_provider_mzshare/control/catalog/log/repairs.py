"""Puts back ticks that a restored catalog has lost, and takes away one minted in their place. Reads no collection."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import CursorResult, delete, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CertificateRow, MembershipRow, TableRow, TickRow
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.log.cutovers import joined_by
from airflow_provider_mzshare.control.catalog.log.tick_rows import write_minted
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import rules
from airflow_provider_mzshare.core.ticklog.state import Minted, SourceState, Tick
from airflow_provider_mzshare.core.ticklog.table_states import status_after
from airflow_provider_mzshare.errors import LogConflict

_NO_SYNC = {"synchronize_session": False}


def insert_repaired_tick(
    session: Session, source_id: ItemId, number: int, lower: Position, upper: Position, mz_timestamp: int
) -> Tick:
    """Append a tick as the collections remember it, pending; it must fit the end of the log exactly."""
    state = load_state(session, lock_source(session, source_id))
    tick = Tick(number=number, lower=lower, upper=upper, mz_timestamp=mz_timestamp, repaired=True)
    _check_fits(state, tick)
    minted = Minted(
        tick=tick,
        joins=tuple(table.table_id for table in rules.joining(state)),
        swaps=tuple(table.table_id for table in rules.swapping(state)),
    )
    write_minted(session, state, minted, None, wall_ms())
    return tick


def _check_fits(state: SourceState, tick: Tick) -> None:
    if tick.number != state.last_number + 1:
        raise LogConflict(f"tick {tick.number} does not follow tick {state.last_number}")
    if tick.lower != state.upper:
        raise LogConflict(f"tick {tick.number} begins at {tick.lower}, but the log ends at {state.upper}")
    if not tick.lower <= tick.upper:
        raise LogConflict(f"tick {tick.number} ends at {tick.upper}, before its beginning {tick.lower}")
    if tick.mz_timestamp <= state.last_timestamp:
        raise LogConflict(
            f"tick {tick.number} has the time {tick.mz_timestamp}, but the log is already at {state.last_timestamp}"
        )


def remove_pending_tick(session: Session, source_id: ItemId, number: int) -> None:
    """Take the newest tick off the log, which must be pending; tables that joined by it wait for the next."""
    state = load_state(session, lock_source(session, source_id))
    if not state.pending or state.pending[-1].number != number:
        raise LogConflict(f"tick {number} is not the newest pending tick of source {source_id}")
    for table_id in joined_by(session, source_id, number):
        _undo_join(session, table_id, number)
    session.execute(
        delete(TickRow).where(TickRow.source_id == source_id, TickRow.number == number), execution_options=_NO_SYNC
    )


def _undo_join(session: Session, table_id: ItemId, number: int) -> None:
    """A table that joined without a backfill waits for the next tick. One that was cut over stalls; RESUME heals it."""
    cut_over = delete(CertificateRow).where(CertificateRow.table_id == table_id, CertificateRow.tick == number)
    certified = cast("CursorResult[Any]", session.execute(cut_over, execution_options=_NO_SYNC)).rowcount
    lost = {"status": status_after("live", "failed"), "reason": "the catalog has lost the tick that made it live"}
    to = lost if certified else {"status": status_after("live", "join undone")}
    touch(session, table_id)
    live = update(TableRow).where(TableRow.id == table_id, TableRow.status == "live")
    session.execute(live.values(to), execution_options=_NO_SYNC)
    joined = delete(MembershipRow).where(MembershipRow.table_id == table_id, MembershipRow.joined_at == number)
    session.execute(joined, execution_options=_NO_SYNC)
