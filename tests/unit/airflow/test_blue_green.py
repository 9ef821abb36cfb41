"""The tasks of a replacement: their order, and which of them end it when something fails."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from airflow.sdk import DAG

FILE = Path(__file__).parents[3] / "dags" / "mzshare_blue_green.py"


def loaded() -> DAG:
    spec = importlib.util.spec_from_file_location("blue_green_under_test", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.mzshare_blue_green()
    assert isinstance(found, DAG)
    return found


def test_the_swap_comes_after_the_proof_the_checks_and_the_question() -> None:
    dag = loaded()
    upstream = {task.task_id: set(task.upstream_task_ids) for task in dag.tasks}
    assert upstream == {
        "choose": set(),
        "plan": {"choose"},
        "new_table.create": {"plan"},
        "new_table.start_backfill": {"new_table.create"},
        "new_table.converge_1": {"new_table.start_backfill"},
        "new_table.verify_1": {"new_table.converge_1"},
        "new_table.retire_backfill": {"new_table.verify_1", "new_table.create"},
        "check": {"new_table.verify_1"},
        "identify": {"check"},
        "ask": {"identify"},
        "approve": {"ask"},
        "swap": {"ask", "approve"},
        "keep": {"swap"},
        "drop_old": {"keep"},
        "tidy_up": {"drop_old"},
        "drop_new": {"swap", "plan"},
        "plan_rollback": {"choose"},
        "swap_back": {"plan_rollback"},
    }
    # It runs whatever happened before the swap, and a rejection does not skip it.
    assert dag.get_task("drop_new").is_teardown
    assert dag.get_task("plan").is_setup
    assert dag.get_task("swap").trigger_rule == "none_failed_min_one_success"


def test_every_field_of_the_form_says_what_it_is() -> None:
    params = loaded().params
    for name in params:
        param = params.get_param(name)
        assert param.schema.get("title"), name
        assert param.description, name
