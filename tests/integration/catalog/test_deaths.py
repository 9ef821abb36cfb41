"""A backfill whose app dies time after time, in the catalog: its tables part, and one that is alone stalls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfills import Backfill, active_backfills
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.control.lifecycle.converged_wait import Question, look
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.ticklog.state import SourceState
from airflow_provider_mzshare.errors import Fenced, UnknownItem
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import SOURCE, TABLE, Log, add_source, add_tables


def isolate(catalog: Catalog, backfill: Backfilling) -> list[ItemId]:
    with catalog.write() as session:
        return list(arrivals.isolate_tables(session, backfill.id, backfill.job))


def abandon(catalog: Catalog, backfill: Backfilling, reason: str = "it died 5 times") -> list[ItemId]:
    with catalog.write() as session:
        return list(arrivals.abandon_tables(session, backfill.id, backfill.job, reason))


def active(catalog: Catalog) -> list[Backfill]:
    with catalog.read() as session:
        return list(active_backfills(session))


def three_arrivals(catalog: Catalog) -> tuple[Log, dict[str, ItemId]]:
    """Two late tables and a new generation of a live one, asked for together: one backfill for all of them."""
    source_id = add_source(catalog)
    (live,) = add_tables(catalog, source_id, "live")
    log = Log(catalog, source_id)
    for _ in range(3):
        log.tick()
    with catalog.write() as session:
        a, b = (items.create_table(session, name=("public", n), source_id=source_id, spec=TABLE) for n in "ab")
        arrivals.resnapshot_table(session, live)
    return log, {"a": a, "b": b, "live": live}


def test_each_table_goes_on_where_it_stands_in_a_backfill_of_its_own(catalog: Catalog) -> None:
    log, tables = three_arrivals(catalog)
    shared = Backfilling(catalog, log.source_id)
    shared.follow(ticks=2)
    shared.end("lost", "its process is gone")
    assert set(isolate(catalog, shared)) == set(tables.values())
    found = active(catalog)
    assert shared.id not in {backfill.id for backfill in found}
    assert {backfill.tables[0].table_id for backfill in found} == set(tables.values())
    assert [len(backfill.tables) for backfill in found] == [1, 1, 1]
    assert {(a.status, a.next_tick, a.from_tick) for b in found for a in b.tables} == {("backfilling", 3, 3)}
    assert {a.replaces for b in found for a in b.tables if a.table_id == tables["live"]} == {True}
    with pytest.raises(Fenced, match="over"):
        shared.store.beat(shared.holder)
    assert isolate(catalog, shared) == [], "somebody else was faster"


def test_parted_tables_are_cut_over_one_by_one_each_with_its_proof(catalog: Catalog) -> None:
    log, tables = three_arrivals(catalog)
    shared = Backfilling(catalog, log.source_id)
    shared.follow()
    shared.arm()
    shared.end("failed", "out of memory")
    isolate(catalog, shared)
    log.tick()
    state = log.store.load()
    assert not state.members & {tables["a"], tables["b"]}, "none was cut over behind the back of its new backfill"
    for number, backfill in enumerate(active(catalog)):
        alone = Backfilling(catalog, log.source_id, job=f"alone-{number}", backfill_id=backfill.id)
        alone.follow()
        alone.arm()
    log.tick()
    state = log.store.load()
    assert state.members == set(tables.values())
    assert (state.backfills, state.replacements) == ({}, {})
    with catalog.read() as session:
        proofs = [last_certificate(session, table_id) for table_id in tables.values()]
    assert len({proof.backfill_id for proof in proofs if proof}) == 3


def test_a_table_that_is_alone_stalls_with_the_reason_and_whoever_waits_is_told_at_once(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)
    backfill.follow(ticks=1)
    backfill.end("lost", "its process is gone")
    [question] = waiting = [Question("late")]
    assert not look(catalog, waiting)[question].ends
    assert abandon(catalog, backfill) == [late]
    table = log.store.load().tables[late]
    assert (table.status, table.reason, table.backfill_id, table.next_tick) == ("stalled", "it died 5 times", None, 2)
    error = look(catalog, waiting)[question].error
    assert error is not None
    assert error.message == "table late is stalled: it died 5 times"
    assert error.hint == ("mzshare sql 'ALTER TABLE late RESUME', when the cause is gone; mzshare logs late shows more")
    assert active(catalog) == []
    with catalog.write() as session:
        again = arrivals.resume_table(session, late)
        assert jobs.last_jobs(session, log.source_id, backfill_id=again) == [], "nothing is held against it"
    assert not look(catalog, waiting)[question].ends


def test_a_new_generation_stalls_likewise_and_the_current_one_goes_on(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    [table] = add_tables(catalog, source_id, "t")
    log = Log(catalog, source_id)
    log.tick(10)
    with catalog.write() as session:
        arrivals.resnapshot_table(session, table)
    backfill = Backfilling(catalog, source_id)
    backfill.end("lost", "its process is gone")
    assert abandon(catalog, backfill) == [table]
    log.tick()
    state = log.store.load()
    assert (state.tables[table].status, state.replacements[table].status) == ("live", "stalled")
    [question] = waiting = [Question("t")]
    error = look(catalog, waiting)[question].error
    assert error is not None
    assert error.message == "the new generation of table t is stalled: it died 5 times"
    with catalog.write() as session:
        arrivals.resume_table(session, table)
    assert log.store.load().replacements[table].status == "backfilling"


@pytest.mark.parametrize("give_up", [isolate, abandon])
def test_nothing_is_taken_from_an_app_that_was_started_since_or_that_lives(
    catalog: Catalog, give_up: Callable[..., list[ItemId]]
) -> None:
    log, [a, b] = add_late_tables(catalog, "a", "b")
    backfill = Backfilling(catalog, log.source_id)
    assert give_up(catalog, backfill) == [], "it lives"
    backfill.end("lost", "its process is gone")
    dead, backfill.job = backfill.job, backfill.launch("backfill-2")
    alive, backfill.job = backfill.job, dead
    assert give_up(catalog, backfill) == [], "another one lives"
    backfill.job = alive
    backfill.end("lost", "its process is gone")
    backfill.job = dead
    assert give_up(catalog, backfill) == [], "another one died since: whoever looks next decides"
    assert _statuses(log.store.load(), a, b) == ["backfilling", "backfilling"]
    with pytest.raises(UnknownItem), catalog.write() as session:
        arrivals.isolate_tables(session, BackfillId("b-nope"), JobId("j"))


def test_a_job_keeps_that_it_had_got_on_after_its_end(catalog: Catalog) -> None:
    log, _ = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)
    backfill.end("lost")
    backfill.job = backfill.launch("backfill-2")
    with catalog.write() as session:
        assert jobs.set_state(session, backfill.job, "running", expect={"starting"})
    backfill.end("failed")
    with catalog.read() as session:
        second, first = jobs.last_jobs(session, log.source_id, backfill_id=backfill.id)
    assert first.running_at is None
    assert second.running_at is not None


def test_runs_from_before_the_upgrade_are_not_held_against_their_tables(empty_url: str) -> None:
    catalog = Catalog(empty_url)
    catalog.upgrade("0001")
    source, rest = SOURCE.model_dump_json().replace(":", r"\:"), "'active', NULL, NULL, 'running', 0, NULL, 0"
    job = "id, kind, source_id, state, launcher, folder, created_at, started_at, stop_requested"
    rows = [
        "INSERT INTO items VALUES ('u1', 1, 'source', 'public', 's', 1, NULL)",
        f"INSERT INTO sources VALUES ('u1', '{source}', '{{}}', 'x', '{{}}', {rest})",
        f"INSERT INTO jobs ({job}) VALUES ('lost', 'backfill', 'u1', 'lost', 'process', '', 1, 7, false)",
    ]
    with catalog._writing.begin() as connection:
        for row in rows:
            connection.execute(text(row))
    catalog.upgrade()
    with catalog.read() as session:
        assert jobs.get_job(session, JobId("lost")).running_at == 7
    catalog.close()


def _statuses(state: SourceState, *tables: ItemId) -> list[str]:
    return [state.tables[table_id].status for table_id in tables]
