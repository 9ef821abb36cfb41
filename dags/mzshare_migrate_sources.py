"""Turn old-style sources into sources with tables, in batches and within a window; undo this, or end it for good.

* **Dry run first**: by default nothing is changed. The task's log has the statements before and after. Its result says
  what you must change in dbt or in the state of Terraform.
* Only definitions change: data, history and running apps stay as they are. Reads by name go on.
* You can run it again at any time: it goes on with the sources that are left, and does nothing twice.
* *Rollback* undoes a migration, until it is *finalized*. To finalize drops the old-style names of progress.
* The DAG does not switch `force_source_table_syntax` on: do that last, with `ALTER SYSTEM SET`, when no source is left.
* **Prerequisites:** as for `mzshare_reconcile`; with a window, a running triggerer.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, dag

from airflow_provider_mzshare.operators.migrations import MigrateSourceOperator

TIME = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


def _time(title: str, description: str) -> Param:
    return Param(None, type=["null", "string"], pattern=TIME, title=title, description=description)


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        "source": Param(None, type=["null", "string"], title="Source", description="One source, by its name or id."),
        "pattern": Param(
            None,
            type=["null", "string"],
            title="Pattern",
            description="Or all sources whose name matches, such as `shop.*`.",
        ),
        "all_sources": Param(False, type="boolean", title="All", description="Or all sources."),
        "action": Param(
            "migrate",
            type="string",
            enum=["migrate", "rollback", "finalize"],
            title="Action",
            description="migrate: make tables. rollback: undo that. finalize: end it for good.",
        ),
        "dry_run": Param(True, type="boolean", title="Dry run", description="Only print the plan, and change nothing."),
        "batch_size": Param(
            10,
            type="integer",
            minimum=1,
            title="Batch size",
            description="How many sources to migrate before the next look at the window.",
        ),
        "window_start": _time(
            "Window from", "Batches may start from this time of day on, in UTC, such as 22:00. Empty: at any time."
        ),
        "window_end": _time("Window to", "No batch may start from this time of day on, in UTC."),
        "stop_on_first_failure": Param(
            True, type="boolean", title="Stop on first failure", description="Off: go on with the other sources."
        ),
    },
)
def mzshare_migrate_sources() -> None:
    MigrateSourceOperator(
        task_id="migrate",
        source="{{ params.source or '' }}",
        pattern="{{ params.pattern or '' }}",
        all_sources="{{ params.all_sources }}",
        action="{{ params.action }}",
        apply="{{ not params.dry_run }}",
        batch_size="{{ params.batch_size }}",
        window_start="{{ params.window_start or '' }}",
        window_end="{{ params.window_end or '' }}",
        stop_on_first_failure="{{ params.stop_on_first_failure }}",
    )


mzshare_migrate_sources()
