"""Statuses and their history: written in the transactions that change them, pruned by age."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.catalog.log.queue import enter_queue
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ticklog.state import Left
from tests.support.relations import Described, Running

BIDS = 4
DAY = 86_400_000


@pytest.fixture
def auction(described: Described) -> Described:
    described.run("CREATE SOURCE a FROM LOAD GENERATOR AUCTION", "CREATE TABLE bids FROM SOURCE a (REFERENCE bids)")
    return described


def test_a_source_goes_through_its_life(auction: Described) -> None:
    source, table = auction.id("a"), auction.id("bids")
    assert auction.status("a") == auction.status("bids") == ("starting", None)
    running = Running(auction, "a")
    running.started()
    running.becomes("running")
    running.tick({BIDS: 10})
    assert auction.status("a") == auction.status("bids") == ("running", None)
    running.empty()
    running.empty()
    assert auction.status("a") == ("idle", None)
    assert auction.status("bids") == ("running", None)
    running.tick({BIDS: 20})
    with auction.catalog.write() as session:
        items.set_desired(session, source, "stopped")
    running.becomes("stopped")
    assert auction.status("a") == auction.status("bids") == ("paused", None)
    auction.run("DROP SOURCE a CASCADE")
    assert auction.history(source) == ["starting", "running", "idle", "running", "paused", "dropped"]
    assert auction.history(table) == ["starting", "running", "paused", "dropped"]
    assert auction.query("SELECT * FROM mz_source_statuses") == []


def test_a_job_that_fails_or_is_lost_says_why_and_what_to_do(auction: Described) -> None:
    running = Running(auction, "a")
    running.becomes("failed", "no room on the disk. Try: make room")
    assert auction.status("a") == auction.status("bids") == ("failed", "no room on the disk")
    row = auction.one("SELECT details FROM mz_source_statuses WHERE name = 'a'")
    assert json.loads(row["details"]) == {"hints": ["make room, or mzshare logs public.a"]}
    Running(auction, "a").becomes("lost", "its process is gone")
    assert auction.status("a") == ("failed", "its process is gone")


def test_what_holds_an_app_up_is_an_error_while_it_lasts(auction: Described) -> None:
    running = Running(auction, "a")
    running.becomes("running")
    running.tick({BIDS: 1})
    for trouble in ("the broker is away", None):
        with auction.catalog.write() as session:
            job_rows.note_trouble(session, running.job, trouble)
        assert auction.status("a") == ("running", trouble)


def test_a_stalled_source_stalls_its_tables_and_a_stalled_table_nobody_else(auction: Described) -> None:
    auction.run("CREATE TABLE users FROM SOURCE a (REFERENCE users)")
    running = Running(auction, "a")
    running.becomes("running")
    running.tick({BIDS: 10}, outcomes={auction.id("bids"): Left("offset 7 cannot be decoded")})
    assert auction.status("bids") == ("stalled", "offset 7 cannot be decoded")
    assert "RESUME" in auction.one("SELECT details FROM mz_source_statuses WHERE name = 'bids'")["details"]
    assert auction.status("a") == auction.status("users") == ("running", None)
    running.store.stall(running.holder, "topic_recreated", "it is another one")
    assert auction.status("a") == auction.status("users") == ("stalled", "it is another one")
    assert auction.status("bids") == ("stalled", "offset 7 cannot be decoded")


def test_a_table_that_is_brought_up_is_as_its_backfill_is(auction: Described) -> None:
    running = Running(auction, "a")
    running.becomes("running")
    running.tick({BIDS: 10})
    auction.run("CREATE TABLE late FROM SOURCE a (REFERENCE bids)")
    assert auction.status("late") == ("starting", None)
    with auction.catalog.write() as session:
        table = items.get_table_item(session, auction.id("late"))
        job = job_rows.create_job(
            session, kind="backfill", source_id=table.source_id, launcher="process", folder="/x",
            backfill_id=table.backfill_id,
        )  # fmt: skip
        job_rows.set_state(session, job, "running", expect={"launching"})
    assert auction.status("late") == ("running", None)
    auction.run("ALTER SOURCE a SET (BACKFILL RATE 0)")
    assert auction.status("late") == ("paused", None)
    auction.run("ALTER SOURCE a RESET (BACKFILL RATE)")
    with auction.catalog.write() as session:
        job_rows.set_state(session, job, "failed", expect={"running"}, error="it is too large")
    assert auction.status("late") == ("failed", "its backfill failed: it is too large")
    assert auction.status("a") == ("running", None)
    assert auction.history(auction.id("late")) == ["starting", "running", "paused", "running", "failed"]


def test_an_old_style_source_is_as_its_output_is(described: Described) -> None:
    described.run(
        "ALTER SYSTEM SET force_source_table_syntax = false",
        "CREATE SOURCE c FROM LOAD GENERATOR COUNTER ENVELOPE NONE",
        "CREATE SOURCE l FROM LOAD GENERATOR AUCTION FOR TABLES (bids)",
    )
    running = Running(described, "c")
    running.becomes("running")
    tick = running.mint({0: 5})
    (output,) = [member.table_id for member in running.store.members()]
    running.commit(tick, outcomes={output: Left("the disk is full")})
    assert described.status("c") == ("stalled", "the disk is full")
    types = {row["name"]: row["type"] for row in described.query("SELECT name, type FROM mz_source_statuses")}
    assert types == {"c": "load-generator", "l": "load-generator", "bids": "subsource"}


def test_a_rename_is_no_change_of_status_and_hints_have_the_new_name(auction: Described) -> None:
    before = auction.one("SELECT last_status_change_at AS t FROM mz_source_statuses WHERE name = 'a'")
    auction.run("ALTER SOURCE a RENAME TO b")
    after = auction.one("SELECT last_status_change_at AS t, details FROM mz_source_statuses WHERE name = 'b'")
    assert after["t"] == before["t"]
    assert "public.b" in after["details"]


def test_the_history_is_pruned_by_age_and_the_last_change_stays(auction: Described, tmp_path: Path) -> None:
    source, running = auction.id("a"), Running(auction, "a")
    running.becomes("running")
    running.tick({BIDS: 1})
    auction.run("CREATE TABLE gone FROM SOURCE a (REFERENCE users)")
    gone = auction.id("gone")
    auction.run("DROP TABLE gone")
    told = auction.history(source)
    assert len(told) > 1

    def maintained(days: float) -> list[str]:
        maintain(auction.catalog, str(tmp_path), now_ms=wall_ms() + round(days * DAY))
        return auction.history(source)

    assert maintained(29) == told
    auction.run("ALTER SYSTEM SET status_history_retention = '60 days'")
    assert maintained(31) == told
    auction.run("ALTER SYSTEM RESET status_history_retention")
    assert maintained(31) == [told[-1]]
    assert auction.history(gone) == []
    assert auction.status("a")[0] == told[-1]


def test_backfills_show_who_has_an_app_and_who_waits_at_which_place(auction: Described) -> None:
    Running(auction, "a").tick({BIDS: 10})
    auction.run("CREATE SOURCE b FROM LOAD GENERATOR AUCTION", "CREATE TABLE x FROM SOURCE b (REFERENCE bids)")
    Running(auction, "b").tick({BIDS: 10})
    for name, source in (("one", "a"), ("two", "a"), ("three", "b"), ("four", "a")):
        auction.run(f"CREATE TABLE {name} FROM SOURCE {source} (REFERENCE bids)")
    with auction.catalog.write() as session:
        one, two, three, four = sorted(active_backfills(session), key=lambda found: int(found.tables[0].table_id[1:]))
        for place, waiting in ((7, two), (5, three)):
            enter_queue(session, waiting.source_id, waiting.id, since=place)
        job = job_rows.create_job(
            session, kind="backfill", source_id=one.source_id, launcher="process", folder="", backfill_id=one.id
        )
    rows = auction.query("SELECT id, source_id, tables, state, queue_place, queue_length, job_id FROM mz_backfills")
    told = {row.pop("id"): tuple(row.values()) for row in rows}
    a, b = auction.id("a"), auction.id("b")
    assert told == {
        one.id: (a, 1, "running", None, None, job),
        two.id: (a, 1, "queued", 2, 2, None),
        three.id: (b, 1, "queued", 1, 2, None),
        four.id: (a, 1, "waiting", None, None, None),
    }
    before = auction.history(auction.id("two"))
    assert auction.status("two") == ("starting", None), "a place changes too often to be a status"
    row = auction.one("SELECT details FROM mz_source_statuses WHERE name = 'two'")
    assert json.loads(row["details"]) == {"hints": ["mzshare wait public.two"]}
    with auction.catalog.write() as session:
        job_rows.set_state(session, job, "failed", expect=ACTIVE, error="no memory")
        enter_queue(session, a, one.id)
    assert auction.status("one") == ("failed", "its backfill failed: no memory"), "without its place"
    with auction.catalog.write() as session:
        items.set_desired(session, b, "stopped")
    assert auction.one(f"SELECT queue_place FROM mz_backfills WHERE id = '{two.id}'")["queue_place"] == 1
    assert auction.history(auction.id("two")) == before
