"""Positions of a database: one lane that is no number, and numbers that no column of a database holds."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from airflow_provider_mzshare.control.catalog.database.models import BackfillRow, BackfillTableRow, TickRow
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.objects.lookup import get_source_item
from airflow_provider_mzshare.control.views.source_progress import progress_of
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done
from tests.support.relations import Described, Running

MOST = 2**63 - 1
NUMBERS = [5, 2**53 + 1, MOST, 2**64 - 1, 2**90 + 1]


@pytest.fixture
def running(described: Described) -> Running:
    described.run(
        "CREATE SOURCE a FROM LOAD GENERATOR AUCTION",
        "CREATE SOURCE other FROM LOAD GENERATOR COUNTER",
        "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)",
    )
    return Running(described, "a")


def tick(running: Running, upper: Position) -> None:
    state = running.store.load()
    minted = running.store.mint(running.holder, lower=state.upper, upper=upper, incarnation=state.incarnation)
    running.commit(minted)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_relation_answers_with_a_position_of_any_size(
    described: Described, running: Running, number: int
) -> None:
    other = Running(described, "other")
    other.tick({0: 7})
    upper = Position({"lsn": number})
    tick(running, upper)
    running.store.note_end(Position({"lsn": number + 1}))
    assert running.store.load().upper == upper

    ours, others = described.id("a"), described.id("other")
    shown = number if number <= MOST else None
    rows = described.query("SELECT source_id, partition, offset, tick FROM mz_progress ORDER BY tick, offset")
    assert sorted(map(tuple, (row.values() for row in rows)), key=str) == sorted(
        [(ours, None, shown, 1), (others, 0, 7, 1)], key=str
    )
    assert described.one("SELECT partition, offset FROM a") == {"partition": None, "offset": shown}
    assert described.one(f"SELECT upper FROM mz_ticks WHERE source_id = '{ours}'")["upper"] == {"lsn": number}
    counted = f"SELECT offset_known, offset_committed FROM mz_source_statistics WHERE id = '{ours}'"
    assert tuple(described.one(counted).values()) == (min(number + 1, MOST), min(number, MOST))
    with running.catalog.read() as session:
        source = get_source_item(session, ours)
        assert [row[:2] for row in progress_of(session, source).rows] == [(None, shown)]
        assert progress_of(session, source).table().num_rows == 1


def test_sums_end_where_a_column_does(described: Described, running: Running) -> None:
    tick(running, Position({"0": MOST, "1": MOST, "2": 2**62}))
    for name in ("a", "bids"):
        row = described.one(
            f"SELECT offset_committed, offset_known FROM mz_source_statistics WHERE id = '{described.id(name)}'"
        )
        assert tuple(row.values()) == (MOST, MOST)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_backfill_counts_what_a_column_holds(described: Described, running: Running, number: int) -> None:
    tick(running, Position({"lsn": number}))
    tick(running, Position({"lsn": 2 * number}))
    described.run(
        "CREATE TABLE late FROM SOURCE a (REFERENCE users)", "CREATE TABLE later FROM SOURCE a (REFERENCE users)"
    )
    table_id = described.id("late")
    with running.catalog.read() as session:
        wrote = select(BackfillTableRow.backfill_id).where(BackfillTableRow.table_id == table_id)
        backfill_id = session.scalars(select(BackfillRow.id).where(BackfillRow.id.in_(wrote))).one()
    store = CatalogBackfillStore(running.catalog, running.source_id, backfill_id)
    holder = store.claim(JobId("backfill-1"))
    for each in store.ticks(1, 10):
        store.follow(holder, first=each.number, last=each, outcomes={table_id: Done()}, stats={})
    with running.catalog.read() as session:
        records = select(BackfillTableRow.records).where(BackfillTableRow.table_id == table_id)
        assert session.scalars(records).one() == min(2 * number, MOST)
        assert session.scalar(select(func.count()).select_from(TickRow)) == 2
    counted = described.one(f"SELECT messages_received AS n FROM mz_source_statistics WHERE id = '{running.source_id}'")
    assert counted["n"] == min(2 * number, MOST)
    row = described.one(
        f"SELECT snapshot_records_known AS k FROM mz_source_statistics WHERE id = '{running.source_id}'"
    )
    assert row["k"] == min(4 * number, MOST)
