"""Tables that arrive later, in the catalog: shared backfills, progress, cutover, certificates, healing, replacement."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills, last_backfill
from airflow_provider_mzshare.control.catalog.log.leases import give_up_lease
from airflow_provider_mzshare.control.catalog.log.members import CatalogMember
from airflow_provider_mzshare.control.catalog.log.merging import mergeable
from airflow_provider_mzshare.control.catalog.log.queue import enter_queue, queue
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate, certificates, last_certificate
from airflow_provider_mzshare.control.catalog.queries.overviews import arrival_overviews
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.control.supervision import observation
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, Outcome, Tick, Unindexed, Written
from airflow_provider_mzshare.core.ticklog.stores import Reading
from airflow_provider_mzshare.errors import Fenced, LogConflict, NotReadable, NotResumable
from tests.support.catalog import TABLE, Log, add_source, add_tables, wrote_all


class Backfiller:
    """A backfill with its store and a holder, to execute groups with. Versions are counted for all collections."""

    def __init__(
        self, catalog: Catalog, source_id: ItemId, backfill_id: BackfillId | None, job: str = "fill-1"
    ) -> None:
        assert backfill_id is not None
        self.id = backfill_id
        self.store = CatalogBackfillStore(catalog, source_id, backfill_id)
        self.holder: Holder = self.store.claim(JobId("fill-1"))
        self.version = 100

    def group(self, first: int, count: int, *tables: ItemId, rows: int = 5) -> Tick:
        """Execute ``count`` ticks from ``first`` on, in one commit for each table's data."""
        ticks = self.store.ticks(first, count)
        self.version += 1
        outcomes: dict[ItemId, Outcome] = {
            member.table_id: self._wrote(member, ticks[0], ticks[-1], rows) for member in self.store.members(tables)
        }
        self.store.follow(self.holder, first=first, last=ticks[-1], outcomes=outcomes, stats={"busy_ms": 20})
        return ticks[-1]

    def _wrote(self, member: CatalogMember, first: Tick, last: Tick, rows: int) -> Done:
        times = (last.number, last.mz_timestamp, first.mz_timestamp)
        return Done((Written(member.data, self.version, rows, f"{2**128 - 3:032x}", *times),), rows)


@pytest.fixture
def source(catalog: Catalog) -> ItemId:
    source_id = add_source(catalog)
    add_tables(catalog, source_id, "early")
    return source_id


@pytest.fixture
def log(catalog: Catalog, source: ItemId) -> Log:
    """Three ticks with data, all of them in the one live table."""
    log = Log(catalog, source)
    for version in (1, 2, 3):
        tick = log.mint()
        log.commit(tick, wrote_all(log.store.members(), version))
    return log


def arm(catalog: Catalog, table_id: ItemId, max_lag: int = 1) -> bool:
    with catalog.write() as session:
        return arrivals.arm_table(session, table_id, max_lag=max_lag)


def backfill_of(catalog: Catalog, table_id: ItemId) -> BackfillId | None:
    with catalog.read() as session:
        return last_backfill(session, table_id)


def test_tables_of_one_transaction_share_a_backfill_and_others_do_not(catalog: Catalog, log: Log) -> None:
    a, b = add_tables(catalog, log.source_id, "a", "b")
    (c,) = add_tables(catalog, log.source_id, "c")
    with catalog.read() as session:
        first, second = active_backfills(session, log.source_id)
    assert [arrival.table_id for arrival in first.tables] == [a, b]
    assert [arrival.table_id for arrival in second.tables] == [c]
    assert (first.history_tick, first.history_upper) == (3, Position({"0": 3}))


