"""Notes where an upstream ended, and stalls the keyed tables that may have missed a delete.

``core/ticklog/tombstones.py`` decides. The caller has the source's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlalchemy import delete, insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import EndRow, MembershipRow, ReplacementRow, TableRow
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import backfill_rules, rules, tombstones
from airflow_provider_mzshare.core.ticklog.state import EndSeen, SourceState, TableState

_NO_SYNC = {"synchronize_session": False}


def write_end(session: Session, state: SourceState, seen: EndSeen, now: int) -> Mapping[ItemId, str]:
    """Why each table that is stalled by it was stalled.

    :param now: the time after the end was seen.
    """
    if not state.ends or state.ends[-1].at < seen.at:
        _keep(session, state, tombstones.with_end(state.ends, seen))
        # Judged by all that is known, also by what is not kept any longer.
        state = replace(state, ends=(*state.ends, seen))
    lost = tombstones.lost(state, now)
    stalled = {table.table_id: tombstones.why(table, state.ends, now) for table in lost}
    for table in lost:
        _stall(session, state, table, stalled[table.table_id])
    return stalled


def _keep(session: Session, state: SourceState, ends: tuple[EndSeen, ...]) -> None:
    gone = [seen.at for seen in state.ends if seen not in ends]
    if gone:
        of_source = delete(EndRow).where(EndRow.source_id == state.source_id, EndRow.at.in_(gone))
        session.execute(of_source, execution_options=_NO_SYNC)
    new = ends[-1]
    values = {"at": new.at, "position": new.end, "kept_ms": new.kept_ms, "lag_ms": new.lag_ms}
    session.execute(insert(EndRow).values(source_id=state.source_id, **values))


def _stall(session: Session, state: SourceState, table: TableState, reason: str) -> None:
    """It leaves at once, also a pending tick, as a dropped table does."""
    after = rules.stalled(table, reason)
    is_new = backfill_rules.is_replacement(state, table)
    row, key = (ReplacementRow, ReplacementRow.table_id) if is_new else (TableRow, TableRow.id)
    same = update(row).where(key == table.table_id, row.status == table.status)
    values = {"status": after.status, "reason": after.reason, "backfill_id": after.backfill_id}
    change(session, same.values(values), 1, f"table {table.table_id}")
    touch(session, table.table_id)
    if table.table_id in state.members and not is_new:
        first_without = state.pending[0].number if state.pending else state.last_number + 1
        left = update(MembershipRow).where(MembershipRow.table_id == table.table_id, MembershipRow.left_at.is_(None))
        change(session, left.values(left_at=first_without, reason=reason), 1, f"table {table.table_id}")


def write_begun(session: Session, state: SourceState, table_ids: Collection[ItemId], now: int) -> None:
    """The first read of these keyed tables begins: whichever of their generations a backfill fills."""
    for table in backfill_rules.arriving(state).values():
        if table.table_id in table_ids and table.keyed and table.begun_at is None:
            is_new = backfill_rules.is_replacement(state, table)
            row, key = (ReplacementRow, ReplacementRow.table_id) if is_new else (TableRow, TableRow.id)
            begun = update(row).where(key == table.table_id, row.begun_at.is_(None)).values(begun_at=now)
            session.execute(begun, execution_options=_NO_SYNC)
