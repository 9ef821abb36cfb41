"""Tables that are brought up to the log: asked for, armed, healed, replaced, given up.

Each call locks the source; the caller owns the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    CollectionRow,
    ReplacementRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import load_state, lock_source
from airflow_provider_mzshare.control.catalog.jobs import last_jobs
from airflow_provider_mzshare.control.catalog.log.statistics import keep_replacement
from airflow_provider_mzshare.control.catalog.objects.backfill_rows import bring_up
from airflow_provider_mzshare.control.catalog.objects.collection_rows import add_collections
from airflow_provider_mzshare.control.catalog.objects.lookup import get_table_item
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog import arrival_plans
from airflow_provider_mzshare.core.ticklog import backfill_rules as rules
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival
from airflow_provider_mzshare.core.ticklog.rules import stalled
from airflow_provider_mzshare.core.ticklog.state import SourceState, TableState
from airflow_provider_mzshare.errors import UnknownItem

_NO_SYNC = {"synchronize_session": False}


# ── asking for a backfill ─────────────────────────────────────────────────────────────────────────────────────────────


def resume_table(session: Session, table_id: ItemId) -> BackfillId:
    """A stalled table, or its stalled replacement, gets a backfill that goes on at its position: planned and done."""
    state = _locked(session, table_id)
    return heal(session, state, arrival_plans.resume(state, table_id, get_table_item(session, table_id).display))


def resnapshot_table(session: Session, table_id: ItemId) -> BackfillId:
    """The same for a new generation from the table's start, beside the current one, which goes on until the swap."""
    state, item = _locked(session, table_id), get_table_item(session, table_id)
    return heal(session, state, arrival_plans.resnapshot(state, table_id, item.display, start_tick=item.start_tick))


def heal(session: Session, state: SourceState, arrival: Arrival) -> BackfillId:
    """Carry out the plan of a RESUME or a RESNAPSHOT. The caller has the source's lock, and ``state`` is what it read.

    StalePlan where the table is not what it was planned for.
    """
    if arrival.table_id is None:
        raise ValueError(f"{arrival.table} is still to be made: there is nothing to heal")
    arrival_plans.check_current(state, arrival)
    if arrival.action == "resume":
        return _resume(session, state, arrival.table_id)
    return _resnapshot(session, state, arrival.table_id, arrival)


def _resume(session: Session, state: SourceState, table_id: ItemId) -> BackfillId:
    table, _ = arrival_plans.to_resume(state, table_id)
    backfill_id = _bring_up_again(session, state, table)
    _write(session, state, table, rules.resume(table, backfill_id))
    return backfill_id


def _bring_up_again(session: Session, state: SourceState, table: TableState, *, alone: bool = False) -> BackfillId:
    return bring_up(
        session,
        state,
        [table.table_id],
        generation=table.generation,
        from_tick=table.next_tick,
        from_position=table.position,
        heals=table.upper > 0 and not rules.is_replacement(state, table),
        alone=alone,
    )


def _resnapshot(session: Session, state: SourceState, table_id: ItemId, arrival: Arrival) -> BackfillId:
    _give_up_replacement(session, table_id)
    generation = _last_generation(session, table_id) + 1
    session.execute(
        insert(ReplacementRow).values(
            table_id=table_id,
            generation=generation,
            status=arrival.begins_as,
            position=arrival.position,
            next_tick=arrival.tick,
            upper=0,
            since=0,
            rows=0,
            errors=0,
            gone=arrival.gone,
            awaits_snapshot=arrival.by_snapshot,
        )
    )
    add_collections(session, [table_id], generation)
    return bring_up(
        session,
        state,
        [table_id],
        generation=generation,
        from_tick=arrival.tick,
        from_position=arrival.position,
        heals=False,
    )


def _give_up_replacement(session: Session, table_id: ItemId) -> None:
    keep_replacement(session, table_id)
    session.execute(delete(ReplacementRow).where(ReplacementRow.table_id == table_id), execution_options=_NO_SYNC)


def _last_generation(session: Session, table_id: ItemId) -> int:
    return session.scalar(select(func.max(CollectionRow.generation)).where(CollectionRow.table_id == table_id)) or 0


# ── convergence and its end ───────────────────────────────────────────────────────────────────────────────────────────


def arm_table(session: Session, table_id: ItemId, *, max_lag: int = 1) -> bool:
    """Let the table be cut over at the next tick that begins where it stands; False when it is not close enough."""
    state = _locked(session, table_id)
    return _arm(session, state, table_id, max_lag)


def arming(session: Session, source_id: ItemId, *, max_lag: int = 1) -> Sequence[ItemId]:
    """Arm all tables of a source that are close enough, and return them."""
    state = load_state(session, lock_source(session, source_id))
    return [table_id for table_id in rules.arriving(state) if _arm(session, state, table_id, max_lag)]


