"""Read points, cuts and overviews."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.overviews import source_overview, table_overview, table_overviews
from airflow_provider_mzshare.control.catalog.queries.reads import consistent_cut, table_read_point
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Left
from airflow_provider_mzshare.errors import NotReadable
from tests.support.catalog import TABLE, Log, add_source, add_tables, wrote


@pytest.fixture
def log(catalog: Catalog) -> Log:
    """Ticks 1 to 5 at 1000, 1020, … 1080: data in 2 and 4 (versions 1 and 3), errors in 4."""
    source = add_source(catalog)
    add_tables(catalog, source, "t", "quiet")
    log = Log(catalog, source)
    for number in range(1, 6):
        tick = log.mint(records=10)
        member = log.member(ItemId("u2"))
        written = {2: wrote(member, 1), 4: wrote(member, 3, errors=1)}.get(number)
        log.commit(tick, {member.table_id: written} if written else None)
    return log


TABLE_ID, QUIET = ItemId("u2"), ItemId("u3")


@pytest.mark.parametrize(
    ("as_of", "tick", "data_version", "errors_version"),
    [(1000, 1, 0, 0), (1019, 1, 0, 0), (1020, 2, 1, 0), (1045, 3, 1, 0), (1060, 4, 3, 3), (1080, 5, 3, 3)],
)
def test_a_time_is_answered_by_the_last_tick_at_or_before_it(
    catalog: Catalog, log: Log, as_of: int, tick: int, data_version: int, errors_version: int
) -> None:
    with catalog.read() as session:
        point = table_read_point(session, TABLE_ID, as_of_ms=as_of)
        assert table_read_point(session, TABLE_ID, tick=tick) == point
    assert (point.tick, point.data_version, point.errors_version) == (tick, data_version, errors_version)
    member = log.member(TABLE_ID)
    assert (point.data_path, point.errors_path, point.spec) == (member.data_path, member.errors_path, TABLE)
    assert (point.since, point.upper) == (1000, 1081)


def test_later_ticks_do_not_change_an_answer(catalog: Catalog, log: Log) -> None:
    def answers() -> list[tuple[int, int, int]]:
        with catalog.read() as session:
            points = [table_read_point(session, TABLE_ID, as_of_ms=time) for time in range(1000, 1081)]
        return [(point.tick, point.data_version, point.errors_version) for point in points]

    before = answers()
    log.tick(outcomes={TABLE_ID: wrote(log.member(TABLE_ID), 4)})
    log.mint()
    assert answers() == before


def test_without_a_time_the_newest_committed_tick_answers(catalog: Catalog, log: Log) -> None:
    log.mint()
    with catalog.read() as session:
        assert table_read_point(session, TABLE_ID).tick == 5
        assert table_read_point(session, QUIET).data_version == 0


@pytest.mark.parametrize("as_of", [{"as_of_ms": 999}, {"as_of_ms": 1081}, {"tick": 6}, {"tick": 0}, {"tick": 99}])
def test_outside_of_since_and_upper_nothing_is_read(catalog: Catalog, log: Log, as_of: dict[str, int]) -> None:
    log.mint()
    with pytest.raises(NotReadable), catalog.read() as session:
        table_read_point(session, TABLE_ID, **as_of)


@pytest.mark.parametrize("tick", [0, 2, 6, 12])
def test_a_tick_that_is_not_there_is_told_with_those_that_are(catalog: Catalog, log: Log, tick: int) -> None:
    log.mint()
    with catalog.write() as session:
        session.execute(update(TableRow).where(TableRow.id == TABLE_ID).values(since=1_040))
    with pytest.raises(NotReadable) as caught, catalog.read() as session:
        table_read_point(session, TABLE_ID, tick=tick)
    assert caught.value.line == (f"t cannot be read at tick {tick}: it has ticks 3 to 5. Try: mzshare read t --tick 5")


def test_a_table_without_a_tick_is_not_readable_yet(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    Log(catalog, source).mint()
    with pytest.raises(NotReadable, match="no committed tick"), catalog.read() as session:
        table_read_point(session, table)


def test_a_cut_shows_all_tables_at_one_tick(catalog: Catalog, log: Log) -> None:
    log.tick(outcomes={QUIET: Left("full")})
    log.tick()
    with catalog.read() as session:
        assert [point.tick for point in consistent_cut(session, [TABLE_ID, QUIET])] == [5, 5]
        assert [point.tick for point in consistent_cut(session, [TABLE_ID])] == [7]
        assert [point.tick for point in consistent_cut(session, [QUIET, TABLE_ID], as_of_ms=1030)] == [2, 2]
        assert [point.data_version for point in consistent_cut(session, [QUIET, TABLE_ID], tick=4)] == [0, 3]
        assert consistent_cut(session, []) == []
        with pytest.raises(NotReadable, match=r"as of \d+, the time of tick 6, which is not final yet"):
            consistent_cut(session, [TABLE_ID, QUIET], tick=6)
    with catalog.write() as session:
        session.execute(update(TableRow).where(TableRow.id == TABLE_ID).values(since=TableRow.upper - 1))
    gone = r"t cannot be read as of \d+, the newest time that all of them have, which is gone"
    with pytest.raises(NotReadable, match=gone), catalog.read() as session:
        consistent_cut(session, [TABLE_ID, QUIET])


def test_tables_of_two_sources_have_no_cut(catalog: Catalog, log: Log) -> None:
    other = add_source(catalog, "other")
    (table,) = add_tables(catalog, other, "far")
    Log(catalog, other).tick()
    with pytest.raises(NotReadable, match="t, far come from different sources"), catalog.read() as session:
        consistent_cut(session, [TABLE_ID, table])


def test_the_overview_tells_how_far_and_how_fast(catalog: Catalog, log: Log) -> None:
    pending = log.mint()
    with catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=log.source_id, launcher="process", folder="f")
        newest = jobs.create_job(session, kind="ingest", source_id=log.source_id, launcher="process", folder="f")
    with catalog.read() as session:
        overview = source_overview(session, log.source_id, now_ms=3_090)
    assert overview.position == Position({"0": 50})
    assert overview.last_tick is not None
    assert (overview.last_tick.number, overview.last_tick.stats) == (5, {"read_ms": 1.5})
    assert overview.pending_tick is not None
    assert overview.pending_tick.number == pending.number
    # Commits at 1010, 1030, … 1090, ten offsets each.
    assert (overview.age_ms, overview.rate) == (2_000, 500.0)
    assert (overview.tables, overview.item.lease.job_id) == ({"live": 2}, "job-1")
    assert overview.job is not None
    assert overview.job.id == newest


def test_the_overview_of_a_new_source_is_empty(catalog: Catalog) -> None:
    source = add_source(catalog, start=Position({"0": 3}))
    with catalog.read() as session:
        overview = source_overview(session, source)
    assert (overview.last_tick, overview.pending_tick, overview.age_ms, overview.rate) == (None, None, None, None)
    assert (overview.position, overview.tables, overview.job) == (Position({"0": 3}), {}, None)


def test_the_overview_of_a_table_tells_what_it_lacks(catalog: Catalog, log: Log) -> None:
    log.tick(records=7, outcomes={QUIET: Left("full")})
    log.empty()
    with catalog.read() as session:
        first, second = table_overviews(session, log.source_id)
        assert table_overview(session, QUIET) == second
        assert items.get_table_item(session, QUIET) == second.item
    assert (first.item.rows, first.item.errors, first.behind, first.source) == (6, 1, 0, "s")
    assert (second.item.status, second.item.reason, second.behind) == ("stalled", "full", 7)
