"""The tick log kept in the catalog: leases, minting, outcomes."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.models import CommitRow, MembershipRow, TickRow
from airflow_provider_mzshare.control.catalog.log.leases import give_up_lease
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Lease, Left
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, LogConflict, UnknownItem, UpstreamChanged
from airflow_provider_mzshare.storage.apps.lease import take_lease
from tests.support.catalog import TABLE, TOPIC_ID, Log, add_source, add_tables, wrote
from tests.support.waiting import wait_until

ONE, TWO = JobId("job-1"), JobId("job-2")


def test_a_lease_is_taken_only_when_it_stood_still_or_was_released(catalog: Catalog) -> None:
    store = CatalogTickStore(catalog, add_source(catalog))
    first = store.claim(ONE)
    seen = store.load().lease
    with pytest.raises(LeaseTaken):
        store.claim(TWO)
    store.beat(first)
    with pytest.raises(LeaseTaken):
        store.claim(TWO, stood_still=seen)
    second = store.claim(TWO, stood_still=store.load().lease)
    assert second.epoch == first.epoch + 1
    store.release(second)
    assert store.claim(ONE).epoch == second.epoch + 1


def test_the_lease_of_a_job_that_is_gone_is_given_up(catalog: Catalog) -> None:
    source = add_source(catalog)
    store = CatalogTickStore(catalog, source)
    with catalog.write() as session:
        for job in (ONE, TWO):
            jobs.create_job(session, kind="ingest", source_id=source, launcher="process", folder="", job_id=job)
    first = store.claim(ONE)
    with catalog.write() as session:
        give_up_lease(session, jobs.get_job(session, TWO))
    store.beat(first)
    with catalog.write() as session:
        give_up_lease(session, jobs.get_job(session, ONE))
    with pytest.raises(Fenced):
        store.beat(first)
    assert store.claim(TWO).epoch == first.epoch + 1


def test_who_waits_for_a_lease_takes_it_as_soon_as_it_is_given_up(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = add_source(catalog)
    store = CatalogTickStore(catalog, source)
    with catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source, launcher="process", folder="", job_id=ONE)
    store.claim(ONE)
    tries: list[JobId] = []
    claim = store.claim

    def counted(job_id: JobId, **how: Lease | None) -> Holder:
        tries.append(job_id)
        return claim(job_id, **how)

    monkeypatch.setattr(store, "claim", counted)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(take_lease, store, TWO, seconds=600, stop=threading.Event())
        wait_until(lambda: len(tries) >= 2, 60, "it to be waiting")
        with catalog.write() as session:
            give_up_lease(session, jobs.get_job(session, ONE))
        assert waiting.result(timeout=60) == Holder(TWO, 2)
    assert time.monotonic() - began < 60


def test_a_lapsed_lease_that_nobody_took_stays_valid(catalog: Catalog) -> None:
    log = Log(catalog, add_source(catalog))
    seen = log.store.load().lease
    assert log.tick().number == 1
    log.store.beat(log.holder)
    assert log.store.load().lease.beat == seen.beat + 1


@pytest.mark.parametrize("fenced", [Holder(ONE, 1), Holder(TWO, 1), Holder(ONE, 2), Holder(JobId("job-3"), 2)])
def test_only_job_and_epoch_together_may_write(catalog: Catalog, fenced: Holder) -> None:
    source = add_source(catalog)
    add_tables(catalog, source, "t")
    log = Log(catalog, source)
    tick = log.mint()
    log.holder = log.store.claim(TWO, stood_still=log.store.load().lease)
    assert log.holder == Holder(TWO, 2)
    before = log.store.load()
    attempts = [
        lambda: log.store.beat(fenced),
        lambda: log.store.release(fenced),
        lambda: log.store.mint(fenced, lower=tick.upper, upper=tick.upper, incarnation=TOPIC_ID),
        lambda: log.store.mint_empty(fenced, at=tick.upper, incarnation=TOPIC_ID),
        lambda: log.store.begin_attempt(fenced, 1),
        lambda: log.store.spare_attempt(fenced, 1),
        lambda: log.store.suspect(fenced, 1, None),
        lambda: log.store.commit(fenced, 1, {ItemId("u2"): Done()}, {}),
        lambda: log.store.stall(fenced, "x", "y"),
    ]
    for attempt in attempts:
        with pytest.raises(Fenced):
            attempt()
    assert log.store.load() == before


def test_a_minted_tick_is_there_before_it_is_executed(catalog: Catalog) -> None:
    source = add_source(catalog, start=Position({"0": 3}))
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    tick = log.mint(records=4)
    assert (tick.number, tick.lower, tick.upper) == (1, Position({"0": 3}), Position({"0": 7}))
    again = CatalogTickStore(catalog, source)
    assert again.load().pending == (tick,)
    assert again.load().tables[table].status == "live"
    assert again.load().tables[table].upper == 0
    assert again.knows(tick.mz_timestamp)
    assert not again.knows(tick.mz_timestamp + 1)
    with pytest.raises(LogConflict):
        log.mint()


def test_mint_refuses_what_does_not_fit_the_log(catalog: Catalog) -> None:
    log = Log(catalog, add_source(catalog))
    log.tick(records=5)
    here, back, ahead = Position({"0": 5}), Position({"0": 4}), Position({"0": 9})
    for lower, upper, topic, refusal in [
        (back, ahead, TOPIC_ID, LogConflict),
        (ahead, ahead, TOPIC_ID, LogConflict),
        (here, back, TOPIC_ID, LogConflict),
        (here, ahead, "another", UpstreamChanged),
    ]:
        with pytest.raises(refusal):
            log.store.mint(log.holder, lower=lower, upper=upper, incarnation=topic)
    assert log.store.load().pending == ()


def test_times_grow_whatever_the_clock_says(catalog: Catalog) -> None:
    source = add_source(catalog)
    clock = iter([5_000, 5_001, 9, 9, 9, 9, 6_000, 6_001])
    log = Log(catalog, source)
    log.store = CatalogTickStore(catalog, source, clock=lambda: next(clock))
    times = [log.tick().mz_timestamp for _ in range(4)]
    assert times == [5_000, 5_001, 5_002, 6_000]


def test_members_carry_all_a_writer_needs(catalog: Catalog) -> None:
    source = add_source(catalog)
    tables = add_tables(catalog, source, *(f"t{number}" for number in range(11)))
    log = Log(catalog, source)
    assert log.store.members() == []
    log.mint()
    members = log.store.members()
    assert [member.table_id for member in members] == tables
    assert {(member.name, member.spec) for member in members} == {(f"t{n}", TABLE) for n in range(11)}
    assert len({member.data for member in members} | {member.errors for member in members}) == 22
    assert all((member.data_path, member.errors_path) == (member.data, member.errors) for member in members)
    assert all(f"{member.table_id}-g1-data-" in member.data for member in members)
    assert log.store.settings() == SourceSettings()


def test_a_commit_moves_the_done_members_and_no_other(catalog: Catalog) -> None:
    source = add_source(catalog)
    done, left = add_tables(catalog, source, "done", "left")
    log = Log(catalog, source)
    log.tick()
    member = log.member(done)
    tick = log.tick(outcomes={done: wrote(member, 4, rows=3, errors=2), left: Left("disk full")})
    state = log.store.load()
    assert state.members == {done}
    assert (state.tables[done].upper, state.tables[done].position) == (tick.mz_timestamp + 1, tick.upper)
    assert (state.tables[left].upper, state.tables[left].position) == (tick.mz_timestamp - 20 + 1, tick.lower)
    assert (state.tables[left].status, state.tables[left].reason) == ("stalled", "disk full")
    with catalog.read() as session:
        counted = {table.id: (table.rows, table.errors) for table in items.list_tables(session, source)}
        memberships = session.execute(select(MembershipRow.table_id, MembershipRow.left_at, MembershipRow.reason))
        assert {tuple(row) for row in memberships} == {(done, None, None), (left, 2, "disk full")}
        commits = session.scalars(select(CommitRow).order_by(CommitRow.rows)).all()
        stats = session.scalar(select(TickRow.stats).where(TickRow.number == 2))
    assert counted == {done: (3, 2), left: (0, 0)}
    assert [(c.collection_id, c.tick, c.mz_timestamp, c.version, c.rows, c.hash) for c in commits] == [
        (member.errors, 2, tick.mz_timestamp, 4, 2, "f" * 32),
        (member.data, 2, tick.mz_timestamp, 4, 3, "0" * 32),
    ]
    assert json.loads(stats or "") == {"read_ms": 1.5}
    assert log.store.last_written() == {member.data: tick.mz_timestamp, member.errors: tick.mz_timestamp}


def test_a_stalled_member_that_heals_meanwhile_is_not_moved_by_the_commit(catalog: Catalog) -> None:
    source = add_source(catalog)
    healthy, bad = add_tables(catalog, source, "healthy", "bad")
    log = Log(catalog, source)
    log.tick(outcomes={bad: Left("read-only")})
    before = log.store.load().tables[bad]
    tick = log.mint()
    log.store.commit(log.holder, tick.number, {healthy: Done(), bad: Done()}, {})
    assert log.store.load().tables[bad] == before


def test_a_commit_needs_an_outcome_of_every_member(catalog: Catalog) -> None:
    source = add_source(catalog)
    first, second = add_tables(catalog, source, "a", "b")
    log = Log(catalog, source)
    tick = log.mint()
    with pytest.raises(LogConflict, match=second):
        log.store.commit(log.holder, tick.number, {first: Done()}, {})
    assert log.store.load().pending == (tick,)
    assert log.store.load().tables[first].upper == 0


def test_a_table_dropped_while_a_tick_is_pending_is_not_needed_and_not_moved(catalog: Catalog) -> None:
    source = add_source(catalog)
    gone, stays = add_tables(catalog, source, "gone", "stays")
    log = Log(catalog, source)
    tick = log.mint()
    collection = log.member(gone)
    with catalog.write() as session:
        items.drop_table(session, gone)
    assert [member.table_id for member in log.store.members()] == [stays]
    log.store.commit(log.holder, tick.number, {gone: wrote(collection, 1), stays: Done()}, {})
    with catalog.read() as session:
        assert items.get_table_item(session, gone).upper == 0
        assert items.get_table_item(session, stays).upper == tick.mz_timestamp + 1
    assert log.store.last_written() == {}


def test_a_tick_is_committed_once(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    outcomes = {table: Done(rows=5)}
    tick = log.mint()
    log.store.commit(log.holder, tick.number, outcomes, {})
    with pytest.raises(LogConflict):
        log.store.commit(log.holder, tick.number, outcomes, {})
    with catalog.read() as session:
        assert items.get_table_item(session, table).rows == 5


def test_attempts_and_the_suspect_survive_the_process(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    tick = log.mint()
    assert [log.store.begin_attempt(log.holder, tick.number).attempts for _ in range(3)] == [2, 3, 4]
    log.store.suspect(log.holder, tick.number, table)
    pending = CatalogTickStore(catalog, source).load().pending[0]
    assert (pending.attempts, pending.suspect) == (4, table)
    log.store.suspect(log.holder, tick.number, None)
    assert log.store.load().pending[0].suspect is None
    log.store.spare_attempt(log.holder, tick.number)
    assert CatalogTickStore(catalog, source).load().pending[0].attempts == 3
    log.commit(tick)
    with pytest.raises(LogConflict):
        log.store.begin_attempt(log.holder, tick.number)


def test_an_empty_tick_moves_every_member_at_once(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    first, second = (log.empty() for _ in range(2))
    state = log.store.load()
    assert (first.number, second.number, state.last, state.pending) == (1, 2, second, ())
    assert second.committed
    assert (state.tables[table].since, state.tables[table].upper) == (first.mz_timestamp, second.mz_timestamp + 1)
    log.mint()
    with pytest.raises(LogConflict):
        log.empty()


def test_a_stalled_source_mints_nothing_and_keeps_its_first_reason(catalog: Catalog) -> None:
    log = Log(catalog, add_source(catalog))
    log.store.stall(log.holder, "topic_recreated", "the topic is another one")
    log.store.stall(log.holder, "history_gone", "later")
    with pytest.raises(Fenced, match="stalled"):
        log.mint()
    with catalog.read() as session:
        assert items.get_source_item(session, log.source_id).reason == "topic_recreated"


def test_a_source_that_never_was_is_unknown(catalog: Catalog) -> None:
    store = CatalogTickStore(catalog, ItemId("u77"))
    with pytest.raises(UnknownItem):
        store.load()
    with pytest.raises(UnknownItem):
        store.claim(ONE)


def test_sources_do_not_touch_each_other(catalog: Catalog) -> None:
    first, second = add_source(catalog, "first"), add_source(catalog, "second")
    add_tables(catalog, first, "a")
    add_tables(catalog, second, "b")
    one, two = Log(catalog, first), Log(catalog, second)
    one.tick(records=3)
    one.tick(records=3)
    two.tick(records=1)
    assert (one.store.load().last_number, two.store.load().last_number) == (2, 1)
    assert two.store.load().upper == Position({"0": 1})
