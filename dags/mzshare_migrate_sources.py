"""Move legacy sources to sources with tables, in batches and within a window; take it back, or end it for good.

* **Dry run first**: by default nothing is changed; the task's log has the statements before and after, and its result
  what dbt or Terraform state must change.
* Definitions change; data, history and running apps do not. Reads by name go on.
* Run it again whenever you like: what is done is not done twice, and what was left goes on.
* *Roll back* takes a migration back until it is *finalized*; finalizing drops the legacy names of progress.
* It does not switch `force_source_table_syntax` on: do that last, with `ALTER SYSTEM SET`, when nothing is left.
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
            None, type=["null", "string"], title="Pattern", description="Or all whose name matches: `shop.*`."
        ),
        "all_sources": Param(False, type="boolean", title="All", description="Or all there are."),
        "action": Param(
            "migrate",
            type="string",
            enum=["migrate", "rollback", "finalize"],
            title="Action",
            description="Move to tables, take that back, or end it for good.",
        ),
        "dry_run": Param(True, type="boolean", title="Dry run", description="Only say what would be done."),
        "batch_size": Param(
            10,
            type="integer",
            minimum=1,
            title="Batch size",
            description="Sources before the window is looked at again.",
        ),
        "window_start": _time("Window from", "Time of day in UTC from which batches may start, as 22:00. Empty: any."),
        "window_end": _time("Window to", "Time of day in UTC from which no batch may start any more."),
        "stop_on_first_failure": Param(
            True, type="boolean", title="Stop on first failure", description="Else the others have their turn."
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
