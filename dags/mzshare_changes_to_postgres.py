"""Keep a table in Postgres as a table of mzshare is: each run loads what has changed in its hour, exactly once.

* **One transaction for each slice** takes rows away, puts rows in, and writes the slice into the table `mzshare_slices`
  beside the target. So a task that is retried, cleared, or killed at any point loads the slice once.
* **The first run** loads the rows as of its interval's end. So does a run that finds the target at another time than
  its interval's start, because runs were left out, or at another table, because names were swapped: it replaces the
  target's rows, in one transaction too, and readers see the old ones until then.
* It works for tables whose rows change and for those that only grow. With the key's columns, rows that go are found
  by an index; without, the target is read once for each slice that takes rows away.
* The target is made if it is not there. One that you have made may have other types, as far as the values fit.
* **To load all rows anew**, delete the target's rows of `mzshare_slices`.
* A read hold keeps the table's history for the next run, for a week at most; `mzshare holds` shows it.
* **Prerequisites:** the source's app runs (see `mzshare_reconcile`), a triggerer, and a connection to Postgres.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, Context, CronDataIntervalTimetable, Param, dag
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_mzshare.operators.changes import ReadChangesOperator

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg.sql import Composed

    from airflow_provider_mzshare.hooks.changes import Slice

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
SLICES = """
    CREATE TABLE IF NOT EXISTS mzshare_slices (
        target text, slice_start bigint, slice_end bigint, table_id text, snapshot boolean, inserted bigint,
        deleted bigint, loaded_at timestamptz DEFAULT now(), PRIMARY KEY (target, slice_end)
    )"""
LAST = "SELECT table_id, slice_end FROM mzshare_slices WHERE target = %s ORDER BY slice_end DESC LIMIT 1"
RECORD = """
    INSERT INTO mzshare_slices (target, slice_start, slice_end, table_id, snapshot, inserted, deleted)
    VALUES (%s, %s, %s, %s, %s, %s, %s)"""

# A row as text is the same for the same row, NULLs and NaNs included, and can be hashed.
NET = """
    CREATE TEMP TABLE _mz_net ON COMMIT DROP AS
    SELECT image, sum(mz_diff) AS diff, min(_mz_row) AS _mz_row
    FROM (SELECT _mz_row, mz_diff, ROW({columns})::text AS image FROM _mz_changes) AS changes
    GROUP BY image HAVING sum(mz_diff) <> 0"""
GOING = "SELECT coalesce(-sum(diff), 0) FROM _mz_net WHERE diff < 0"
TAKE_AWAY = """
    DELETE FROM {target} WHERE ctid IN (
        SELECT place FROM (
            SELECT t.ctid AS place, -n.diff AS gone, row_number() OVER (PARTITION BY n._mz_row) AS nth
            FROM _mz_net AS n JOIN _mz_changes AS c USING (_mz_row) JOIN {target} AS t ON {same}
            WHERE n.diff < 0
        ) AS found WHERE nth <= gone
    )"""
PUT_IN = """
    INSERT INTO {target} ({columns})
    SELECT {changed} FROM _mz_net AS n JOIN _mz_changes AS c USING (_mz_row), generate_series(1, n.diff)"""


def load(part: Slice, context: Context) -> dict[str, Any]:
    """What the operator calls with the slice of a run."""
    import psycopg

    form = context["params"]
    found = BaseHook.get_connection(form["postgres_conn_id"])
    server = {"host": found.host, "port": found.port, "user": found.login, "password": found.password}
    server |= {"dbname": found.schema, **found.extra_dejson}
    key = [name.strip() for name in (form["key"] or "").split(",") if name.strip()]
    with psycopg.connect(**{name: value for name, value in server.items() if value}) as postgres:
        with postgres.transaction():
            postgres.execute(LOCK, ["mzshare_slices"])
            postgres.execute(SLICES)
        with postgres.transaction():
            return load_slice(postgres, part, form["target"] or form["table"], key)


def load_slice(postgres: psycopg.Connection, part: Slice, target: str, key: Sequence[str]) -> dict[str, Any]:
    """In one transaction, and one at a time for each target: a task that hangs cannot meet its own retry."""
    from psycopg import sql

    postgres.execute(LOCK, [target])
    last = postgres.execute(LAST, [target]).fetchone()
    if last is not None and last[1] >= part.end:
        return {"loaded": "before"}
    goes_on = last == (part.table_id, part.start)
    name = sql.Identifier(*target.split("."))
    with part.open(snapshot=not goes_on) as changes:
        columns = changes.schema.names[2:]
        make_target(postgres, name, changes.schema, key)
        stage(postgres, name, columns, changes)
    if not goes_on:
        postgres.execute(sql.SQL("DELETE FROM {}").format(name))
    going, deleted, inserted = apply(postgres, name, columns, key)
    if deleted != going:
        raise AirflowFailException(
            f"{target} is not what was loaded: {going - deleted} of the {going} rows that go are not there. Delete its "
            "rows of mzshare_slices to load all rows anew"
        )
    postgres.execute(RECORD, [target, part.start, part.end, part.table_id, part.snapshot, inserted, deleted])
    return {"loaded": "snapshot" if part.snapshot else "changes", "inserted": inserted, "deleted": deleted}


def make_target(postgres: psycopg.Connection, name: Composed | Any, schema: pa.Schema, key: Sequence[str]) -> None:
    """With the columns that it lacks; nothing is locked if it lacks none."""
    from psycopg import sql

    wanted = {field.name: sql.SQL(postgres_type(field.type)) for field in list(schema)[2:]}
    lines = [sql.SQL("{} {}").format(sql.Identifier(column), type_) for column, type_ in wanted.items()]
    if key:
        lines.append(sql.SQL("PRIMARY KEY ({})").format(listed(key)))
    postgres.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(name, sql.SQL(", ").join(lines)))
    there = postgres.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(name)).description or []
    for column in wanted.keys() - {one.name for one in there}:
        adding = sql.SQL("ALTER TABLE {} ADD COLUMN {} {}")
        postgres.execute(adding.format(name, sql.Identifier(column), wanted[column]))


def stage(
    postgres: psycopg.Connection, name: Composed | Any, columns: Sequence[str], changes: pa.RecordBatchReader
) -> None:
    """The changes as rows of a table that goes with the transaction; only a batch is in memory."""
    from psycopg import sql

    from airflow_provider_mzshare.storage.collections.values import python_values

    making = sql.SQL("CREATE TEMP TABLE _mz_changes ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
    postgres.execute(making.format(listed(columns), name))
    postgres.execute("ALTER TABLE _mz_changes ADD mz_diff bigint, ADD _mz_row bigint GENERATED ALWAYS AS IDENTITY")
    copying = sql.SQL("COPY _mz_changes (mz_diff, {}) FROM STDIN").format(listed(columns))
    with postgres.cursor() as cursor, cursor.copy(copying) as copy:
        for batch in changes:
            for row in zip(*map(python_values, batch.columns[1:]), strict=True):
                copy.write_row(row)


def apply(
    postgres: psycopg.Connection, name: Composed | Any, columns: Sequence[str], key: Sequence[str]
) -> tuple[int, int, int]:
    """How many rows were to go, how many went, and how many came."""
    from psycopg import sql

    postgres.execute(sql.SQL(NET).format(columns=listed(columns)))
    postgres.execute("ANALYZE _mz_changes, _mz_net")
    going = postgres.execute(GOING).fetchone()
    same = [sql.SQL("t.{0} = c.{0}").format(sql.Identifier(column)) for column in key]
    same.append(sql.SQL("ROW({})::text = n.image").format(listed(columns, "t")))
    taking = sql.SQL(TAKE_AWAY).format(target=name, same=sql.SQL(" AND ").join(same))
    putting = sql.SQL(PUT_IN).format(target=name, columns=listed(columns), changed=listed(columns, "c"))
    return int(going[0]) if going else 0, postgres.execute(taking).rowcount, postgres.execute(putting).rowcount


def listed(columns: Sequence[str], of: str | None = None) -> Composed:
    from psycopg import sql

    return sql.SQL(", ").join(sql.Identifier(*([of] if of else []), column) for column in columns)


def postgres_type(found: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_decimal(found):
        return f"numeric({found.precision},{found.scale})"
    if pa.types.is_timestamp(found):
        return "timestamptz" if found.tz else "timestamp"
    names = {
        pa.bool_(): "boolean", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
        pa.float32(): "real", pa.float64(): "double precision", pa.date32(): "date", pa.binary(): "bytea",
    }  # fmt: skip
    return names.get(found, "text")


@dag(
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    tags=["mzshare"],
    doc_md=__doc__,
    params={
        "table": Param(
            "shop_rows", type="string", minLength=1, title="Table", description="The [schema.]name of the table."
        ),
        "target": Param(
            None,
            type=["null", "string"],
            title="Target",
            description="The [schema.]name of the table in Postgres. Empty: as the table.",
        ),
        "key": Param(
            None,
            type=["null", "string"],
            title="Key",
            description="The columns of the table's key: name, name, … Empty: rows are found by all of their columns.",
        ),
        "postgres_conn_id": Param(
            "postgres_default",
            type="string",
            minLength=1,
            title="Connection",
            description="Airflow's connection to Postgres; its schema is the database.",
        ),
    },
)
def mzshare_changes_to_postgres() -> None:
    ReadChangesOperator(
        task_id="load",
        table="{{ params.table }}",
        process=load,
        hold=True,
        retries=3,
        retry_delay=timedelta(minutes=1),
    )


mzshare_changes_to_postgres()
