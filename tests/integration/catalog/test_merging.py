"""Backfills that wait become one in one transaction, and the queue for an app, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.models import BackfillTableRow
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills, find_backfill, last_backfill
from airflow_provider_mzshare.control.catalog.log.merging import merge_backfills, mergeable
from airflow_provider_mzshare.control.catalog.log.queue import enter_queue, leave_queue, places, queue
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog.state import Left
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log, add_tables


def backfill_ids(catalog: Catalog, source_id: ItemId) -> list[BackfillId]:
    with catalog.read() as session:
        return [one.id for one in active_backfills(session, source_id)]


def merge(catalog: Catalog, log: Log) -> list[BackfillId]:
    """All that can be."""
    with catalog.write() as session:
        return list(merge_backfills(session, log.source_id, list(log.store.load().backfills)))


def test_a_merged_backfill_brings_all_its_tables_up_with_a_certificate_each(catalog: Catalog) -> None:
    log, (a,) = add_late_tables(catalog, "a")
    log.tick(10)
    (b,) = add_tables(catalog, log.source_id, "b")
    old, new = backfill_ids(catalog, log.source_id)
    assert merge(catalog, log) == [old, new]
    assert merge(catalog, log) == []
    assert backfill_ids(catalog, log.source_id) == [new]
    with catalog.read() as session:
        assert find_backfill(session, old).tables == ()
        found = find_backfill(session, new)
        assert [(one.table_id, one.from_tick) for one in found.tables] == [(a, 1), (b, 1)]
        assert (found.history_tick, last_backfill(session, a)) == (4, new)
    fill = Backfilling(catalog, log.source_id)
    fill.follow(rows=7)
    fill.arm()
    log.tick()
    with catalog.read() as session:
        proofs = [last_certificate(session, table) for table in (a, b)]
    assert [(proof.backfill_id, proof.rows, proof.history_tick) for proof in proofs if proof] == [(new, 7, 4)] * 2


def test_what_was_started_meanwhile_is_left_out(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "a")
    for name in "bc":
        add_tables(catalog, log.source_id, name)
    first, second, third = backfill_ids(catalog, log.source_id)
    with catalog.write() as session:
        jobs.create_job(
            session, kind="backfill", source_id=log.source_id, launcher="process", folder="", backfill_id=second
        )
    with catalog.write() as session:
        assert list(merge_backfills(session, log.source_id, [first, second])) == [], "no two are left of those"
        assert list(merge_backfills(session, log.source_id, [first, second, third])) == [first, third]
    assert backfill_ids(catalog, log.source_id) == [second, third]


def test_heals_and_new_generations_go_along_and_keep_what_they_had(catalog: Catalog) -> None:
    log, (first,) = add_late_tables(catalog, "late", ticks=1)
    live = log.member(next(iter(log.store.load().members))).table_id
    tick = log.mint(10)
    log.commit(tick, {live: Left("disk on fire")})
    with catalog.write() as session:
        heal = arrivals.resume_table(session, live)
    before = log.store.load().tables[live]
    assert merge(catalog, log)[-1] == heal
    state = log.store.load()
    assert state.tables[live] == before
    assert state.backfills[heal].healing == {live}
    with catalog.read() as session:
        rows = {row.table_id: row for row in session.scalars(select(BackfillTableRow))}
    assert (rows[live].heals, rows[live].from_tick, rows[first].heals, rows[first].from_tick) == (True, 2, False, 1)


def test_retiring_ends_what_was_asked_for_together_and_no_more(catalog: Catalog) -> None:
    """Who retires its own tables knows nothing of others that their backfill was merged with."""
    log, (a, b) = add_late_tables(catalog, "a", "b")
    (c,) = add_tables(catalog, log.source_id, "c")
    merged = merge(catalog, log)[-1]
    with catalog.write() as session:
        assert arrivals.retire_backfill(session, merged, [a]) == [a, b]
    with catalog.read() as session:
        assert [one.table_id for one in find_backfill(session, merged).tables] == [c]
        assert items.get_table_item(session, b).status == "stalled"
    with catalog.write() as session:
        assert arrivals.retire_backfill(session, merged) == [c]


def test_a_table_that_was_split_off_is_never_merged_again(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "a", "b")
    fill = Backfilling(catalog, log.source_id)
    fill.end("failed")
    with catalog.write() as session:
        assert len(arrivals.isolate_tables(session, fill.id, JobId(fill.job))) == 2
    add_tables(catalog, log.source_id, "c")
    add_tables(catalog, log.source_id, "d")
    alone = set(backfill_ids(catalog, log.source_id)[:2])
    with catalog.read() as session:
        (group,) = mergeable(session, log.store.load())
    assert len(group) == 2
    assert not alone & set(group)


class Undo(Exception):
    """Ends a transaction without a trace."""


def test_the_queue_holds_only_those_that_wait(catalog: Catalog) -> None:
    log, (a,) = add_late_tables(catalog, "a")
    other, _ = add_late_tables(catalog, "x", source="t")
    (first,), (second,) = backfill_ids(catalog, log.source_id), backfill_ids(catalog, other.source_id)
    with catalog.write() as session:
        enter_queue(session, other.source_id, second)
        enter_queue(session, log.source_id, first)
        assert [one.backfill_id for one in queue(session)] == [first, second], "the older one, whoever came first"
        enter_queue(session, log.source_id, first, since=2**40 * 4)
        found = {one: str(place) for one, place in places(session).items()}
        assert found == {second: "queued, 1st of 2", first: "queued, 2nd of 2"}
    overs: list[Callable[[Session], object]] = [
        lambda session: leave_queue(session, first),
        lambda session: items.set_desired(session, log.source_id, "stopped"),
        lambda session: items.drop_table(session, a),
        lambda session: arrivals.retire_backfill(session, first),
    ]
    for over in overs:
        with suppress(Undo), catalog.write() as session:
            over(session)
            assert [one.backfill_id for one in queue(session)] == [second]
            raise Undo
