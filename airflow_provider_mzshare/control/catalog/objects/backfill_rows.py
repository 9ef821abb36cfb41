"""The rows of backfills, and which tables each has. The caller owns the transaction and has the lock of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    ReplacementRow,
    TableRow,
)
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, new_backfill_id
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import SourceState

_NO_HASH = "0" * 32
_OPEN = "mzshare.backfills"
_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def bring_up(
    session: Session,
    state: SourceState,
    table_ids: Sequence[ItemId],
    *,
    generation: int,
    from_tick: int,
    from_position: Position,
    heals: bool,
    alone: bool = False,
) -> BackfillId:
    """Give tables to the one backfill of this transaction, so that all are read for at once; or to one ``alone``."""
    backfill_id = _open_backfill(session, state, alone=True) if alone else _backfill_of(session, state)
    same = {
        "backfill_id": backfill_id,
        "asked_as": backfill_id,
        "generation": generation,
        "heals": heals,
        "from_tick": from_tick,
        "from_position": from_position,
        "rows": 0,
        "errors": 0,
        "data_hash": _NO_HASH,
        "errors_hash": _NO_HASH,
        "records": 0,
        "busy_ms": 0,
    }
    session.execute(insert(BackfillTableRow), [{**same, "table_id": table_id} for table_id in table_ids])
    for some in batches(table_ids):
        tables = update(TableRow).where(TableRow.id.in_(some), TableRow.generation == generation)
        replacements = update(ReplacementRow).where(
            ReplacementRow.table_id.in_(some), ReplacementRow.generation == generation
        )
        for rows in (tables, replacements):
            session.execute(rows.values(backfill_id=backfill_id), execution_options=_NO_SYNC)
    return backfill_id


def _backfill_of(session: Session, state: SourceState) -> BackfillId:
    opened: dict[ItemId, BackfillId] = session.info.setdefault(_OPEN, {})
    if state.source_id not in opened:
        opened[state.source_id] = _open_backfill(session, state)
    return opened[state.source_id]


def _open_backfill(session: Session, state: SourceState, *, alone: bool = False) -> BackfillId:
    backfill_id = new_backfill_id()
    session.execute(
        insert(BackfillRow).values(
            id=backfill_id,
            source_id=state.source_id,
            created_at=wall_ms(),
            history_tick=state.last_number,
            history_upper=state.upper,
            lease_epoch=0,
            lease_beat=0,
            alone=alone,
        )
    )
    return backfill_id
