"""What apps leave in a home, for commands that show it: ticks with rows and errors, stalls, failed jobs."""

from __future__ import annotations

import os
import pty
import subprocess
from datetime import datetime, timezone

import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Written
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.fanout.plan import errors_schema
from tests.integration.cli.conftest import Cli

SOURCE = "CREATE SOURCE s FROM KAFKA CONNECTION broker (TOPIC '{topic}');"
TABLE = "CREATE TABLE t (n int, b text) FROM SOURCE s FORMAT JSON;"


def write_ticks(cli: Cli, ticks: list[list[tuple[int, str | None]]], *, job_state: str = "") -> list[int]:
    """What the app does, for one table and one partition: mint, write, commit; give back the ticks' times."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
        collections = {
            row.role: row.id for row in session.scalars(select(CollectionRow).where(CollectionRow.table_id == table.id))
        }
    schema = pa.schema(
        [("n", pa.int32()), ("b", pa.string()), ("_mz_tick", pa.int64()), ("_mz_partition", pa.int32()),
         ("_mz_offset", pa.int64())]
    )  # fmt: skip
    warehouse = str(cli.home / "warehouse")
    create_collection(warehouse, collections["data"], schema)
    store, times = CatalogTickStore(catalog, source.id), []
    job_id = JobId("writer")
    if job_state:
        with catalog.write() as session:
            job_id = jobs.create_job(session, kind="ingest", source_id=source.id, launcher="process", folder="/none")
            jobs.note_start(session, job_id, pid=1, pid_started=1.0, host="another-machine")
            jobs.set_state(session, job_id, "running", expect={"starting"})
    holder = store.claim(job_id, stood_still=store.load().lease)
    for rows in ticks:
        lower = store.load().upper
        upper = Position({"0": lower["0"] + len(rows)})
        tick = store.mint(holder, lower=lower, upper=upper, incarnation=source.incarnation)
        written: tuple[Written, ...] = ()
        if rows:
            collection = Collection.open(warehouse, collections["data"])
            values = [
                {"n": n, "b": b, "_mz_tick": tick.number, "_mz_partition": 0, "_mz_offset": lower["0"] + i}
                for i, (n, b) in enumerate(rows)
            ]
            write_deltalake(
                collection.uri,
                pa.Table.from_pylist(values, schema),
                mode="append",
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(collections["data"], tick.mz_timestamp)]
                ),
            )
            collection.refresh()
            written = (Written(collections["data"], collection.delta_version, len(rows), "0" * 32),)
        store.commit(holder, tick.number, {table.id: Done(written, rows=len(rows))}, {})
        times.append(tick.mz_timestamp)
    catalog.close()
    return times


def stall(cli: Cli, table_reason: str = "") -> None:
    """What the app does when the source cannot go on, or (with a reason for it) the table."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
    store = CatalogTickStore(catalog, source.id)
    holder = store.claim(JobId("staller"), stood_still=store.load().lease)
    if table_reason:
        lower = store.load().upper
        tick = store.mint(holder, lower=lower, upper=Position({"0": lower["0"] + 1}), incarnation=source.incarnation)
        store.commit(holder, tick.number, {table.id: Left(table_reason)}, {})
    else:
        store.stall(holder, "topic_recreated", "the topic was made anew")
    catalog.close()


def write_errors(cli: Cli, records: list[tuple[bytes, str]]) -> None:
    """One tick of records that did not decode."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.read() as session:
        source = items.find_source(session, ("public", "s"))
        table = items.find_table(session, ("public", "t"))
        query = select(CollectionRow.id).where(CollectionRow.table_id == table.id, CollectionRow.role == "errors")
        collection_id = session.scalars(query).one()
    store, warehouse = CatalogTickStore(catalog, source.id), str(cli.home / "warehouse")
    holder = store.claim(JobId("writer"), stood_still=store.load().lease)
    upper = Position({"0": len(records)})
    tick = store.mint(holder, lower=store.load().upper, upper=upper, incarnation=source.incarnation)
    create_collection(warehouse, collection_id, errors_schema())
    collection = Collection.open(warehouse, collection_id)
    rows = [
        {"timestamp": datetime.now(timezone.utc), "key": None, "value": value, "error": error,
         "_mz_tick": tick.number, "_mz_partition": 0, "_mz_offset": offset}
        for offset, (value, error) in enumerate(records)
    ]  # fmt: skip
    done = CommitProperties(app_transactions=[Transaction(collection_id, tick.mz_timestamp)])
    batch = pa.Table.from_pylist(rows, errors_schema())
    write_deltalake(collection.uri, batch, mode="append", commit_properties=done)
    collection.refresh()
    written = Written(collection_id, collection.delta_version, len(rows), "0" * 32)
    store.commit(holder, tick.number, {table.id: Done((written,), errors=len(rows))}, {})
    catalog.close()


def note_a_failed_job(cli: Cli) -> None:
    """A job that ended badly, as the app itself would note it."""
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    with catalog.write() as session:
        for job in jobs.active_jobs(session):
            jobs.set_state(session, job.id, "stopped", expect=jobs.ACTIVE)
        job_id = jobs.create_job(session, kind="ingest", source_id=ItemId("u1"), launcher="process", folder="/none")
        jobs.set_state(session, job_id, "failed", expect=jobs.ACTIVE, error="Kafka refused the credentials.")
    catalog.close()


def on_terminal(cli: Cli, *argv: str, **env: str) -> str:
    """Run with a pseudo-terminal as standard output, and give back what it shows."""
    master, slave = pty.openpty()
    with subprocess.Popen(cli.command(*argv), stdout=slave, env={**cli.environment, "TERM": "xterm", **env}) as running:
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65_536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    os.close(master)
    assert running.returncode == 0
    return shown.decode()
