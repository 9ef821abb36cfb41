"""Keep tables small. Every hour: move `since` as retention says, remove older data, ask apps to merge small files.

* Data that a read could still need stays: nothing is removed until `since` has been past it for an hour.
* The apps that write the tables merge the files; this DAG only asks them to.
* **Prerequisites:** as for `mzshare_reconcile`, and the warehouse.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, dag

from airflow_provider_mzshare.operators.maintenance import MaintainOperator


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        "source": Param(
            None,
            type=["null", "string"],
            title="Source",
            description="Only the tables of this source. Empty: all tables.",
        )
    },
)
def mzshare_maintenance() -> None:
    MaintainOperator(task_id="maintain", source="{{ params.source or '' }}")


mzshare_maintenance()
