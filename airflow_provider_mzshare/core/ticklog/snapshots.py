"""The rules for tables that begin with a snapshot of the upstream's tables, because its log begins somewhere.

Such a table is brought up by a backfill, wherever the log is. The backfill takes a snapshot that has all that lies
below P, where the last committed tick ends. Its rows are one commit, at the time of that tick: the first one of the
generation. Then the table follows the ticks after it, without the transactions that the snapshot has, up to H; from
there on they apply whole, and its rows are what the log says.

Several runs may take snapshots of one generation, and each may be late with its commit. The one whose commit is there
counts, because the commit is put only where there is none before it, and says itself which snapshot it is. So nobody
has to know whether an earlier run is dead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_mzshare.core.ids import BackfillId, ItemId
from airflow_provider_mzshare.core.ticklog.backfill_rules import Followed, arriving, check_backfill
from airflow_provider_mzshare.core.ticklog.rules import stalled
from airflow_provider_mzshare.core.ticklog.state import (
    Done,
    Holder,
    Left,
    Snapshot,
    SourceState,
    TableState,
    Tick,
)
from airflow_provider_mzshare.errors import LogConflict


@dataclass(frozen=True)
class Landed:
    """The rows of a snapshot are in the table's collections.

    :param snapshot: the one that the commit names, whoever has written it.
    """

    snapshot: Snapshot
    done: Done = field(default_factory=Done)


# ── before ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def awaiting(state: SourceState, backfill_id: BackfillId) -> dict[ItemId, TableState]:
    """The tables of a backfill that have no snapshot yet. Those that have none at the same time share one."""
    return {table_id: table for table_id, table in arriving(state, backfill_id).items() if table.awaits_snapshot}


def base_tick(state: SourceState) -> Tick | None:
    """The tick after which a snapshot that is taken now is followed; None where there is none yet.

    A tick that is minted and not committed is no obstacle: it is followed, as its range is final. As long as the log is
    at its start nobody need be reading the upstream: what is committed now may be in no log.
    """
    return state.last if state.last is not None and state.last.upper != state.start else None


def taking(
    state: SourceState,
    backfill_id: BackfillId,
    holder: Holder,
    snapshot: Snapshot,
    tick: Tick | None,
    tables: Collection[ItemId],
) -> list[TableState]:
    """The tables that this snapshot may be read for: those that still wait for one.

    :param tick: the one of the snapshot's number, as the log has it.
    """
    check_backfill(state, backfill_id, holder)
    found = None if tick is None else (tick.upper, tick.mz_timestamp)
    if tick is None or not tick.committed or found != (snapshot.position, snapshot.mz_timestamp):
        raise LogConflict(f"tick {snapshot.tick} is not the one that snapshot {snapshot.snapshot_id} was taken at")
    waiting = awaiting(state, backfill_id)
    return [waiting[table_id] for table_id in tables if table_id in waiting]


# ── after ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def land(
    state: SourceState, backfill_id: BackfillId, holder: Holder, outcomes: Mapping[ItemId, Landed | Left]
) -> Followed:
    """Snapshots were found in the collections of some tables of a backfill; others cannot be read."""
    check_backfill(state, backfill_id, holder)
    mine = arriving(state, backfill_id)
    moved: dict[ItemId, TableState] = {}
    for table_id, outcome in outcomes.items():
        table = mine.get(table_id)
        if table is None:
            continue
        if not table.awaits_snapshot:
            raise LogConflict(f"table {table_id} has its snapshot already")
        moved[table_id] = (
            stalled(table, outcome.reason) if isinstance(outcome, Left) else begun(table, outcome.snapshot)
        )
    return Followed(moved, gone=frozenset(outcomes) - moved.keys())


def begun(table: TableState, snapshot: Snapshot) -> TableState:
    """It has the rows of the snapshot, which nobody can read: they are those of no time."""
    return replace(
        table,
        awaits_snapshot=False,
        snapshot=snapshot,
        position=snapshot.position,
        next_tick=snapshot.tick + 1,
        known_from=snapshot.known_from,
    )


def left_out(table: TableState) -> Snapshot | None:
    """The snapshot whose transactions are left out of the ticks that the table gets next; None: they apply whole.

    It is the table's own, also after a stall and in another backfill.
    """
    snapshot = table.snapshot
    return None if snapshot is None or snapshot.known_from <= table.position else snapshot
