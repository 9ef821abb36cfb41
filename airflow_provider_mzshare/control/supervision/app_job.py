"""What the apps in ``spark_apps`` share: their job's row in the catalog, signals, session and upstream, exit codes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypedDict

import psutil

from airflow_provider_mzshare.compute.jobs import AppJob, Exit, read_job
from airflow_provider_mzshare.compute.machine import default_index_mb, machine_identity
from airflow_provider_mzshare.compute.session import open_session
from airflow_provider_mzshare.connectors.base import Connector, Reader, Upstream
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.control.upstreams import connect
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.ticklog.stores import Member
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.base import App, End
from airflow_provider_mzshare.storage.collections.vectors.memory import MIB, IndexMemory
from airflow_provider_mzshare.storage.writing.indexing import Indexing
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.shipping import pack_writer, worker_conf

log = logging.getLogger(__name__)

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
                machine=machine_identity(),
            )

    def running(self) -> None:
        with self._catalog.write() as session:
            jobs.set_state(session, self._job_id, "running", expect={"starting"})

    def shows(self, url: str | None) -> None:
        """Record the address of Spark's own pages, for links. They are off unless Spark's settings switch them on."""
        if url is not None:
            with self._catalog.write() as session:
                jobs.note_ui(session, self._job_id, url)

    def trouble(self, text: str | None) -> None:
        with self._catalog.write() as session:
            jobs.note_trouble(session, self._job_id, text)

    def stop_requested(self) -> bool:
        with self._catalog.read() as session:
            return jobs.stop_requested(session, self._job_id)

    def ended(self, end: End, code: Exit) -> None:
        for pause in (1, 2, 4, 8, 0):
            try:
                with self._catalog.write() as session:
                    jobs.note_trouble(session, self._job_id, end.error)
                    jobs.set_state(
                        session,
                        self._job_id,
                        end.state,
                        expect=jobs.ACTIVE,
                        exit_code=code,
                    )
                return
            except TransientError as error:
                # If the catalog stays away, the reconciler finds that the process is gone.
                log.warning("%s could not record how it ended: %s", self._job_id, error)
                time.sleep(pause)


class Parts(TypedDict):
    """The parts that both kinds of apps are made of."""

    spark: Any
    connector: Connector
    upstream: Upstream
    reader: Reader
    source_id: ItemId
    job_id: JobId
    root: str
    folder: Path
    indexing: Indexing
    lease_seconds: float
    heartbeat_seconds: float
    stop: threading.Event
    stop_requested: Callable[[], bool]
    on_running: Callable[[], None]
    on_trouble: Callable[[str | None], None]


Make = Callable[[AppJob, Catalog, Parts], App]
Keyed = Callable[[AppJob, Catalog], Sequence[Member]]


def set_by_signals(*numbers: int) -> threading.Event:
    """An event that these signals set. A thread of its own sets it: ``set`` takes a lock that the interrupted main
    thread may hold."""
    event, received = threading.Event(), SimpleQueue[int]()

    def pass_on() -> None:
        received.get()
        event.set()

    threading.Thread(target=pass_on, name="mzshare-signals", daemon=True).start()
    for number in numbers:
        signal.signal(number, lambda number, _: received.put(number))
    return event


def run_app(argv: Sequence[str], usage: str, make: Make, keyed: Keyed) -> int:
    """Read the job, run the app that ``make`` puts together, and say how it ended.

    :param keyed: the tables whose indexes the app needs. They are made while Spark starts.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stop = set_by_signals(signal.SIGTERM, signal.SIGINT)
    try:
        job = read_job(argv[0])
    except (MzShareError, IndexError) as error:
        sys.stderr.write(f"error: {error.line if isinstance(error, MzShareError) else usage}\n")
        return Exit.WRONG_USE
    catalog = open_catalog(job.catalog_url)
    record = JobRecord(catalog, JobId(job.job_id))
    if not record.started():
        log.warning("%s was given up before it started", job.job_id)
        return Exit.FENCED
    code: Exit | None = Exit.UNAVAILABLE
    try:
        with _parts(job, catalog, record, stop, keyed) as parts:
            code = None
            end = make(job, catalog, parts).run()
    except Exception as error:
        log.exception("%s failed", job.job_id)
        end = End("failed", error.line if isinstance(error, MzShareError) else f"{type(error).__name__}: {error}")
    code = code or (Exit.UNAVAILABLE if end.blameless else EXITS[end.state])
    record.ended(end, code)
    return code


def index_memory(job: AppJob) -> IndexMemory:
    """The limit is this machine's, unless whoever started the app said one."""
    megabytes = default_index_mb() if job.key_index_mb is None else job.key_index_mb
    return IndexMemory(megabytes * MIB)


@contextmanager
def _indexing(job: AppJob, members: Sequence[Member]) -> Iterator[Indexing]:
    """The indexes of these tables are made from now on."""
    with closing(Indexing(job.warehouse, KeyStates(job.folder / "keys", index_memory(job)))) as indexing:
        indexing.want(member.data for member in members)
        yield indexing


@contextmanager
def _parts(job: AppJob, catalog: Catalog, record: JobRecord, stop: threading.Event, keyed: Keyed) -> Iterator[Parts]:
    with catalog.read() as session:
        source = lookup.get_source_item(session, ItemId(job.source_id))
    connection = Connection.from_dict(job.connection) if job.connection else None
    connector = connect(connection, source.spec, source.incarnation, journals=journals_of(catalog, job.warehouse))
    kind = kind_of(source.spec)
    with (
        _indexing(job, keyed(job, catalog)) as indexing,
        connector.upstream() as upstream,
        open_session(
            f"mzshare {job.source_name} {job.job_id}",
            master=job.master,
            jars=job.jars,
            scratch=job.folder / "scratch",
            conf={**worker_conf(job.master, kind.executor_modules), **kind.spark_settings, **job.spark_conf},
            py_files=[pack_writer(job.folder)],
        ) as spark,
        closing(connector.reader(spark)) as reader,
    ):
        record.shows(spark.sparkContext.uiWebUrl)
        yield {
            "spark": spark,
            "connector": connector,
            "upstream": upstream,
            "reader": reader,
            "source_id": ItemId(job.source_id),
            "job_id": JobId(job.job_id),
            "root": job.warehouse,
            "folder": job.folder,
            "indexing": indexing,
            "lease_seconds": job.lease_seconds,
            "heartbeat_seconds": job.heartbeat_seconds,
            "stop": stop,
            "stop_requested": record.stop_requested,
            "on_running": record.running,
            "on_trouble": record.trouble,
        }