def test_a_table_arrives_and_is_cut_over_where_it_stands(catalog: Catalog, log: Log) -> None:
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    assert not arm(catalog, late)
    fill.group(1, 2, late)
    assert not arm(catalog, late, max_lag=10), "its history is not complete"
    fill.group(3, 1, late)
    log.tick()
    assert arm(catalog, late)
    assert not arm(catalog, late), "it is armed already"
    log.tick()
    assert log.store.load().tables[late].status == "converging"
    fill.group(4, 2, late, rows=7)
    cut = log.mint()
    state = log.store.load()
    assert late in state.members
    assert (state.tables[late].status, state.tables[late].backfill_id, state.backfills) == ("live", None, {})
    with catalog.read() as session:
        proof = last_certificate(session, late)
        assert active_backfills(session) == []
        assert certificates(session) == [proof]
    assert proof is not None
    assert (proof.tick, proof.from_tick, proof.history_tick) == (cut.number, 1, 3)
    assert (proof.start, proof.history_upper, proof.cutover) == (Position(), Position({"0": 3}), Position({"0": 5}))
    assert (proof.rows, proof.errors, proof.table, proof.source) == (17, 0, "late", "s")
    assert proof.data_hash == f"{(2**128 - 9):032x}"
    assert (proof.ingestion_job, proof.generation) == ("job-1", 1)
    assert Certificate.from_json(proof.to_json()) == proof
    with pytest.raises(Fenced, match="over"):
        fill.store.beat(fill.holder)


def test_an_empty_tick_completes_a_cutover(catalog: Catalog, log: Log) -> None:
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    log.empty()
    fill.group(1, 3, late)
    assert arm(catalog, late, max_lag=0), "an empty tick brings nothing, so it is no lag"
    tick = log.empty()
    table = log.store.load().tables[late]
    assert (table.status, table.upper) == ("live", tick.mz_timestamp + 1)


def test_a_table_that_stalls_where_it_joins_goes_on_there_and_not_at_the_empty_ticks_before(
    catalog: Catalog, log: Log
) -> None:
    """What a stalled table has of its tick was written by that tick's spec, and RESUME takes it from next_tick."""
    (early,) = log.store.load().members
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    with catalog.write() as session:
        backfill_id = arrivals.resnapshot_table(session, early)
    replacement = Backfiller(catalog, log.source_id, backfill_id)
    fill.group(1, 3, late)
    replacement.group(1, 3, early)
    log.empty()
    assert arm(catalog, late)
    assert arm(catalog, early)
    cut = log.tick(outcomes={late: Left("full"), early: Left("full")})
    tables = log.store.load().tables
    found = [(tables[one].status, tables[one].next_tick) for one in (late, early)]
    assert found == [("stalled", cut.number), ("stalled", cut.number)]


def test_a_backfill_ahead_of_the_tick_that_is_being_written_is_cut_over_by_the_next(catalog: Catalog, log: Log) -> None:
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    pending = log.mint()
    fill.group(1, 4, late)
    assert arm(catalog, late)
    with catalog.read() as session:
        assert table_read_point(session, late).tick == pending.number
    log.commit(pending)
    assert late not in log.store.load().members
    assert log.mint().number == 5
    assert late in log.store.load().members


def test_without_a_snapshot_a_table_begins_where_the_log_ends(catalog: Catalog, log: Log) -> None:
    pending = log.mint()
    with catalog.write() as session:
        late = items.create_table(session, name=("public", "late"), source_id=log.source_id, spec=TABLE, snapshot=False)
    log.commit(pending)
    assert log.store.load().tables[late].position == pending.upper
    tick = log.tick()
    table = log.store.load().tables[late]
    assert (table.status, table.since, table.start) == ("live", tick.mz_timestamp, pending.upper)


def test_who_lost_the_lease_moves_nothing(catalog: Catalog, log: Log) -> None:
    (late,) = add_tables(catalog, log.source_id, "late")
    zombie = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    heir = CatalogBackfillStore(catalog, log.source_id, zombie.id)
    holder = heir.claim(JobId("fill-2"), stood_still=heir.lease())
    with pytest.raises(Fenced):
        zombie.group(1, 1, late)
    assert log.store.load().tables[late].next_tick == 1
    zombie.holder = holder
    zombie.group(1, 1, late)
    with pytest.raises(LogConflict, match="goes on at tick 2"):
        zombie.group(1, 1, late)


