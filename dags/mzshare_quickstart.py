"""One source, two tables, one shared read: define them together and start the app that feeds them.

* **Prerequisites:** a Kafka connection in Airflow, and a topic with JSON records. The connection `mzshare_default`, or
  `MZSHARE_HOME` in the worker's environment, says where the catalog and the tables are.
* **Running it again** with the same form changes nothing.
* **Afterwards** the app goes on without this run. `mzshare_reconcile` keeps it running, and `mzshare_add_table` adds
  tables to it.
"""

from __future__ import annotations

from datetime import datetime, timezone

from airflow.sdk import Param, chain, dag

from airflow_provider_mzshare.forms import source_definition, source_params
from airflow_provider_mzshare.operators.ingestion import StartIngestionOperator
from airflow_provider_mzshare.operators.reading import ReadTableOperator
from airflow_provider_mzshare.operators.sources import CreateSourceOperator
from airflow_provider_mzshare.operators.tables import CreateTablesFromSourceOperator

TYPED, WHOLE = "{{ params.source }}_rows", "{{ params.source }}_documents"


@dag(
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        **source_params(
            "kafka", connection="kafka_conn_id", begin={"kafka_conn_id": "kafka_default", "topic": "orders"}
        ),
        "source": Param(
            "shop",
            type="string",
            minLength=1,
            title="Source",
            description="The name of the new source. The names of its tables begin with it.",
        ),
        "columns": Param(
            "id bigint, customer text, amount numeric(12,2)",
            type="string",
            format="multiline",
            minLength=1,
            title="Columns",
            description="Columns of the typed table: name type, name type, … with the names of the records' fields.",
        ),
    },
)
def mzshare_quickstart() -> None:
    source = CreateSourceOperator(
        task_id="create_source",
        source="{{ params.source }}",
        **source_definition("kafka", connection="kafka_conn_id"),
    )
    tables = CreateTablesFromSourceOperator(
        task_id="create_tables",
        source="{{ params.source }}",
        tables=[
            {"name": TYPED, "columns": "{{ params.columns }}", "include": "timestamp"},
            {"name": WHOLE, "include": "partition, offset, key"},
        ],
    )
    start = StartIngestionOperator(task_id="start_ingestion", source="{{ params.source }}")
    counts = [
        ReadTableOperator(task_id="count_rows", table=TYPED, count=True),
        ReadTableOperator(task_id="count_documents", table=WHOLE, count=True),
    ]
    chain(source, tables, start, counts)


mzshare_quickstart()
