"""Merges backfills that wait for an app, behind the source's lock. A backfill that has been started is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    JobRow,
    ReplacementRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.log.queue import since_of
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.ticklog import backfill_rules as rules
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState

_NO_SYNC = {"synchronize_session": False}


def mergeable(session: Session, state: SourceState) -> list[tuple[BackfillId, ...]]:
    """Groups of a source's backfills to merge, none of which ever had an app. The last of a group takes the others."""
    if len(state.backfills) < 2:
        return []
    started = set(session.scalars(select(JobRow.backfill_id).where(JobRow.backfill_id.in_(state.backfills))))
    return rules.merging(state, [one for one in state.backfills if one not in started])


def merge_backfills(session: Session, source_id: ItemId, wanted: Collection[BackfillId]) -> Sequence[BackfillId]:
    """Merge those that still can be, and return them; the last one has taken the others. Empty if others were faster.

    Jobs are recorded behind the same lock: an app was started before, or finds the backfill as it is after the merge.
    """
    state = load_state(session, lock_source(session, source_id))
    for group in mergeable(session, state):
        if len(both := [one for one in group if one in wanted]) > 1:
            _merge(session, state, both)
            return both
    return ()


def _merge(session: Session, state: SourceState, group: Sequence[BackfillId]) -> None:
    into = group[-1]
    whole, moved = rules.merged(state, group)
    history = next(one for one in group if state.backfills[one].history == whole.history)
    upper = select(BackfillRow.history_upper).where(BackfillRow.id == history)
    place = min(since_of(session, group).values())
    values = {"history_tick": whole.history, "history_upper": session.scalar(upper), "queued_at": place}
    untouched = update(BackfillRow).where(BackfillRow.id == into, BackfillRow.lease_epoch == 0)
    change(session, untouched.values(values), 1, f"backfill {into}")
    for table in moved.values():
        _move(session, state, rules.arriving(state)[table.table_id], table)
    touch(session, state.source_id)


def _move(session: Session, state: SourceState, before: TableState, after: TableState) -> None:
    replacement = rules.is_replacement(state, before)
    row = ReplacementRow if replacement else TableRow
    key = ReplacementRow.table_id if replacement else TableRow.id
    same = update(row).where(key == before.table_id, row.backfill_id == before.backfill_id, row.status == before.status)
    change(session, same.values(backfill_id=after.backfill_id), 1, f"table {before.table_id}")
    of_table = BackfillTableRow.table_id == before.table_id
    # The table may have a row there from an earlier time: nothing was ever written under it.
    left = delete(BackfillTableRow).where(of_table, BackfillTableRow.backfill_id == after.backfill_id)
    session.execute(left, execution_options=_NO_SYNC)
    wrote = update(BackfillTableRow).where(of_table, BackfillTableRow.backfill_id == before.backfill_id)
    change(session, wrote.values(backfill_id=after.backfill_id), 1, f"table {before.table_id}")
