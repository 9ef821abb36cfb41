"""The rows of read holds. Decides nothing; whoever writes one has the lock of its table's source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Select, delete, exists, or_, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.clock import database_ms
from airflow_provider_mzshare.control.catalog.database.models import ReadHoldRow, TableRow
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.holds import Hold

_NO_SYNC: dict[str, Any] = {"synchronize_session": False}


def find_hold(session: Session, name: str) -> Hold | None:
    return next(iter(_holds(session, _rows().where(ReadHoldRow.name == name))), None)


def list_holds(session: Session, table_ids: Collection[ItemId] | None = None) -> Sequence[Hold]:
    """Those that stand, and those that were dropped and are not forgotten; oldest time first."""
    if table_ids is None:
        found = list(_holds(session, _rows()))
    else:
        of_tables = (_rows().where(ReadHoldRow.table_id.in_(some)) for some in batches(table_ids))
        found = [hold for query in of_tables for hold in _holds(session, query)]
    return sorted(found, key=lambda hold: (hold.at, hold.name))


def standing_holds(session: Session, source_id: ItemId) -> Sequence[Hold]:
    """On tables of this source, without those that were dropped."""
    tables = select(TableRow.id).where(TableRow.source_id == source_id)
    standing = _rows().where(ReadHoldRow.dropped_at.is_(None), ReadHoldRow.table_id.in_(tables))
    return list(_holds(session, standing))


def _rows() -> Select[ReadHoldRow]:
    return select(ReadHoldRow).execution_options(populate_existing=True)


def _holds(session: Session, query: Select[ReadHoldRow]) -> Iterable[Hold]:
    return (
        Hold(
            name=row.name,
            table_id=row.table_id,
            at=row.at,
            holder=row.holder,
            claim=row.claim,
            taken_at=row.taken_at,
            heartbeat=row.heartbeat,
            limit_ms=row.limit_ms,
            dropped_at=row.dropped_at,
            why=row.why,
            named=row.named,
        )
        for row in session.scalars(query)
    )


def write_hold(session: Session, hold: Hold) -> Hold:
    change = update(ReadHoldRow).where(ReadHoldRow.name == hold.name).values(**vars(hold))
    session.execute(change, execution_options=_NO_SYNC)
    return hold


def forget_hold(session: Session, name: str) -> None:
    session.execute(delete(ReadHoldRow).where(ReadHoldRow.name == name), execution_options=_NO_SYNC)


def drop_holds_of(session: Session, table_ids: Collection[ItemId], why: str) -> None:
    """Nobody holds these tables any more. Their holders are told when they ask next."""
    of_tables = update(ReadHoldRow).where(ReadHoldRow.table_id.in_(table_ids), ReadHoldRow.dropped_at.is_(None))
    session.execute(of_tables.values(dropped_at=database_ms(session), why=why), execution_options=_NO_SYNC)


def prune_holds(session: Session, before_ms: int) -> None:
    """Forget those that were dropped before this time, unless their holders may still come back for them."""
    table_gone = exists().where(TableRow.id == ReadHoldRow.table_id, TableRow.status == "dropped")
    old = delete(ReadHoldRow).where(ReadHoldRow.dropped_at < before_ms, or_(~ReadHoldRow.named, table_gone))
    session.execute(old, execution_options=_NO_SYNC)
