"""Keep tables small, every hour: retention moves `since`, what it has passed is removed, small files are merged.

* What a read could still need stays: nothing goes before `since` has stood past it for an hour.
* Merging is done by the apps that write the tables; this only asks for it.
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
            None, type=["null", "string"], title="Source", description="Only this source's tables. Empty: all."
        )
    },
)
def mzshare_maintenance() -> None:
    MaintainOperator(task_id="maintain", source="{{ params.source or '' }}")


mzshare_maintenance()
