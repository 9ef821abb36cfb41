"""How far tables are from being live, on each kind of database, in one query."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, retire_backfill
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.convergence import Convergence, Key, convergences
from airflow_provider_mzshare.control.catalog.queries.uppers import table_uppers
from airflow_provider_mzshare.control.lifecycle.converged_wait import Question, arm, look
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from tests.integration.catalog.test_cost import counted
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log, add_source, add_tables, wrote


def seen(catalog: Catalog, key: Key) -> Convergence:
    with catalog.read() as session:
        return convergences(session, [key])[key]


def test_a_table_goes_from_backfilling_to_live_and_brings_its_certificate(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    found = seen(catalog, late)
    assert (found.table, found.source, found.status, found.lag, found.behind) == ("late", "s", "backfilling", 3, 30)
    assert not found.history_complete
    assert not found.can_arm(max_lag=100)

    backfill = Backfilling(catalog, log.source_id)
    log.tick(5)
    backfill.follow(ticks=2)
    assert (seen(catalog, late).lag, seen(catalog, late).behind) == (2, 15)
    assert not seen(catalog, late).can_arm(max_lag=2), "its history is not complete"
    backfill.follow(ticks=1)
    found = seen(catalog, late)
    assert found.history_complete
    assert (found.lag, found.can_arm(0), found.can_arm(1)) == (1, False, True)
    assert (found.backfill_id, found.job_id, found.job_state) == (backfill.id, backfill.job, "starting")

    backfill.follow()
    backfill.arm()
    found = seen(catalog, late)
    assert (found.status, found.lag, found.converged, found.cutover_tick) == ("converging", 0, False, None)
    assert not found.can_arm(max_lag=1), "it is armed already"
    assert "converging" in found.progress

    tick = log.tick()
    found = seen(catalog, late)
    assert (found.converged, found.failed, found.cutover_tick) == (True, False, tick.number)
    assert found.certificate is not None
    assert found.certificate.backfill_id == backfill.id


def test_names_and_ids_are_found_in_one_query_whatever_their_number(catalog: Catalog) -> None:
    log, ids = add_late_tables(catalog, *(f"t{number}" for number in range(40)))
    other, _ = add_late_tables(catalog, "elsewhere", source="other")
    Backfilling(catalog, log.source_id)
    keys: list[Key] = [*ids[:20], *(("public", f"t{number}") for number in range(10, 40)), ("public", "elsewhere")]
    catalog.check()
    with counted(catalog) as statements, catalog.read() as session:
        found = convergences(session, keys)
    assert len(statements) == (2 if catalog.is_embedded else 1), "BEGIN is SQLite's"
    assert set(found) == set(keys)
    assert found["public", "t15"] == found[ids[15]]
    assert found["public", "elsewhere"].source_id == other.source_id
    with catalog.read() as session:
        assert convergences(session, []) == {}
        assert convergences(session, [("public", "nobody"), ItemId("u999"), ("public", "s")]) == {}


def test_a_dropped_table_is_known_by_its_id_and_not_by_its_name(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    with catalog.write() as session:
        items.drop_table(session, late)
    [new] = add_tables(catalog, log.source_id, "late")
    with catalog.read() as session:
        found = convergences(session, [late, ("public", "late")])
    assert found[late].error == "table late was dropped"
    assert found["public", "late"].table_id == new
    assert not found["public", "late"].failed


def test_a_stalled_table_tells_its_reason(catalog: Catalog) -> None:
    log, [one, two] = add_late_tables(catalog, "one", "two")
    Backfilling(catalog, log.source_id).follow(left=[one])
    assert seen(catalog, one).error == "table one is stalled: disk on fire"
    assert not seen(catalog, two).failed


def test_a_failed_job_is_a_failure_until_another_follows_and_a_lost_one_is_none(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)
    backfill.end("lost", "no heartbeat")
    assert not seen(catalog, late).failed
    backfill.job = backfill.launch("backfill-2")
    backfill.end("failed", "MissingProgram: no java")
    error = seen(catalog, late).error
    assert error == f"backfill {backfill.id} of table late failed: MissingProgram: no java"
    backfill.launch("backfill-3")
    assert not seen(catalog, late).failed


def test_a_stalled_source_fails_what_arrives_and_not_what_is_live(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    log.store.stall(log.holder, "history_gone", "offsets 0 to 5 are gone")
    assert seen(catalog, late).error == "source s is stalled: offsets 0 to 5 are gone"
    assert not seen(catalog, late).can_arm(100)
    assert seen(catalog, ("public", "s_first")).converged


def test_a_table_that_joins_by_itself_is_awaited_without_a_proof(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    [table] = add_tables(catalog, source_id, "t")
    found = seen(catalog, table)
    assert (found.status, found.converged, found.failed, found.can_arm(9), found.lag) == (
        "created",
        False,
        False,
        False,
        0,
    )
    Log(catalog, source_id).tick()
    assert seen(catalog, table).converged
    [question] = answers = look(catalog, [Question("t")])
    assert answers[question].result == {"table": "t", "status": "live"}


def test_a_new_generation_is_awaited_beside_the_live_one(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    [table] = add_tables(catalog, source_id, "t")
    log = Log(catalog, source_id)
    log.tick(10)
    with catalog.write() as session:
        resnapshot_table(session, table)
    found = seen(catalog, table)
    assert (found.status, found.replacement, found.converged) == ("live", "backfilling", False)
    assert (found.generation, found.awaited, found.lag) == (1, 2, 1)
    question = Question("t", table_id=table, generation=found.awaited)

    backfill = Backfilling(catalog, source_id)
    backfill.follow()
    arm(catalog, look(catalog, [question]))
    assert seen(catalog, table).replacement == "converging"
    log.tick()
    answer = look(catalog, [question])[question]
    assert answer.result is not None
    assert (answer.result["generation"], answer.result["backfill_id"]) == (2, backfill.id)


def test_a_new_generation_that_is_given_up_is_not_taken_for_live(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    [table] = add_tables(catalog, source_id, "t")
    Log(catalog, source_id).tick(10)
    with catalog.write() as session:
        backfill = resnapshot_table(session, table)
    awaited = seen(catalog, table).awaited
    with catalog.write() as session:
        retire_backfill(session, backfill)
    given_up, fresh = Question("t", table_id=table, generation=awaited), Question("t")
    answers = look(catalog, [given_up, fresh])
    assert answers[given_up].error is not None
    assert "given up" in answers[given_up].error.message
    assert answers[fresh].result is not None


def test_questions_about_nothing_are_answered_one_by_one(catalog: Catalog) -> None:
    add_late_tables(catalog, "late")
    answers = look(catalog, [Question("nobody"), Question("no t a name"), Question('"late"'), Question("s")])
    errors = {q.table: a.error.message if a.error else None for q, a in answers.items()}
    assert errors.pop('"late"') is None
    assert "does not exist" in (errors.pop("nobody") or "")
    assert "is not a name" in (errors.pop("no t a name") or "")
    assert "does not exist" in (errors.pop("s") or "")


def test_all_that_can_are_armed_and_a_table_dropped_meanwhile_is_passed_over(catalog: Catalog) -> None:
    log, [a, b] = add_late_tables(catalog, "a", "b")
    other, [c] = add_late_tables(catalog, "c", source="other")
    for source_id in (log.source_id, other.source_id):
        Backfilling(catalog, source_id, job=f"backfill-{source_id}").follow()
    answers = look(catalog, [Question("a"), Question("b"), Question("c")])
    with catalog.write() as session:
        items.drop_table(session, c)
    arm(catalog, answers)
    assert [seen(catalog, t).status for t in (a, b, c)] == ["converging", "converging", "dropped"]


def test_uppers_are_those_of_live_tables(catalog: Catalog) -> None:
    log, [_] = add_late_tables(catalog, "late", ticks=2)
    member = log.store.members()[0]
    tick = log.mint(7)
    log.commit(tick, {member.table_id: wrote(member, version=1, rows=7)})
    with catalog.read() as session:
        found = table_uppers(session)
    assert set(found) == {("public", "s_first")}
    upper = found["public", "s_first"]
    assert (upper.tick, upper.mz_timestamp, upper.rows) == (tick.number, tick.mz_timestamp, 7)
    assert upper.position == Position({"0": 27})