def _arm(session: Session, state: SourceState, table_id: ItemId, max_lag: int) -> bool:
    armed = rules.arm(state, table_id, max_lag=max_lag)
    if armed is not None:
        _write(session, state, rules.arriving(state)[table_id], armed)
    return armed is not None


def retire_backfill(
    session: Session, backfill_id: BackfillId, only: Collection[ItemId] | None = None
) -> Sequence[ItemId]:
    """End a backfill before the cutover: its tables are stalled, to be resumed; its replacements are given up.

    Replacements that stalled under it are given up too: nothing else would ever remove them.

    :param only: retire only tables that were asked for together with one of these; others were merged into it.
    """
    state = _locked_for(session, backfill_id)
    retired = rules.arriving(state, backfill_id) | _stalled_replacements(session, state, backfill_id)
    if only is not None:
        together = _asked_for_with(session, backfill_id, only)
        retired = {table_id: table for table_id, table in retired.items() if table_id in together}
    for table in retired.values():
        if rules.is_replacement(state, table):
            _give_up_replacement(session, table.table_id)
        else:
            _write(session, state, table, rules.retire(table))
    return list(retired)


def _asked_for_with(session: Session, backfill_id: BackfillId, tables: Collection[ItemId]) -> set[ItemId]:
    of_backfill = BackfillTableRow.backfill_id == backfill_id
    asked = select(BackfillTableRow.asked_as).where(of_backfill, BackfillTableRow.table_id.in_(tables))
    return set(
        session.scalars(select(BackfillTableRow.table_id).where(of_backfill, BackfillTableRow.asked_as.in_(asked)))
    )


def _stalled_replacements(session: Session, state: SourceState, backfill_id: BackfillId) -> dict[ItemId, TableState]:
    filled = select(BackfillTableRow.table_id, BackfillTableRow.generation).where(
        BackfillTableRow.backfill_id == backfill_id
    )
    both = ((state.replacements.get(row.table_id), row.generation) for row in session.execute(filled))
    found = [table for table, generation in both if table is not None and table.generation == generation]
    return {table.table_id: table for table in found if table.status == "stalled"}


# ── a backfill whose app dies time after time ─────────────────────────────────────────────────────────────────────────


def isolate_tables(session: Session, backfill_id: BackfillId, died: JobId) -> Sequence[ItemId]:
    """Give each table of the backfill a backfill of its own. Does nothing if a newer job than ``died`` was started."""
    state, tables = _left_by(session, backfill_id, died)
    for table in tables.values():
        alone = _bring_up_again(session, state, table, alone=True)
        _write(session, state, table, rules.isolate(table, alone))
    return list(tables)


def abandon_tables(session: Session, backfill_id: BackfillId, died: JobId, reason: str) -> Sequence[ItemId]:
    """Stall the tables and new generations of the backfill. Does nothing if a newer job than ``died`` was started."""
    state, tables = _left_by(session, backfill_id, died)
    for table in tables.values():
        _write(session, state, table, stalled(table, reason))
    return list(tables)


def _left_by(session: Session, backfill_id: BackfillId, died: JobId) -> tuple[SourceState, dict[ItemId, TableState]]:
    """Takes the source's lock. Jobs are recorded behind the same lock, so nobody starts one meanwhile."""
    state = _locked_for(session, backfill_id)
    newest = last_jobs(session, state.source_id, 1, backfill_id=backfill_id)
    is_dead = [(job.id, job.is_active) for job in newest] == [(died, False)]
    return state, rules.arriving(state, backfill_id) if is_dead else {}


def _locked_for(session: Session, backfill_id: BackfillId) -> SourceState:
    source_id = session.scalar(select(BackfillRow.source_id).where(BackfillRow.id == backfill_id))
    if source_id is None:
        raise UnknownItem("backfill", backfill_id)
    return load_state(session, lock_source(session, source_id))


def _locked(session: Session, table_id: ItemId) -> SourceState:
    source_id = get_table_item(session, table_id).source_id
    state = load_state(session, lock_source(session, source_id))
    if table_id not in state.tables:
        raise UnknownItem("table", table_id)
    return state


def _write(session: Session, state: SourceState, before: TableState, after: TableState) -> None:
    replacement = rules.is_replacement(state, before)
    row = ReplacementRow if replacement else TableRow
    key = ReplacementRow.table_id if replacement else TableRow.id
    same = update(row).where(key == before.table_id, row.status == before.status)
    values = {"status": after.status, "reason": after.reason, "backfill_id": after.backfill_id}
    change(session, same.values(values), 1, f"table {before.table_id}")
    touch(session, before.table_id)
