"""Replace a table by one with other columns. Its name can be read at every moment.

1. The DAG makes a new table on the same source and reference. A temporary backfill brings it up, and it is cut over,
   exactly, while the old table goes on.
2. Your checks run. Each is a SELECT over the tables `new` and `old`, and must be true.
3. Somebody approves the swap (Required Actions), and sees the plan and the certificate there. You can switch this off.
4. The tables swap names in one transaction. Readers of the name see either the whole old table or the whole new one.
5. The old table is kept for some days as `<table>__old_<id>`, and still gets new rows. Then it is dropped.

* **A failed check or a rejection** leaves the old table live and drops the new one.
* **To go back**, run this with the action `rollback`: the kept table gets its name again, even if the new one is
  stalled.
* **A table that is not live and caught up** does not get the name, unless you force it.
* **Views** are bound to a table's id, not to its name: views on the old table still read the old table. Create them
  again before it is dropped; until then the drop fails.
* **Prerequisites:** a source whose app runs (see `mzshare_quickstart`).
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.sdk import BaseOperator, Param, TaskGroup, chain, dag, task

from airflow_provider_mzshare.forms import ENVELOPES, FORMATS, table_definition, table_params
from airflow_provider_mzshare.operators.checking import CheckSQLOperator
from airflow_provider_mzshare.operators.ingestion import ReconcileOperator
from airflow_provider_mzshare.operators.swapping import DropUnlessLiveOperator, PlanSwapOperator, SwapTablesOperator
from airflow_provider_mzshare.operators.tables import DropTableOperator
from airflow_provider_mzshare.task_groups import add_tables

TABLE = "{{ params.table }}"
SAME = "same"
NOT_ASKED = ("snapshot",)
"""The new table has all that the old one has."""


def pulled(task_id: str, key: str) -> str:
    """What a task of this run has answered, for a template."""
    return f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{key}'] }}}}"


def same_or_given(field: str) -> str:
    """What the form says of a field, or the plan, which has it from the old table."""
    given = f"{{{{ params.{field} or '' }}}}"
    return f"{{% if params.{field} == '{SAME}' %}}{pulled('plan', field)}{{% else %}}{given}{{% endif %}}"


PARAMS = {
    "action": Param(
        "replace",
        type="string",
        enum=["replace", "rollback"],
        title="Action",
        description="replace: make a new table and swap. rollback: give the kept table its name back.",
    ),
    "table": Param(type="string", minLength=1, title="Table", description="The [schema.]name that readers use."),
    "new_table": Param(
        None,
        type=["null", "string"],
        title="New table, or the kept one",
        description="Empty: the table's name and __next. For a rollback: the kept table, if there are several.",
    ),
    **table_params(without=NOT_ASKED),
    "format": Param(
        SAME,
        type="string",
        enum=[SAME, *FORMATS],
        title="Format",
        description="How to decode records. same: as the table does now.",
    ),
    "key_format": Param(
        SAME,
        type=["null", "string"],
        title="Format of the key",
        description="How keys are decoded; as the table's are now, unless you say otherwise. Empty: as Format has it.",
    ),
    "envelope": Param(
        SAME,
        type="string",
        enum=[SAME, *ENVELOPES],
        title="Envelope",
        description="What records mean for rows; as for the table now, unless you say otherwise. upsert needs the key "
        "among the metadata columns, or columns of the key.",
    ),
    "checks": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Checks",
        description="SELECTs that must be true, one per line, over the tables new and old: "
        "SELECT (SELECT count(*) FROM new) = (SELECT count(*) FROM old)",
    ),
    "approval": Param(
        True, type="boolean", title="Ask for approval", description="Off: swap as soon as all checks are true."
    ),
    "keep_days": Param(
        7,
        type="number",
        minimum=0,
        title="Keep the old table (days)",
        description="Until then the old table still gets new rows.",
    ),
    "force": Param(
        False,
        type="boolean",
        title="Force the swap",
        description="Swap even if the table that gets the name is not live and caught up. Readers may miss rows.",
    ),
    "drop_on_failure": Param(
        True,
        type="boolean",
        title="Drop the new table after a failure",
        description="Off: the new table stays, so that you can look for the cause.",
    ),
}


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["mzshare"],
    doc_md=__doc__,
    params=PARAMS,
)
def mzshare_blue_green() -> None:
    @task.branch
    def choose(params: dict[str, Any] | None = None) -> str:
        return "plan" if (params or {})["action"] == "replace" else "plan_rollback"

    plan = PlanSwapOperator(task_id="plan", table=TABLE, other="{{ params.new_table or '' }}")
    plan_rollback = PlanSwapOperator(
        task_id="plan_rollback", table=TABLE, other="{{ params.new_table or '' }}", rollback=True
    )
    swap_back = SwapTablesOperator(
        task_id="swap_back",
        table=pulled("plan_rollback", "table"),
        other=pulled("plan_rollback", "other"),
        new_id=pulled("plan_rollback", "new_id"),
        old_id=pulled("plan_rollback", "old_id"),
        keep_as=pulled("plan_rollback", "keep_as"),
        force="{{ params.force }}",
    )
    swap = swapped_when_approved(plan)
    drop_new = DropUnlessLiveOperator(
        task_id="drop_new",
        table=pulled("plan", "table"),
        other=pulled("plan", "other"),
        last_id=pulled("plan", "last_id"),
        keep="{{ not params.drop_on_failure }}",
    )
    keep = DateTimeSensorAsync(task_id="keep", target_time=pulled("swap", "keep_until"))
    drop_old = DropTableOperator(task_id="drop_old", table=pulled("swap", "keep_as"))
    chain(choose(), [plan, plan_rollback])
    chain(swap, keep, drop_old, ReconcileOperator(task_id="tidy_up"))
    chain(swap, drop_new.as_teardown(setups=plan))
    chain(plan_rollback, swap_back)


def swapped_when_approved(plan: BaseOperator) -> BaseOperator:
    """From the plan to the swap."""

    @task.branch
    def ask(params: dict[str, Any] | None = None) -> str:
        return "approve" if (params or {})["approval"] else "swap"

    check = CheckSQLOperator(
        task_id="check",
        checks="{{ params.checks }}",
        tables={"new": pulled("plan", "other"), "old": pulled("plan", "table")},
    )
    approve = ApprovalOperator(
        task_id="approve",
        subject=f"Swap {TABLE}?",
        body="{{ ti.xcom_pull(task_ids='identify')['summary'] }}",
    )
    swap = SwapTablesOperator(
        task_id="swap",
        table=pulled("identify", "table"),
        other=pulled("identify", "other"),
        new_id=pulled("identify", "new_id"),
        old_id=pulled("identify", "old_id"),
        keep_as=pulled("identify", "keep_as"),
        keep_days="{{ params.keep_days }}",
        force="{{ params.force }}",
        trigger_rule="none_failed_min_one_success",
    )
    chain(plan, added_table(), check, identified(), ask(), [approve, swap])
    chain(approve, swap)
    return swap


def added_table() -> TaskGroup:
    """On the source and the reference of the old one."""
    return add_tables(
        "new_table",
        source=pulled("plan", "source"),
        tables=[
            table_definition(
                pulled("plan", "other"),
                without=NOT_ASKED,
                reference="{{ ti.xcom_pull(task_ids='plan')['reference'] | tojson }}",
                **{field: same_or_given(field) for field in ("format", "key_format", "envelope")},
            )
        ],
    )


@task(task_id="identify")
def identified(params: dict[str, Any] | None = None, ti: Any = None) -> dict[str, Any]:
    """The new table's id beside the plan's names, and all that somebody who approves has to know.

    The swap goes by this and not by the plan: a plan that is made again, because a task was cleared, finds the swapped
    tables.
    """
    from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
    from airflow_provider_mzshare.control.sql.values import ShowCreate
    from airflow_provider_mzshare.control.statements.blue_green import kept_for
    from airflow_provider_mzshare.hooks.mzshare import MzShareHook

    plan = ti.xcom_pull(task_ids="plan")
    proof = ti.xcom_pull(task_ids="new_table.verify_1")
    checks = ti.xcom_pull(task_ids="check") or []
    hook = MzShareHook()
    try:
        new_id = hook.table(plan["other"]).id
        names = (plan["table"], plan["other"])
        shown = [hook.run_statement(ShowCreate("table", typed_name(name))).rows for name in names]
    finally:
        hook.close()
    keep_as = kept_for(plan["keep_as"], new_id)
    was, will_be = (str(rows[0]["create_sql"]) for rows in shown if rows)
    views = ", ".join(plan["views"]) or "none"
    lines = [
        f"**{plan['table']}** is `{plan['old_id']}` now and will be `{new_id}`.",
        f"The old table is kept as {keep_as} for {(params or {})['keep_days']} days, then dropped.",
        f"Views that read the old table, also after the swap: {views}.",
        "### Now",
        _fenced(was, "sql"),
        "### Then",
        _fenced(will_be, "sql"),
        "### Checks",
        "\n".join(f"* true at {one['ticks']}: `{one['check']}`" for one in checks) or "There are no checks.",
        "### Certificate",
        _fenced(json.dumps(proof, indent=2), "json"),
    ]
    return {**plan, "new_id": str(new_id), "keep_as": keep_as, "summary": "\n\n".join(lines)}


def _fenced(text: str, language: str) -> str:
    """As a block of Markdown that nothing in the text can end."""
    fence = "`" * (3 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


mzshare_blue_green()
