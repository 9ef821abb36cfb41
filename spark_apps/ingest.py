"""The ingestion app: one shared streaming read of a source that feeds all its tables. Usage: ingest.py JOB.json"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import psutil

from airflow_provider_mzshare.compute.jobs import Exit, IngestionJob, read_job_file
from airflow_provider_mzshare.compute.session import open_session
from airflow_provider_mzshare.control.catalog import jobs, lookup
from airflow_provider_mzshare.control.catalog.engine import Catalog
from airflow_provider_mzshare.control.catalog.ticks import CatalogTickStore
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.connections import Connection
from airflow_provider_mzshare.storage.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.storage.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.storage.ingestion.reader import KafkaReader
from airflow_provider_mzshare.storage.ingestion.runner import End, Ingestion
from airflow_provider_mzshare.storage.ingestion.shipping import pack_writer
from airflow_provider_mzshare.types.ids import ItemId, JobId

log = logging.getLogger("mzshare.ingest")

EXITS = {
    "stopped": Exit.STOPPED,
    "finished": Exit.STOPPED,
    "fenced": Exit.FENCED,
    "stalled": Exit.STALLED,
    "failed": Exit.FAILED,
}


class JobRecord:
    """This run's row in the catalog."""

    def __init__(self, catalog: Catalog, job_id: JobId) -> None:
        self._catalog, self._job_id = catalog, job_id

    def started(self) -> bool:
        pid = os.getpid()
        with self._catalog.write() as session:
            return jobs.note_start(
                session,
                self._job_id,
                pid=pid,
                pid_started=psutil.Process(pid).create_time(),
                host=socket.gethostname(),
            )

    def running(self) -> None:
        with self._catalog.write() as session:
            jobs.set_state(session, self._job_id, "running", expect={"starting"})

    def trouble(self, text: str | None) -> None:
        with self._catalog.write() as session:
            jobs.note_trouble(session, self._job_id, text)

    def stop_requested(self) -> bool:
        with self._catalog.read() as session:
            return jobs.stop_requested(session, self._job_id)

    def ended(self, end: End) -> None:
        for pause in (1, 2, 4, 8, 0):
            try:
                with self._catalog.write() as session:
                    jobs.note_trouble(session, self._job_id, end.error)
                    jobs.set_state(
                        session,
                        self._job_id,
                        end.state,
                        expect=jobs.ACTIVE,
                        exit_code=EXITS[end.state],
                    )
                return
            except TransientError as error:
                # Should it stay away, the reconciler finds the process gone.
                log.warning("%s could not say how it ended: %s", self._job_id, error)
                time.sleep(pause)


def ingest(job: IngestionJob, catalog: Catalog, record: JobRecord, stop: threading.Event) -> End:
    with catalog.read() as session:
        source = lookup.get_source_item(session, ItemId(job.source_id))
    config = KafkaConfig.from_connection(Connection.from_dict(job.connection))
    with (
        KafkaUpstream(config, source.spec.topic) as upstream,
        open_session(
            f"mzshare {job.source_name} {job.job_id}",
            master=job.master,
            jars=job.jars,
            scratch=job.folder / "scratch",
            conf=job.spark_conf,
            py_files=[pack_writer(job.folder)],
        ) as spark,
    ):
        return Ingestion(
            spark=spark,
            store=CatalogTickStore(catalog, ItemId(job.source_id)),
            upstream=upstream,
            reader=KafkaReader(spark, config, source.spec.topic),
            source_id=ItemId(job.source_id),
            job_id=JobId(job.job_id),
            root=job.warehouse,
            folder=job.folder,
            lease_seconds=job.lease_seconds,
            heartbeat_seconds=job.heartbeat_seconds,
            stop=stop,
            stop_requested=record.stop_requested,
            on_running=record.running,
            on_trouble=record.trouble,
        ).run()


def main(argv: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        job = read_job_file(Path(argv[0]))
    except (MzShareError, IndexError) as error:
        print(f"error: {error.line if isinstance(error, MzShareError) else __doc__}", file=sys.stderr)
        return Exit.WRONG_USE
    catalog = Catalog(job.catalog_url)
    record = JobRecord(catalog, JobId(job.job_id))
    if not record.started():
        log.warning("%s was given up before it started", job.job_id)
        return Exit.FENCED
    try:
        end = ingest(job, catalog, record, stop)
    except Exception as error:
        log.exception("%s failed", job.job_id)
        end = End("failed", error.line if isinstance(error, MzShareError) else f"{type(error).__name__}: {error}")
    record.ended(end)
    return EXITS[end.state]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
