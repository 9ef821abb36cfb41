"""The rows of tables: many are added or dropped by as many statements as one. The caller has transaction and locks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.models import (
    MembershipRow,
    ReplacementRow,
    SpecRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects.backfill_rows import bring_up
from airflow_provider_mzshare.control.catalog.objects.collection_rows import add_collections
from airflow_provider_mzshare.control.catalog.objects.hold_rows import drop_holds_of
from airflow_provider_mzshare.control.catalog.objects.item_names import retire_items
from airflow_provider_mzshare.control.catalog.objects.table_specs import FIRST_VERSION, first_row
from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.arrival_plans import Arrival, check_current
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.errors import UnknownItem

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


@dataclass(frozen=True)
class NewTable:
    """A table whose item is there, of whatever kind, and the plan by which it comes in."""

    id: ItemId
    spec: TableSpec
    arrival: Arrival


def add_tables(session: Session, state: SourceState, new: Sequence[NewTable]) -> BackfillId | None:
    """The rows and the collections of tables of one source, as planned; the backfill of those that come late."""
    for table in new:
        check_current(state, table.arrival)
    session.execute(insert(TableRow), [_row(state, table) for table in new])
    session.execute(insert(SpecRow), [first_row(table.id, table.spec) for table in new])
    add_collections(session, [table.id for table in new], generation=1)
    late = [table for table in new if table.arrival.way == "backfill"]
    if not late:
        return None
    # All that come late begin where the source does; or all of them where its log ends.
    from_tick, from_position = late[0].arrival.tick, late[0].arrival.position
    ids = [table.id for table in late]
    return bring_up(session, state, ids, generation=1, from_tick=from_tick, from_position=from_position, heals=False)


def _row(state: SourceState, table: NewTable) -> dict[str, Any]:
    arrival = table.arrival
    return {
        "id": table.id,
        "source_id": state.source_id,
        "spec": table.spec.model_dump_json(),
        "spec_version": FIRST_VERSION,
        "generation": 1,
        "status": arrival.begins_as,
        "start": arrival.position,
        "start_tick": arrival.first_tick,
        "position": arrival.position,
        "next_tick": arrival.tick,
        "upper": 0,
        "since": 0,
        "rows": 0,
        "errors": 0,
        "keyed": not envelope_named(table.spec.envelope).appends,
        "awaits_snapshot": arrival.by_snapshot,
    }


def remove_tables(session: Session, table_ids: Sequence[ItemId]) -> None:
    """The tables leave at once, also a pending tick; their names are free."""
    by_source = _by_source(session, table_ids)
    for source_id, of_source in by_source.items():
        lock_source(session, source_id)
        first_without = _first_open_tick(session, source_id)
        for some in batches(of_source):
            _leave(session, some, first_without)
    retire_items(session, table_ids)


def _by_source(session: Session, table_ids: Sequence[ItemId]) -> dict[ItemId, list[ItemId]]:
    found: dict[ItemId, ItemId] = {}
    for some in batches(table_ids):
        present = select(TableRow.id, TableRow.source_id).where(TableRow.id.in_(some), TableRow.status != "dropped")
        found |= {row.id: row.source_id for row in session.execute(present)}
    by_source: dict[ItemId, list[ItemId]] = {}
    for table_id in table_ids:
        if table_id not in found:
            raise UnknownItem("table", table_id)
        by_source.setdefault(found[table_id], []).append(table_id)
    return by_source


def _first_open_tick(session: Session, source_id: ItemId) -> int:
    """The pending tick, else the next one. The source's whole state is not loaded: it grows with its tables."""
    of_source = TickRow.source_id == source_id
    committed = session.scalar(select(func.max(TickRow.number)).where(of_source, TickRow.committed)) or 0
    pending = session.scalar(select(func.min(TickRow.number)).where(of_source, TickRow.number > committed))
    return committed + 1 if pending is None else pending


def _leave(session: Session, table_ids: Collection[ItemId], first_without: int) -> None:
    dropped = update(TableRow).where(TableRow.id.in_(table_ids)).values(status="dropped", backfill_id=None)
    left = (
        update(MembershipRow)
        .where(MembershipRow.table_id.in_(table_ids), MembershipRow.left_at.is_(None))
        .values(left_at=first_without, reason="dropped")
    )
    replaced = delete(ReplacementRow).where(ReplacementRow.table_id.in_(table_ids))
    for statement in (dropped, replaced, left):
        session.execute(statement, execution_options=_NO_SYNC)
    drop_holds_of(session, table_ids, "its table was dropped")