def test_one_table_of_a_backfill_may_stall_and_the_others_go_on(catalog: Catalog, log: Log) -> None:
    a, b = add_tables(catalog, log.source_id, "a", "b")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, a))
    last = fill.store.ticks(1, 2)[-1]
    fill.store.follow(fill.holder, first=1, last=last, outcomes={a: Left("full"), b: Done()}, stats={})
    state = log.store.load()
    assert (state.tables[a].status, state.tables[a].reason, state.tables[a].next_tick) == ("stalled", "full", 1)
    assert state.tables[b].next_tick == 3
    with catalog.write() as session:
        again = arrivals.resume_table(session, a)
    assert again != fill.id
    assert log.store.load().tables[a].status == "backfilling"
    with pytest.raises(NotResumable, match=f"backfill {again} brings it up already"), catalog.write() as session:
        arrivals.resume_table(session, a)


def test_a_heal_changes_no_answer_and_refuses_times_inside_its_groups(catalog: Catalog, log: Log) -> None:
    (early,) = log.store.load().members
    points = [_versions(catalog, early, number) for number in (1, 2, 3)]
    log.tick(outcomes={early: Left("full")})
    log.tick()
    log.tick()
    with catalog.write() as session:
        backfill_id = arrivals.resume_table(session, early)
    fill = Backfiller(catalog, log.source_id, backfill_id)
    fill.group(4, 3, early)
    assert [_versions(catalog, early, number) for number in (1, 2, 3)] == points
    assert _versions(catalog, early, 6) == (101, 3)
    with pytest.raises(NotReadable, match=r"wrote the ticks from .* together"):
        _versions(catalog, early, 5)
    assert arm(catalog, early)
    log.tick()
    assert log.store.load().tables[early].status == "live"
    assert [_versions(catalog, early, number) for number in (1, 2, 3)] == points


def test_a_replacement_is_swapped_in_at_the_cutover_and_old_answers_stay(catalog: Catalog, log: Log) -> None:
    (early,) = log.store.load().members
    old = log.member(early)
    points = [_versions(catalog, early, number) for number in (1, 2, 3)]
    with catalog.write() as session:
        backfill_id = arrivals.resnapshot_table(session, early)
    with pytest.raises(NotResumable, match=f"backfill {backfill_id} brings it up already"), catalog.write() as session:
        arrivals.resnapshot_table(session, early)
    fill = Backfiller(catalog, log.source_id, backfill_id)
    (new,) = fill.store.members([early])
    assert (new.generation, new.data == old.data) == (2, False)
    fill.group(1, 3, early, rows=50)
    log.tick()
    assert [_versions(catalog, early, number) for number in (1, 2, 3)] == points
    fill.group(4, 1, early, rows=1)
    assert arm(catalog, early)
    assert log.member(early).data == old.data
    both = log.store.generations({(early, 1), (early, 2)})
    assert [(one.generation, one.data) for one in both] == [(1, old.data), (2, new.data)]
    cut = log.mint()
    assert log.member(early).data == new.data
    log.commit(cut)
    assert [_versions(catalog, early, number) for number in (1, 2, 3)] == points
    with catalog.read() as session:
        assert table_read_point(session, early, tick=4).data == old.data
        assert table_read_point(session, early).data == new.data
        item = items.get_table_item(session, early)
        proof = last_certificate(session, early)
    assert (item.generation, item.rows, item.status) == (2, 51, "live")
    assert proof is not None
    assert (proof.generation, proof.rows) == (2, 51)


