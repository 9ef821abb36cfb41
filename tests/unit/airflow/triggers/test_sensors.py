"""The sensor on a worker: its first look, what it hands to the trigger, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralTimeout,
    TaskDeferred,
)

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.queries.convergence import convergences
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.events import ConvergedEvent
from airflow_provider_mzshare.sensors.offsets import OffsetsConvergedSensor
from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log

NOTHING = Context()


def sensor(table: str = "late", **kwargs: Any) -> OffsetsConvergedSensor:
    return OffsetsConvergedSensor(**{"task_id": "wait", "table": table, "mzshare_conn_id": "mz"} | kwargs)


def status(catalog: Catalog, table_id: ItemId) -> str:
    with catalog.read() as session:
        return convergences(session, [table_id])[table_id].status


def make_live(catalog: Catalog, log: Log) -> None:
    backfill = Backfilling(catalog, log.source_id)
    backfill.follow()
    backfill.arm()
    log.tick()


def test_it_defers_with_what_it_saw(catalog: Catalog) -> None:
    _, [late] = add_late_tables(catalog, "late")
    with pytest.raises(TaskDeferred) as deferred:
        sensor(max_lag=3, poke_interval=7, timeout=90).execute(NOTHING)
    assert isinstance(deferred.value.trigger, OffsetsConvergedTrigger)
    assert deferred.value.trigger.serialize()[1] == {
        "table": "late",
        "max_lag": 3,
        "mzshare_conn_id": "mz",
        "poll_interval": 7,
        "table_id": late,
        "generation": 1,
    }
    assert (deferred.value.method_name, deferred.value.timeout) == ("execute_complete", timedelta(seconds=90))


def test_it_is_deferrable_and_looks_often_unless_told_otherwise() -> None:
    wait = OffsetsConvergedSensor(task_id="wait", table="t")
    assert (wait.deferrable, wait.max_lag, wait.mzshare_conn_id, wait.poke_interval) == (True, 1, "mzshare_default", 1)
    assert set(wait.template_fields) == {"table", "mzshare_conn_id"}


def test_a_live_table_needs_no_deferral(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    make_live(catalog, log)
    certificate = sensor().execute(NOTHING)
    assert (certificate["table_id"], certificate["cutover"]) == (late, {"0": 30})
    assert sensor("s_first").execute(NOTHING) == {"table": "s_first", "status": "live"}


def test_the_first_look_asks_for_the_cutover(catalog: Catalog) -> None:
    log, [late] = add_late_tables(catalog, "late")
    Backfilling(catalog, log.source_id).follow()
    with pytest.raises(TaskDeferred):
        sensor().execute(NOTHING)
    assert status(catalog, late) == "converging"


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_failed_backfill_fails_it_at_once_without_retries(catalog: Catalog, deferrable: bool) -> None:
    log, _ = add_late_tables(catalog, "late")
    Backfilling(catalog, log.source_id).end("failed", "MissingProgram: no java")
    with pytest.raises(AirflowFailException, match=r"no java.*mzshare status late"):
        sensor(deferrable=deferrable).execute(NOTHING)
    for gently in ({"soft_fail": True}, {"never_fail": True}):
        with pytest.raises(AirflowSkipException):
            sensor(deferrable=deferrable, **gently).execute(NOTHING)


def instead_of_pauses(monkeypatch: pytest.MonkeyPatch, turn: Callable[[float], object]) -> None:
    """The sensor's own alone: threads of other tests sleep too."""
    monkeypatch.setattr("airflow.sdk.bases.sensor.time", SimpleNamespace(**{**vars(time), "sleep": turn}))


def test_on_a_worker_it_waits_until_the_table_is_live(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    log, [late] = add_late_tables(catalog, "late")
    backfill = Backfilling(catalog, log.source_id)
    steps = iter([backfill.follow, log.tick])
    # The sensor's own pause is where the apps get their turn.
    instead_of_pauses(monkeypatch, lambda _: next(steps)())
    certificate = sensor(deferrable=False).execute(NOTHING)
    assert (certificate["table_id"], status(catalog, late)) == (late, "live")


def test_on_a_worker_too_a_generation_that_is_given_up_is_no_success(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, [late] = add_late_tables(catalog, "late")
    make_live(catalog, log)
    with catalog.write() as session:
        backfill_id = arrivals.resnapshot_table(session, late)

    def retire(_: float) -> None:
        with catalog.write() as session:
            arrivals.retire_backfill(session, backfill_id)

    instead_of_pauses(monkeypatch, retire)
    with pytest.raises(AirflowFailException, match="given up before it was live"):
        sensor(deferrable=False).execute(NOTHING)


@pytest.mark.parametrize(("gently", "error"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_its_timeout_is_a_sensors(catalog: Catalog, gently: bool, error: type[Exception]) -> None:
    add_late_tables(catalog, "late")
    with pytest.raises(error):
        sensor(deferrable=False, timeout=0.05, poke_interval=0.02, soft_fail=gently).execute(NOTHING)
    deferred = sensor(timeout=0.05, soft_fail=gently)

    def run_out(*_: Any, **__: Any) -> None:
        raise TaskDeferralTimeout("Trigger timeout")

    deferred.execute_complete = run_out  # type: ignore[method-assign]
    with pytest.raises(error):
        deferred.resume_execution("execute_complete", {"event": {}}, NOTHING)


def test_a_catalog_that_does_not_answer_is_left_to_the_trigger(monkeypatch: pytest.MonkeyPatch, free_port: int) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", f"mzshare://u:p@127.0.0.1:{free_port}/db")
    with pytest.raises(TaskDeferred) as deferred:
        sensor(mzshare_conn_id="away").execute(NOTHING)
    assert deferred.value.trigger.serialize()[1]["table_id"] is None
    assert not sensor(mzshare_conn_id="away").poke(NOTHING)


def test_a_wrong_connection_is_nothing_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "postgres://u:p@127.0.0.1:1/db")
    with pytest.raises(AirflowFailException, match="'postgres', not 'mzshare'"):
        sensor(mzshare_conn_id="other").execute(NOTHING)


@pytest.mark.parametrize(
    ("event", "result"),
    [
        (ConvergedEvent("converged", "t", result={"tick": 7}), {"tick": 7}),
        (ConvergedEvent("failed", "t", error="no java", hint="mzshare status t"), AirflowFailException),
    ],
)
def test_the_triggers_event_ends_the_task(event: ConvergedEvent, result: Any) -> None:
    payload = {**event.to_payload(), "of_a_newer_version": 1}
    assert issubclass(OffsetsConvergedSensor, BaseSensorOperator)
    if isinstance(result, dict):
        assert sensor().execute_complete(NOTHING, payload) == result
        return
    with pytest.raises(result, match=r"no java\. Try: mzshare status t"):
        sensor().execute_complete(NOTHING, payload)
    with pytest.raises(AirflowSkipException):
        sensor(soft_fail=True).resume_execution("execute_complete", {"event": payload}, NOTHING)


def test_the_events_are_a_wire_format() -> None:
    assert ConvergedEvent("converged", "t", result={"tick": 7}).to_payload() == {
        "outcome": "converged",
        "table": "t",
        "result": {"tick": 7},
        "error": "",
        "hint": "",
    }
    assert ConvergedEvent.from_payload({"outcome": "failed", "table": "t"}) == ConvergedEvent("failed", "t")
