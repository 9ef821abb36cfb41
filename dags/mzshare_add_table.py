"""Add a table to a running source, exactly, without a break for its other tables.

A temporary backfill app brings the history and follows the source. When both are at the same offsets, the table is cut
over to the shared app, and the backfill ends. The last task reads the range upstream once more. It proves that nothing
is missing and nothing is there twice.

* **Prerequisites:** a source whose app runs (see `mzshare_quickstart`).
* **Running it again** with the same form changes nothing.
* **After a failure** the backfill is retired and the table is stalled. To go on, clear the run, or use
  `ALTER TABLE … RESUME`.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, dag

from airflow_provider_mzshare.forms import table_definition, table_params
from airflow_provider_mzshare.task_groups import add_tables

ASSETS = "mzshare_added_tables"
"""Downstream DAGs may be scheduled on this alias, or on the table's own asset."""


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        "source": Param("shop", type="string", minLength=1, title="Source", description="The source to add to."),
        "table": Param(
            "shop_amounts", type="string", minLength=1, title="New table", description="[schema.]name of the new table."
        ),
        **table_params(columns="amount double precision", include="partition, offset"),
        "reference": Param(
            None,
            type=["null", "string"],
            title="Reference",
            description='The part of the source to export; with a schema: ["schema", "name"]. Empty: the topic.',
        ),
    },
)
def mzshare_add_table() -> None:
    add_tables(
        "add_table",
        source="{{ params.source }}",
        tables=[
            table_definition(
                "{{ params.table }}",
                reference="{{ params.reference or '' }}",
            )
        ],
        alias=ASSETS,
    )


mzshare_add_table()
