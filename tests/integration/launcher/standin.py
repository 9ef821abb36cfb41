"""A small real app in the place of the Spark one: it follows the same protocol with the catalog, and moves no data.

How it misbehaves is told by the name of its source.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

from airflow_provider_mzshare.compute.jobs import AppJob, Exit, read_job
from airflow_provider_mzshare.compute.launchers.process import process_identity
from airflow_provider_mzshare.compute.machine import machine_identity
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.log.backfill_store import CatalogBackfillStore
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.apps.lease import Heartbeat, take_lease


def main(argv: list[str]) -> int:
    job = read_job(argv[0])
    if "crashing" in job.source_name:
        raise RuntimeError("the app cannot be imported")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in job.source_name else lambda *_: stop.set())
    (job.folder / "checkpoint-1").mkdir()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    catalog = open_catalog(job.catalog_url)
    pid, started = process_identity()
    here = {"host": socket.gethostname(), "machine": machine_identity()}
    with catalog.write() as session:
        assert jobs.note_start(session, JobId(job.job_id), pid=pid, pid_started=started, **here)  # type: ignore[arg-type]
    return run(job, catalog, stop)


def run(job: AppJob, catalog: Catalog, stop: threading.Event) -> int:
    job_id, store = JobId(job.job_id), store_for(job, catalog)
    try:
        holder = take_lease(store, job_id, seconds=job.lease_seconds, stop=stop)
    except MzShareError as error:
        end(catalog, job_id, "fenced", error.line)
        return Exit.FENCED
    if "dying" in job.source_name:
        print("2026-01-02 03:04:05,678 ERROR mzshare.backfill no memory is left", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    with Heartbeat(store, holder, seconds=job.heartbeat_seconds) as heartbeat:
        with catalog.write() as session:
            jobs.set_state(session, job_id, "running", expect={"starting"})
        print("2026-01-02 03:04:05,678 WARNING mzshare.ingest a stand-in moves no data", flush=True)
        print("running", flush=True)
        while not stop.wait(0.05):
            if "stubborn" in job.source_name:
                continue
            if heartbeat.fenced.is_set() or is_over(store, job):
                break
            if "deaf" in job.source_name:
                continue
            with catalog.read() as session:
                if jobs.stop_requested(session, job_id):
                    break
    over = is_over(store, job)
    end(catalog, job_id, "finished" if over else "stopped", None)
    if not over:
        store.release(holder)
    print("stopped", flush=True)
    return Exit.STOPPED


def store_for(job: AppJob, catalog: Catalog) -> CatalogTickStore | CatalogBackfillStore:
    if job.backfill_id is None:
        return CatalogTickStore(catalog, ItemId(job.source_id))
    return CatalogBackfillStore(catalog, ItemId(job.source_id), BackfillId(job.backfill_id))


def is_over(store: CatalogTickStore | CatalogBackfillStore, job: AppJob) -> bool:
    """A backfill ends when none of its tables is left."""
    return job.backfill_id is not None and job.backfill_id not in store.load().backfills


def end(catalog: Catalog, job_id: JobId, state: str, error: str | None) -> None:
    with catalog.write() as session:
        jobs.set_state(session, job_id, state, expect=jobs.ACTIVE, error=error)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
