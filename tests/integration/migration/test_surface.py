"""Migrations from the command line and from Airflow."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from copy import copy
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError, TaskDeferred

import tests.support.airflow  # noqa: F401
from airflow_provider_mzshare.cli.main import run as command
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.operators.migrations import MigrateSourceOperator
from tests.support.legacy import add_multi, add_single, allow_legacy, definitions

ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """The catalog of a home, with two legacy sources."""
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path))
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        allow_legacy(catalog)
        add_single(catalog, ("public", "orders"))
        add_multi(catalog, ("public", "auction"))
        yield catalog


def cli(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> str:
    assert command(["migrate", *argv]) == code
    captured = capsys.readouterr()
    return captured.out if code != 2 else captured.err


def test_the_command(home: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    before = definitions(home)
    told = cli(capsys, "--all")
    assert "  source orders (u1) becomes source orders_source (u1)\n    - CREATE SOURCE public.orders (" in told
    assert told.endswith("next: --apply carries the plan out\n")
    assert definitions(home) == before
    report = json.loads(cli(capsys, "orders", "--apply", "--output", "json"))
    assert (report["dry_run"], report["counts"]["done"], len(report["sources"])) == (False, 1, 1)
    assert "already" in cli(capsys, "orders", "--apply")
    assert "auction,done,table bids,u5," in cli(capsys, "--pattern", "auct*", "--apply", "--output", "csv")
    assert "u5" in cli(capsys, "--all", "--rollback", "--apply")
    assert definitions(home) == before
    cli(capsys, "--all", "--apply")
    assert "dropped" in cli(capsys, "--all", "--finalize", "--apply")
    assert "it was finalized" in cli(capsys, "orders", "--rollback", "--apply", code=1)


def test_wrong_use_is_told(home: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["orders", "--all"], [], ["--pattern", "*", "--all"]):
        assert "give one source, or --pattern P, or --all" in cli(capsys, *argv, code=2)
    assert "not both" in cli(capsys, "--all", "--rollback", "--finalize", code=2)


def test_a_failure_is_an_exit_code_and_a_line(home: Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    cli(capsys, "--all", "--apply")
    with home.write() as session:
        items.drop_table(session, items.find_table(session, ("public", "orders")).id)
    told = cli(capsys, "--all", "--rollback", "--apply", "--no-stop-on-first-failure", code=1)
    assert (
        "orders_source: the migration of source 'orders' cannot be rolled back: table orders (u2) was dropped" in told
    )
    assert "auction" in told


def executed(**arguments: Any) -> dict[str, Any]:
    return MigrateSourceOperator(task_id="t", **arguments).execute({})  # type: ignore[no-any-return]


def test_the_operator(home: Catalog) -> None:
    before = definitions(home)
    assert executed(all_sources="True")["counts"]["planned"] == 2
    assert definitions(home) == before
    report = executed(source="orders", apply="True")
    json.dumps(report)
    again = executed(source="orders", apply=True)
    assert [one["objects"] for one in again["sources"]] == [one["objects"] for one in report["sources"]]
    executed(pattern="*", apply=True, batch_size="1")
    executed(all_sources=True, action="rollback", apply=True)
    assert definitions(home) == before
    for wrong in ({"action": "nonsense"}, {"batch_size": "many"}, {"apply": "perhaps"}, {"window_start": "22:00"}):
        with pytest.raises(AirflowFailException):
            executed(all_sources=True, **wrong)


def test_the_operator_waits_for_its_window(home: Catalog) -> None:
    before, now = definitions(home), datetime.now(timezone.utc)
    start, end = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (2, 3))
    closed = {"all_sources": True, "apply": True, "window_start": start, "window_end": end}
    with pytest.raises(TaskDeferred) as deferred:
        executed(**closed)
    assert definitions(home) == before
    assert isinstance(deferred.value.trigger, DateTimeTrigger)
    assert now + timedelta(hours=1) < deferred.value.trigger.moment <= now + timedelta(hours=2)
    opened = MigrateSourceOperator(task_id="t", all_sources=True, apply=True, window_start="00:00", window_end="00:00")
    report = getattr(opened, deferred.value.method_name)({}, None)
    assert report["counts"]["done"] == 2


def test_a_failure_of_the_operator_is_not_retried(home: Catalog) -> None:
    executed(all_sources=True, apply=True)
    with home.write() as session:
        items.drop_table(session, items.find_table(session, ("public", "orders")).id)
    with pytest.raises(AirflowFailException, match="was dropped since"):
        executed(all_sources=True, action="rollback", apply=True)


def test_the_dag_hands_its_form_to_the_operator(home: Catalog) -> None:
    dag = runpy.run_path(str(ROOT / "dags" / "mzshare_migrate_sources.py"))["mzshare_migrate_sources"]()
    defaults = dag.params.dump()
    assert defaults["dry_run"] is True

    def executed_with(**form: Any) -> dict[str, Any]:
        task = copy(dag.get_task("migrate"))
        params = {**defaults, **form}
        for name, value in params.items():
            dag.params.get_param(name).resolve(value)
        task.render_template_fields({"params": params})
        return task.execute({})  # type: ignore[no-any-return]

    before = definitions(home)
    assert executed_with(all_sources=True)["counts"]["planned"] == 2
    assert definitions(home) == before
    form = {"pattern": "*", "dry_run": False, "batch_size": 1, "stop_on_first_failure": False}
    assert executed_with(**form, window_start="00:00", window_end="00:00")["counts"]["done"] == 2
    assert executed_with(source="orders", action="rollback", dry_run=False)["counts"]["done"] == 1
    with pytest.raises(ParamValidationError):
        executed_with(window_start="25:00")
