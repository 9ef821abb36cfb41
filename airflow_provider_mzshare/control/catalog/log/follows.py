"""Writes how far a group of ticks has brought the tables of a backfill. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.at_commit import touch
from airflow_provider_mzshare.control.catalog.database.base import MOST
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillTableRow,
    CollectionRow,
    ReplacementRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.catalog.log.tick_rows import write_commits
from airflow_provider_mzshare.core.ids import BackfillId, CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed
from airflow_provider_mzshare.core.ticklog.state import Done, Outcome, SourceState, TableState, Tick, Written

HASH_MODULUS = 1 << 128


def write_followed(
    session: Session,
    state: SourceState,
    backfill_id: BackfillId,
    last: Tick,
    outcomes: Mapping[ItemId, Outcome],
    followed: Followed,
    stats: Mapping[str, float],
    *,
    late: bool = False,
) -> None:
    """:param late: they were read late from an upstream that compacts."""
    for table_id, after in followed.tables.items():
        before, outcome = backfill_rules.arriving(state, backfill_id)[table_id], outcomes[table_id]
        done = outcome if isinstance(outcome, Done) else Done()
        move(session, before, after, done, replacement=backfill_rules.is_replacement(state, before))
        if isinstance(outcome, Done):
            heals = late and after.keyed and table_id in state.backfills[backfill_id].healing
            written = _as_one(session, state, backfill_id, table_id, outcome.written) if heals else outcome.written
            write_commits(session, last, written)
            moved = after.position.gap(before.position)
            add_up(session, backfill_id, before, outcome, stats, moved=moved)
        if after.status != before.status:
            touch(session, table_id)


def _as_one(
    session: Session, state: SourceState, backfill_id: BackfillId, table_id: ItemId, written: Sequence[Written]
) -> Sequence[Written]:
    """The commits of a keyed table that is healed, as one with all before them since it stalled.

    What a later record had replaced may have been gone when it was read: so nobody knows what was there in between.
    """
    of_table = (BackfillTableRow.backfill_id == backfill_id, BackfillTableRow.table_id == table_id)
    number = select(BackfillTableRow.from_tick).where(*of_table).scalar_subquery()
    first = select(TickRow.mz_timestamp).where(TickRow.source_id == state.source_id, TickRow.number == number)
    begun = session.scalar(first)
    return written if begun is None else [replace(one, first_timestamp=begun) for one in written]


def write_reading(session: Session, backfill_id: BackfillId, tables: Collection[ItemId], records: int) -> None:
    """Keep the largest number that any run has reported: a run that begins the group again does not set it back."""
    further = update(BackfillTableRow).where(
        BackfillTableRow.backfill_id == backfill_id,
        BackfillTableRow.table_id.in_(tables),
        BackfillTableRow.ahead < records,
    )
    session.execute(further.values(ahead=records), execution_options={"synchronize_session": False})


def move(session: Session, before: TableState, after: TableState, done: Done, *, replacement: bool) -> None:
    row = ReplacementRow if replacement else TableRow
    key = ReplacementRow.table_id if replacement else TableRow.id
    moving = update(row).where(
        key == before.table_id, row.next_tick == before.next_tick, row.backfill_id == before.backfill_id
    )
    values = {
        "status": after.status,
        "reason": after.reason,
        "position": after.position,
        "next_tick": after.next_tick,
        "upper": after.upper,
        "since": after.since,
        "backfill_id": after.backfill_id,
        "known_from": after.known_from,
        "awaits_snapshot": after.awaits_snapshot,
        "snapshot": after.snapshot,
        "rows": row.rows + done.rows,
        "errors": row.errors + done.errors,
        "folded": row.folded + done.folded,
    }
    change(session, moving.values(values), 1, f"table {before.table_id}")


def add_up(
    session: Session,
    backfill_id: BackfillId,
    before: TableState,
    done: Done,
    stats: Mapping[str, float],
    *,
    moved: int = 0,
) -> None:
    """Sums of what this backfill has written: the certificate's numbers. :param moved: offsets, in a group of ticks."""
    of_table = (BackfillTableRow.backfill_id == backfill_id, BackfillTableRow.table_id == before.table_id)
    query = select(BackfillTableRow.data_hash, BackfillTableRow.errors_hash).where(*of_table)
    data_hash, errors_hash = session.execute(query).one()
    roles, moved = _roles(session, before), min(moved, MOST)
    busy = stats.get("busy_ms", stats.get("write_ms", 0) + stats.get("commit_ms", 0))
    values = {
        "rows": BackfillTableRow.rows + done.rows,
        "errors": BackfillTableRow.errors + done.errors,
        "data_hash": _added(data_hash, done.written, roles, "data"),
        "errors_hash": _added(errors_hash, done.written, roles, "errors"),
        "records": case((BackfillTableRow.records > MOST - moved, MOST), else_=BackfillTableRow.records + moved),
        "busy_ms": BackfillTableRow.busy_ms + round(busy),
        "groups": BackfillTableRow.groups + (1 if moved else 0),
        # This group may be smaller than one that was begun before: the progress that people see must not go back.
        "ahead": case((BackfillTableRow.ahead > moved, BackfillTableRow.ahead - moved), else_=0),
    }
    change(session, update(BackfillTableRow).where(*of_table).values(values), 1, f"backfill {backfill_id}")


def _roles(session: Session, table: TableState) -> dict[CollectionId, str]:
    query = select(CollectionRow.id, CollectionRow.role).where(
        CollectionRow.table_id == table.table_id, CollectionRow.generation == table.generation
    )
    return {found.id: found.role for found in session.execute(query)}


def _added(total: str, written: tuple[Written, ...], roles: Mapping[CollectionId, str], role: str) -> str:
    own = sum(int(one.hash, 16) for one in written if roles[one.collection_id] == role)
    return f"{(int(total, 16) + own) % HASH_MODULUS:032x}"
