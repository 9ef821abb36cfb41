"""Read holds in the catalog: lock the source of the table, ask the rules, write what they say, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import exists, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.clock import database_ms
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.models import BackfillTableRow, ReadHoldRow
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects.hold_rows import (
    find_hold,
    forget_hold,
    standing_holds,
    write_hold,
)
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem, get_table_item
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog import holds
from airflow_provider_mzshare.core.ticklog.backfill_rules import ARRIVING
from airflow_provider_mzshare.core.ticklog.holds import Held, Hold, UnknownHold, Wanted
from airflow_provider_mzshare.errors import LogConflict


class HoldStore:
    """What holders ask of the catalog, and whoever ends their holds."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def take(self, table_id: ItemId, wanted: Wanted) -> Hold:
        """Take a hold, or go on with the one of this name."""
        try:
            return self._take(table_id, wanted)
        except (IntegrityError, LogConflict):
            # Tables of two sources have no lock in common, and both were to be held by this name at the same time.
            # Now the row says by which; the rule tells whoever came second.
            return self._take(table_id, wanted)

    def _take(self, table_id: ItemId, wanted: Wanted) -> Hold:
        with self._catalog.write() as session:
            held, found = _locked(session, table_id), find_hold(session, wanted.name)
            hold = holds.take(found, held, wanted, database_ms(session))
            if found is None:
                session.execute(insert(ReadHoldRow).values(**vars(hold)))
            else:
                same = update(ReadHoldRow).where(ReadHoldRow.name == hold.name, ReadHoldRow.claim == found.claim)
                change(session, same.values(**vars(hold)), 1, f"the hold {hold.name!r}")
            return hold

    def refresh(self, name: str, claim: str) -> Hold:
        with self._catalog.write() as session:
            found, held = _locked_of(session, name)
            return write_hold(session, holds.refresh(found, held, claim, database_ms(session)))

    def move(self, name: str, claim: str, at: int) -> Hold:
        with self._catalog.write() as session:
            found, held = _locked_of(session, name)
            return write_hold(session, holds.move(found, held, claim, at, database_ms(session)))

    def release(self, name: str, claim: str) -> None:
        with self._catalog.write() as session:
            found, held = _locked_of(session, name)
            forget_hold(session, holds.release(found, held, claim).name)

    def drop(self, name: str, why: str) -> tuple[Hold, str]:
        """Drop a hold, whoever has it; forget one that was dropped before. Returns it as it was, and its table."""
        with self._catalog.write() as session:
            found, held = _locked_of(session, name)
            if found.dropped_at is None:
                write_hold(session, holds.drop(found, database_ms(session), why))
            else:
                forget_hold(session, name)
            return found, held.table


def drop_dead(session: Session, source_id: ItemId) -> tuple[Sequence[Hold], Sequence[Hold]]:
    """Drop the holds on tables of a source whose holders are not heard of any more. Behind the source's lock.

    :returns: those that stand, and those that were dropped just now.
    """
    found = standing_holds(session, source_id)
    dropped = holds.dead(found, database_ms(session)) if found else []
    for hold in dropped:
        write_hold(session, hold)
    gone = {hold.name for hold in dropped}
    return [hold for hold in found if hold.name not in gone], dropped


def _locked_of(session: Session, name: str) -> tuple[Hold, Held]:
    """The hold and its table, behind the lock of the table's source."""
    if (before := find_hold(session, name)) is None:
        raise UnknownHold(name)
    held = _locked(session, before.table_id)
    found = find_hold(session, name)
    if found is None or found.table_id != before.table_id:
        raise UnknownHold(name)  # Meanwhile it was released; another source's lock is not taken beside this one.
    return found, held


def _locked(session: Session, table_id: ItemId) -> Held:
    lock_source(session, get_table_item(session, table_id).source_id)
    item = get_table_item(session, table_id)
    return Held(
        table_id,
        item.display,
        item.since,
        item.upper,
        filling=item.status in ARRIVING and not _heals(session, item),
        dropped=item.status == "dropped",
    )


def _heals(session: Session, item: TableItem) -> bool:
    heals = exists().where(
        BackfillTableRow.backfill_id == item.backfill_id,
        BackfillTableRow.table_id == item.id,
        BackfillTableRow.heals,
    )
    return bool(session.scalar(select(heals)))
