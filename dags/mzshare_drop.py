"""Drop a table, or a source with its tables. Stop apps that then have nothing to do, and remove the files.

* If the table or source does not exist, that is no error.
* A source that still has tables can be dropped only together with its tables.
* The other tables of a source, and its app, go on.
* **Prerequisites:** as for `mzshare_reconcile`.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from airflow.sdk import Param, chain, dag, task

from airflow_provider_mzshare.operators.ingestion import ReconcileOperator
from airflow_provider_mzshare.operators.sources import DropSourceOperator
from airflow_provider_mzshare.operators.tables import DropTableOperator

NAME = "{{ params.name }}"


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        "kind": Param("table", type="string", enum=["table", "source"], title="Drop a", description="What to drop."),
        "name": Param(
            type="string", minLength=1, title="Name", description="The [schema.]name of the table or source."
        ),
        "cascade": Param(
            False, type="boolean", title="With its tables", description="For a source: drop its tables as well."
        ),
    },
)
def mzshare_drop() -> None:
    @task.branch
    def choose(params: dict[str, Any] | None = None) -> str:
        form = params or {}
        if form["kind"] == "table":
            return "drop_table"
        return "drop_source_and_tables" if form["cascade"] else "drop_source"

    chain(
        choose(),
        [
            DropTableOperator(task_id="drop_table", table=NAME),
            DropSourceOperator(task_id="drop_source", source=NAME),
            DropSourceOperator(task_id="drop_source_and_tables", source=NAME, cascade=True),
        ],
        ReconcileOperator(task_id="tidy_up", trigger_rule="none_failed_min_one_success"),
    )


mzshare_drop()
