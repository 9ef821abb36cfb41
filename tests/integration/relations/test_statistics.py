"""Counters follow from commits: a tick counts once, however often it is executed."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog.database.models import BackfillRow
from airflow_provider_mzshare.control.catalog.log.arrivals import arming, retire_backfill
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Written
from airflow_provider_mzshare.errors import Fenced, LogConflict
from tests.support.relations import Described, Running

BIDS = 4


@pytest.fixture
def running(described: Described) -> Running:
    described.run(
        "CREATE SOURCE a FROM LOAD GENERATOR AUCTION",
        "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)",
        "CREATE TABLE users FROM SOURCE a (REFERENCE users)",
    )
    return Running(described, "a")


def of(described: Described, name: str) -> dict[str, Any]:
    return described.one(f"SELECT * FROM mz_source_statistics WHERE id = '{described.id(name)}'")


def counted(described: Described, name: str) -> tuple[Any, ...]:
    row = of(described, name)
    return tuple(row[c] for c in ("messages_received", "bytes_received", "updates_staged", "updates_committed"))


def test_a_tick_is_counted_for_the_source_once_and_for_each_table_by_its_rows(
    described: Described, running: Running
) -> None:
    assert counted(described, "a") == (0, 0, 0, 0)
    bids, users = described.id("bids"), described.id("users")
    running.tick({BIDS: 10, 1: 2}, outcomes={bids: Done(rows=9, errors=1), users: Done(rows=2)},
                 stats={"messages": 12, "bytes": 480})  # fmt: skip
    running.empty()
    assert counted(described, "a") == (12, 480, 12, 12)
    assert counted(described, "bids") == (10, None, 10, 10)
    assert counted(described, "users") == (2, None, 2, 2)
    assert (of(described, "a")["offset_known"], of(described, "a")["offset_committed"]) == (12, 12)


def test_what_is_minted_and_not_committed_is_known_and_not_counted(described: Described, running: Running) -> None:
    running.mint({BIDS: 7})
    assert counted(described, "a") == (0, 0, 0, 0)
    assert (of(described, "a")["offset_known"], of(described, "a")["offset_committed"]) == (7, 0)
    running.store.note_end(Position({"4": 40}))
    running.store.note_end(Position({"4": 30}))
    assert of(described, "a")["offset_known"] == 40


def test_a_commit_that_is_repeated_counts_once(described: Described, running: Running) -> None:
    tick = running.mint({BIDS: 10})
    again = Running(described, "a")
    again.store.begin_attempt(again.holder, tick.number)
    done, stats = {described.id("bids"): Done(rows=10)}, {"messages": 10, "bytes": 100}
    again.commit(tick, outcomes=done, stats=stats)
    # The first holder was only slow: it has executed the tick too, and is too late.
    with pytest.raises(Fenced):
        running.commit(tick, outcomes=done, stats=stats)
    with pytest.raises(LogConflict):
        again.commit(tick, outcomes=done, stats=stats)
    assert counted(described, "a") == (10, 100, 10, 10)


def test_a_tick_whose_writer_died_is_counted_by_what_its_commits_say(described: Described, running: Running) -> None:
    """All collections hold it, so that nothing is read again; the log entries say what was."""
    tick = running.mint({BIDS: 10})
    bids = next(member for member in running.store.members() if member.table_id == described.id("bids"))
    found = Written(bids.data, 1, 8, "0" * 32, messages=10, bytes=333)
    running.commit(tick, outcomes={bids.table_id: Done((found,), rows=8)})
    assert counted(described, "a") == (10, 333, 8, 8)


def test_a_tick_that_nobody_tells_about_counts_a_record_per_offset(described: Described, running: Running) -> None:
    running.tick({BIDS: 10})
    assert counted(described, "a")[:2] == (10, 0)


def test_a_restart_neither_loses_nor_doubles(described: Described, running: Running) -> None:
    running.tick({BIDS: 10}, stats={"messages": 10, "bytes": 10})
    again = Running(described, "a")
    again.tick({BIDS: 15}, stats={"messages": 5, "bytes": 5})
    assert counted(described, "a")[:2] == (15, 15)


# ── snapshots ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Backfill:
    def __init__(self, described: Described, table: str) -> None:
        self.described, self.table_id, self.catalog = described, described.id(table), described.catalog
        row = described.one(f"SELECT source_id FROM mz_tables WHERE id = '{self.table_id}'")
        with self.catalog.read() as session:
            newest = select(BackfillRow.id).order_by(BackfillRow.created_at.desc()).limit(1)
            self.id = session.scalars(newest).one()
        self.store = CatalogBackfillStore(self.catalog, row["source_id"], self.id)
        self.holder: Holder = self.store.claim(JobId("backfill"))

    def follow(self, first: int, last: int, rows: int) -> None:
        ticks = self.store.ticks(last, 1)
        done = {self.table_id: Done(rows=rows)}
        self.store.follow(self.holder, first=first, last=ticks[0], outcomes=done, stats={})


def snapshot(described: Described, name: str) -> tuple[Any, ...]:
    row = of(described, name)
    return row["snapshot_records_known"], row["snapshot_records_staged"], row["snapshot_committed"]


def test_a_snapshot_is_known_staged_and_then_committed(described: Described, running: Running) -> None:
    for upper in (10, 25, 40):
        running.tick({BIDS: upper})
    assert snapshot(described, "bids") == (0, 0, True)
    described.run("CREATE TABLE late FROM SOURCE a (REFERENCE bids)")
    assert snapshot(described, "late") == (40, 0, False)
    assert snapshot(described, "a") == (40, 0, False)
    backfill = Backfill(described, "late")
    backfill.follow(1, 2, rows=25)
    assert snapshot(described, "late") == (40, 25, False)
    assert counted(described, "late") == (25, None, 25, 25)
    running.tick({BIDS: 100})
    backfill.follow(3, 3, rows=15)
    assert snapshot(described, "late") == (40, 40, True)
    backfill.follow(4, 4, rows=60)
    assert snapshot(described, "late") == (40, 40, True)
    assert (of(described, "late")["offset_known"], of(described, "late")["offset_committed"]) == (100, 100)


def test_a_new_generation_is_staged_until_it_is_in_place(described: Described, running: Running) -> None:
    running.tick({BIDS: 10}, outcomes={described.id("bids"): Done(rows=10)})
    described.run("ALTER TABLE bids RESNAPSHOT")
    backfill = Backfill(described, "bids")
    backfill.follow(1, 1, rows=10)
    assert counted(described, "bids") == (20, None, 20, 10)
    assert snapshot(described, "bids") == (10, 10, True)
    with described.catalog.write() as session:
        assert arming(session, running.source_id)
    running.empty()
    assert counted(described, "bids") == (20, None, 20, 20)
    assert described.one("SELECT generation, rows FROM mz_cutovers") == {"generation": 2, "rows": 10}


def test_a_new_generation_that_is_given_up_was_staged(described: Described, running: Running) -> None:
    running.tick({BIDS: 10}, outcomes={described.id("bids"): Done(rows=9, errors=1)})
    described.run("ALTER TABLE bids RESNAPSHOT")
    backfill = Backfill(described, "bids")
    backfill.follow(1, 1, rows=4)
    with described.catalog.write() as session:
        assert retire_backfill(session, backfill.id) == [described.id("bids")]
    assert counted(described, "bids") == (14, None, 14, 10)
    described.run("ALTER TABLE bids RESNAPSHOT")
    Backfill(described, "bids").follow(1, 1, rows=5)
    assert counted(described, "bids") == (19, None, 19, 10)


def test_an_old_style_source_counts_what_its_output_got(described: Described) -> None:
    described.run(
        "ALTER SYSTEM SET force_source_table_syntax = false",
        "CREATE SOURCE c FROM LOAD GENERATOR COUNTER ENVELOPE NONE",
    )
    running = Running(described, "c")
    tick = running.mint({0: 5})
    (output,) = [member.table_id for member in running.store.members()]
    running.commit(tick, outcomes={output: Done(rows=5)}, stats={"messages": 5, "bytes": 60})
    assert counted(described, "c") == (5, 60, 5, 5)
    assert [row["id"] for row in described.query("SELECT id FROM mz_source_statistics")] == [described.id("c")]
    assert described.one("SELECT object_id FROM mz_frontiers WHERE write_frontier > 0 AND read_frontier IS NOT NULL "
                         f"AND object_id = '{described.id('c')}'")  # fmt: skip
    for relation in ("mz_sources", "mz_tables", "mz_source_statuses", "mz_source_exports"):
        assert output not in [row["id"] for row in described.query(f"SELECT id FROM {relation}")]
