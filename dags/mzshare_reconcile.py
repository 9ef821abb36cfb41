"""Every minute: start the apps that should run, stop the others, replace lost ones, cut tables over, and tidy up.

* **Prerequisites:** this provider on the worker, the place of the catalog in the connection `mzshare_default` or in
  `MZSHARE_HOME`, and the sources' connections in Airflow.
* Apps go on when the task ends, and even when Airflow stops.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import dag

from airflow_provider_mzshare.operators.ingestion import ReconcileOperator


@dag(
    schedule=timedelta(minutes=1),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["mzshare"],
    doc_md=__doc__,
)
def mzshare_reconcile() -> None:
    ReconcileOperator(task_id="reconcile")


mzshare_reconcile()
