"""The runs behind jobs: their processes, their logs, and the one a user means. Starts and ends nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute.jobs import LOG_FILE
from airflow_provider_mzshare.compute.launchers.base import Handle, Liveness, Runs
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.log.backfills import unfinished_backfill
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.overviews import arrival_overviews
from airflow_provider_mzshare.control.lifecycle.typed_names import find_item
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.errors import TerminalError, UnknownItem

_LAST_WORDS, _LAST_LINES = 300, 200
_COMPLAINT = re.compile(
    r"\S+ \S+ (?:WARNING|ERROR|CRITICAL) (?:airflow_provider_mzshare|mzshare)[\w.]* (?P<ours>.+)"
    r"|error: (?P<said>.+)"
    r"|(?P<raised>[\w.]*(?:Error|Exception): .+)"
)
"""Warnings and errors of the app itself, and errors at the end of a traceback; not the log lines of Spark."""


@dataclass(frozen=True)
class Run:
    """What runs or ran for one job, under the launcher that started it."""

    job_id: str
    handle: Handle
    runs: Runs

    @property
    def host(self) -> str:
        return self.handle.host

    def status(self) -> Liveness:
        return self.runs.status(self.handle)

    def request_stop(self) -> None:
        self.runs.request_stop(self.handle)

    def kill(self) -> int:
        return self.runs.kill(self.handle)

    def lines(self, *, tail: int | None = None, follow: Callable[[], bool] | None = None) -> Iterator[str]:
        return self.runs.logs(self.handle, tail=tail, follow=follow)

    def last_words(self) -> str:
        """The last warning or error in its log, which says why it ended; empty when there is none."""
        return last_complaint(self.lines(tail=_LAST_LINES))


def run_of(job: job_rows.Job, launchers: Launchers) -> Run | None:
    """The run of a job: from what the app recorded of its process, else as its launcher finds it."""
    runs, folder = launchers.runs_of(job.launcher), Path(job.folder)
    if job.pid is not None and job.host is not None:
        return Run(job.id, Handle(job.id, folder, job.host, job.pid, job.pid_started, job.machine), runs)
    handle = runs.find(job.id, folder)
    return None if handle is None else Run(job.id, handle, runs)


def last_complaint(lines: Iterable[str]) -> str:
    found = [match for line in lines if (match := _COMPLAINT.fullmatch(line.strip()))]
    return str(found[-1][found[-1].lastgroup or 0])[:_LAST_WORDS] if found else ""


@dataclass(frozen=True)
class JobLog:
    job_id: str
    run: Run
    catalog: Catalog

    def lines(self, *, tail: int | None = None, follow: bool = False) -> Iterator[str]:
        return self.run.lines(tail=tail, follow=self._goes_on if follow else None)

    def _goes_on(self) -> bool:
        with self.catalog.read() as session:
            return job_rows.get_job(session, JobId(self.job_id)).is_active


def find_log(catalog: Catalog, launchers: Launchers, name: str) -> JobLog:
    """Of the newest run that feeds a source or a table, or of a run by its job's id."""
    job = _job(catalog, name)
    launcher = launchers.get(job.launcher)
    run = run_of(job, launchers) or Run(job.id, Handle(job.id, Path(job.folder), job.host or ""), launcher)
    return JobLog(job.id, run, catalog)


def _job(catalog: Catalog, name: str) -> job_rows.Job:
    with catalog.read() as session:
        try:
            return job_rows.get_job(session, JobId(name))
        except UnknownItem:
            pass
    try:
        item = find_item(catalog, name)
    except TerminalError:
        raise TerminalError(f"there is no job, source or table {name!r}", hint="mzshare status") from None
    with catalog.read() as session:
        job = _newest(session, item)
    if job is None:
        raise TerminalError(f"nothing has run for {item.display!r} yet", hint="mzshare reconcile")
    return job


def _newest(session: Session, item: items.SourceItem | items.TableItem) -> job_rows.Job | None:
    """While a table is brought up, the app of its backfill feeds it; otherwise the ingestion app does.

    If the table stalled while a backfill brought it up, that backfill's job says why.
    """
    source_id = item.id if isinstance(item, items.SourceItem) else item.source_id
    if isinstance(item, items.TableItem):
        arrival = arrival_overviews(session, source_id).get(item.id)
        job = arrival.job if arrival is not None else None
        if (arrival or item).status == "stalled":
            job = _stalled_under(session, item, (arrival or item).generation)
        if job is not None:
            return job
    newest = job_rows.last_jobs(session, source_id, 1, kind="ingest")
    return newest[0] if newest else None


def _stalled_under(session: Session, table: items.TableItem, generation: int) -> job_rows.Job | None:
    backfill_id = unfinished_backfill(session, table.id, generation)
    if backfill_id is None:
        return None
    newest = job_rows.last_jobs(session, table.source_id, 1, backfill_id=backfill_id)
    return newest[0] if newest else None


def job_log_path(catalog: Catalog, job_id: str) -> Path:
    """Where a job's log is, on the machine that it ran on. It is not checked whether the file still exists."""
    with catalog.read() as session:
        return Path(job_rows.get_job(session, JobId(job_id)).folder) / LOG_FILE