def test_a_stalled_table_that_is_replaced_answers_up_to_its_stall_and_from_the_swap_on(
    catalog: Catalog, log: Log
) -> None:
    (early,) = log.store.load().members
    log.tick(outcomes={early: Left("full")})
    with catalog.write() as session:
        backfill_id = arrivals.resnapshot_table(session, early)
    fill = Backfiller(catalog, log.source_id, backfill_id)
    fill.group(1, 4, early)
    assert arm(catalog, early)
    swap = log.mint()
    with catalog.read() as session:
        assert table_read_point(session, early).tick == 3, "the old one answers until the swap is committed"
    log.commit(swap)
    assert log.store.load().tables[early].status == "live"
    assert _versions(catalog, early, 3) == (3, 3)
    with pytest.raises(NotReadable, match="has no data as of"):
        _versions(catalog, early, 4)
    assert _versions(catalog, early, swap.number) == (101, 0)


def test_a_retired_backfill_leaves_tables_to_resume_and_gives_replacements_up(catalog: Catalog, log: Log) -> None:
    (early,) = log.store.load().members
    (late,) = add_tables(catalog, log.source_id, "late")
    with catalog.write() as session:
        beside = arrivals.resnapshot_table(session, early)
        assert arrivals.retire_backfill(session, beside) == [early]
    first = backfill_of(catalog, late)
    assert first is not None
    with catalog.write() as session:
        assert arrivals.retire_backfill(session, first) == [late]
        assert arrivals.retire_backfill(session, first) == []
    state = log.store.load()
    assert (state.tables[early].status, state.replacements) == ("live", {})
    assert state.tables[late].status == "stalled"
    with catalog.write() as session:
        assert arrivals.resume_table(session, late) != first


def test_a_replacement_that_stalled_is_given_up_with_its_backfill(catalog: Catalog, log: Log) -> None:
    """Its table is live: it must not be told as failed for ever."""
    (early,) = log.store.load().members
    with catalog.write() as session:
        first = arrivals.resnapshot_table(session, early)
    fill = Backfiller(catalog, log.source_id, first)
    last = fill.store.ticks(1, 3)[-1]
    fill.store.follow(fill.holder, first=1, last=last, outcomes={early: Left("history is gone")}, stats={})
    with catalog.write() as session:
        second = arrivals.resume_table(session, early)
        assert arrivals.retire_backfill(session, first) == [], "another backfill fills it now"
    assert log.store.load().replacements[early].status == "backfilling"
    heir = Backfiller(catalog, log.source_id, second)
    heir.store.follow(heir.holder, first=1, last=last, outcomes={early: Left("history is gone")}, stats={})
    with catalog.write() as session:
        assert arrivals.retire_backfill(session, second) == [early]
    state = log.store.load()
    assert (state.tables[early].status, state.replacements) == ("live", {})


def test_dropped_in_the_middle_and_made_anew_under_the_same_name(catalog: Catalog, log: Log) -> None:
    (old,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, old))
    fill.group(1, 2, old)
    before = fill.store.members([old])
    with catalog.write() as session:
        items.drop_table(session, old)
    (new,) = add_tables(catalog, log.source_id, "late")
    assert new != old
    with pytest.raises(Fenced):
        fill.store.follow(fill.holder, first=3, last=fill.store.ticks(3, 1)[0], outcomes={old: Done()}, stats={})
    again = Backfiller(catalog, log.source_id, backfill_of(catalog, new))
    assert {m.data for m in again.store.members([new])}.isdisjoint(m.data for m in before)
    assert log.store.load().tables[new].next_tick == 1


def _versions(catalog: Catalog, table_id: ItemId, tick: int) -> tuple[int, int]:
    with catalog.read() as session:
        point = table_read_point(session, table_id, tick=tick)
    return point.data_version, point.errors_version


