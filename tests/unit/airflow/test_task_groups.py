"""The tasks that add tables: their order, their names before templates are rendered, and what parsing them costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from airflow.sdk import DAG, AssetAlias

from airflow_provider_mzshare.assets.mzshare import table_asset
from airflow_provider_mzshare.provider_info import get_provider_info
from airflow_provider_mzshare.task_groups import add_tables

HEAVY = ("pyspark", "pyarrow", "pandas", "deltalake", "confluent_kafka", "alembic")


def test_each_table_converges_and_is_verified_and_the_backfill_ends_in_any_case() -> None:
    with DAG("d") as dag:
        add_tables("g", source="s", tables=[{"name": "sales.Orders"}, {"name": "{{ params.t }}"}], max_lag=2, retries=4)
    upstream = {task.task_id.removeprefix("g."): set(task.upstream_task_ids) for task in dag.tasks}
    assert {task: {name.removeprefix("g.") for name in names} for task, names in upstream.items()} == {
        "create": set(),
        "start_backfill": {"create"},
        "converge_sales_orders": {"start_backfill"},
        "converge_2": {"start_backfill"},
        "verify_sales_orders": {"converge_sales_orders"},
        "verify_2": {"converge_2"},
        "retire_backfill": {"verify_sales_orders", "verify_2", "create"},
    }
    assert dag.get_task("g.create").is_setup
    assert dag.get_task("g.retire_backfill").is_teardown
    assert {task.retries for task in dag.tasks} == {4}
    assert dag.get_task("g.converge_2").max_lag == 2
    assert dag.get_task("g.verify_sales_orders").outlets == [table_asset("sales.orders")]
    assert dag.get_task("g.verify_2").outlets == []


def test_the_proof_the_end_and_the_assets_are_a_matter_of_choice() -> None:
    with DAG("d") as dag:
        add_tables("bare", source="s", tables=[{"name": "t"}], verify=False, retire=False, mzshare_conn_id="c")
        add_tables("told", source="s", tables=[{"name": "{{ params.t }}"}], alias="added")
    assert {task.task_id for task in dag.tasks if task.task_id.startswith("bare")} == {
        "bare.create",
        "bare.start_backfill",
        "bare.converge_t",
    }
    assert dag.get_task("bare.converge_t").outlets == [table_asset("t", "c")]
    assert dag.get_task("bare.create").mzshare_conn_id == "c"
    assert dag.get_task("told.verify_1").outlets == [AssetAlias("added")]


def test_a_dag_file_loads_little(airflow_home: Path) -> None:
    """It is parsed over and over; what only a running task needs is loaded there."""
    modules = ", ".join(f"airflow_provider_mzshare.{name}" for name in ("task_groups", *_operators()))
    code = f"import sys, {modules}; print(*[name for name in {HEAVY} if name in sys.modules])"
    env = {**os.environ, "_AIRFLOW__AS_LIBRARY": "1"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def _operators() -> list[str]:
    (entry,) = get_provider_info()["operators"]
    return [module.removeprefix("airflow_provider_mzshare.") for module in entry["python-modules"]]
