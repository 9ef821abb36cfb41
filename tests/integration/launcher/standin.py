"""A small real app in the place of the Spark one: it follows the same protocol with the catalog, and moves no data.

How it misbehaves is told by the name of its source.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from airflow_provider_mzshare.compute.jobs import Exit, IngestionJob, read_job_file
from airflow_provider_mzshare.compute.launchers.process import process_identity
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.ticks import CatalogTickStore
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.ingestion.lease import Heartbeat, take_lease
from airflow_provider_mzshare.types.ids import ItemId, JobId


def main(argv: list[str]) -> int:
    job = read_job_file(Path(argv[0]))
    if "crashing" in job.source_name:
        raise RuntimeError("the app cannot be imported")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in job.source_name else lambda *_: stop.set())
    (job.folder / "checkpoint-1").mkdir()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    catalog = Catalog(job.catalog_url)
    pid, started = process_identity()
    with catalog.write() as session:
        assert jobs.note_start(session, JobId(job.job_id), pid=pid, pid_started=started, host=socket.gethostname())
    return run(job, catalog, stop)


def run(job: IngestionJob, catalog: Catalog, stop: threading.Event) -> int:
    job_id, store = JobId(job.job_id), CatalogTickStore(catalog, ItemId(job.source_id))
    try:
        holder = take_lease(store, job_id, seconds=job.lease_seconds, stop=stop)
    except MzShareError as error:
        end(catalog, job_id, "fenced", error.line)
        return Exit.FENCED
    with Heartbeat(store, holder, seconds=job.heartbeat_seconds) as heartbeat:
        with catalog.write() as session:
            jobs.set_state(session, job_id, "running", expect={"starting"})
        print("2026-01-02 03:04:05,678 WARNING mzshare.ingest a stand-in moves no data", flush=True)
        print("running", flush=True)
        while not stop.wait(0.05) and not heartbeat.fenced.is_set():
            if "deaf" in job.source_name or "stubborn" in job.source_name:
                continue
            with catalog.read() as session:
                if jobs.stop_requested(session, job_id):
                    break
    end(catalog, job_id, "stopped", None)
    store.release(holder)
    print("stopped", flush=True)
    return Exit.STOPPED


def end(catalog: Catalog, job_id: JobId, state: str, error: str | None) -> None:
    with catalog.write() as session:
        jobs.set_state(session, job_id, state, expect=jobs.ACTIVE, error=error)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