def test_progress_within_a_group_grows_and_never_goes_back(catalog: Catalog, log: Log) -> None:
    """Not when a run begins its group anew, nor when that is cut smaller, nor by what comes late."""
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    seen: list[tuple[int, int]] = []

    def look() -> tuple[int, int, float | None, int]:
        with catalog.read() as session:
            found = arrival_overviews(session, log.source_id)[late]
        seen.append((found.done, found.total))
        return found.done, found.total, found.rate, found.samples

    def read(first: int, records: int) -> None:
        fill.store.note_reading(fill.holder, Reading(first, frozenset({late}), records))

    assert look() == (0, 3, None, 0)
    read(1, 2)
    assert look() == (2, 3, None, 0), "before the first group is done"
    fill.holder = fill.store.claim(JobId("fill-2"), stood_still=fill.store.lease())
    read(1, 1)
    assert look()[:2] == (2, 3), "another run has begun it anew"
    fill.group(1, 1, late)
    assert look() == (2, 3, 50.0, 1), "a smaller group than the one that was begun"
    read(1, 3)
    assert look()[:2] == (2, 3), "it is about a group that is done"
    log.tick()
    fill.group(2, 2, late)
    read(4, 1)
    assert look()[:2] == (4, 4)
    assert arm(catalog, late)
    log.empty()
    assert look()[:2] == (4, 4), "an empty tick adds nothing"
    fill.group(4, 2, late)
    assert look()[:2] == (4, 4)
    assert seen == sorted(seen)
    with pytest.raises(Fenced):
        fill.store.note_reading(Holder(JobId("fill-1"), 1), Reading(6, frozenset({late}), 9))


def test_a_group_of_empty_ticks_is_no_measure_of_a_rate(catalog: Catalog, log: Log) -> None:
    (late,) = add_tables(catalog, log.source_id, "late")
    fill = Backfiller(catalog, log.source_id, backfill_of(catalog, late))
    fill.group(1, 3, late)
    log.empty()
    log.tick()
    fill.group(4, 1, late)
    with catalog.read() as session:
        found = arrival_overviews(session, log.source_id)[late]
    assert (found.rate, found.samples) == (75.0, 1)


# ── without an index ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_member_without_an_index_is_brought_on_by_its_source_s_app_and_by_no_other(
    catalog: Catalog, source: ItemId, log: Log
) -> None:
    (early,) = (member.table_id for member in log.store.members())
    (other,) = add_tables(catalog, source, "other")
    upper = log.store.load().tables[early].upper
    tick = log.tick(outcomes={early: Unindexed()})
    state = log.store.load()
    table = state.tables[early]
    assert (table.status, table.next_tick, table.reason) == ("indexing", tick.number, None)
    assert table.upper == upper, "what it had can be read"
    (inside,) = backfill_rules.inside(state)
    waiting = state.tables[other].backfill_id
    with catalog.write() as session:
        assert [one.id for one in active_backfills(session)] == [waiting]
        for one in (inside, waiting):
            assert one is not None
            enter_queue(session, source, one)
        assert [one.backfill_id for one in queue(session)] == [waiting]
        assert mergeable(session, state) == []
    tables, _, _ = _backfills(catalog, source)
    assert set(tables) == {waiting}
    with catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source, launcher="process", folder="", job_id=JobId("fill-1"))
    follower = Backfiller(catalog, source, inside)
    with catalog.write() as session:
        give_up_lease(session, jobs.get_job(session, JobId("fill-1")))
    with pytest.raises(Fenced):
        follower.group(tick.number, 1, early)
    follower = Backfiller(catalog, source, inside)
    follower.group(tick.number, 1, early)
    joined = log.empty()
    assert log.store.load().tables[early].status == "live"
    assert inside not in log.store.load().backfills
    with catalog.read() as session:
        proof = last_certificate(session, early)
    assert proof is not None
    assert (proof.tick, proof.from_tick, proof.rows) == (joined.number, tick.number, 5)


def _backfills(catalog: Catalog, source: ItemId) -> tuple[dict[BackfillId, object], object, object]:
    with catalog.read() as session:
        names = {table.id: table.name[1] for table in items.list_tables(session, source)}
        return observation._backfills(session, source, names)  # type: ignore[return-value]
