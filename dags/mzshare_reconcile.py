"""Keep every source's ingestion app running: start what should run, stop what should not, tidy up, every minute.

Prerequisites: this provider on the worker, ``MZSHARE_HOME`` (or ``MZSHARE_CATALOG`` and ``MZSHARE_WAREHOUSE``) in its
environment, and the sources' connections in Airflow. Apps outlive the task and Airflow itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.sdk import dag, task


@dag(
    schedule=timedelta(minutes=1),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["mzshare"],
    doc_md=__doc__,
)
def mzshare_reconcile() -> None:
    @task.bash
    def reconcile() -> str:
        return "mzshare reconcile"

    reconcile()


mzshare_reconcile()
