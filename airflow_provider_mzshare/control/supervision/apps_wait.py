"""Waits until apps that were started have come up: they hold their lease, and an ingestion app has committed a tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.log.backfills import Backfill, active_backfills
from airflow_provider_mzshare.control.catalog.log.queue import places
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.hints import start
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.errors import JobFailed, LaunchFailed, TerminalError, WaitTimeout

T = TypeVar("T")


@dataclass(frozen=True)
class Ingesting:
    """A source's app is up: its newest tick is its own."""

    source: str
    job: JobId
    tick: int
    mz_timestamp: int


@dataclass(frozen=True)
class Backfilling:
    """:param jobs: of each backfill that has tables to bring up. :param live: tables that need none.
    :param queued: backfills that get an app once fewer run, with their places.
    """

    jobs: dict[str, JobId]
    live: tuple[str, ...]
    queued: dict[str, str] = field(default_factory=dict)


def await_ingestion(catalog: Catalog, source_id: ItemId, *, timeout: float, poll: float) -> Ingesting:
    """Until the app holds the source's lease and has committed a tick in this run of it."""
    return _until(catalog, lambda session: _ingesting(session, source_id), timeout, poll, "its first tick")


def await_backfills(catalog: Catalog, table_ids: Sequence[ItemId], *, timeout: float, poll: float) -> Backfilling:
    """Until every backfill of these tables has an app that holds its lease, or is queued; live tables need none."""
    return _until(catalog, lambda session: _backfilling(session, table_ids), timeout, poll, "the app of their backfill")


def _until(catalog: Catalog, look: Callable[[Session], T | None], timeout: float, poll: float, what: str) -> T:
    deadline = time.monotonic() + timeout
    while True:
        with catalog.read() as session:
            found = look(session)
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"waited {timeout:g} s for {what}", hint="mzshare status")
        time.sleep(poll)


def _ingesting(session: Session, source_id: ItemId) -> Ingesting | None:
    source = items.get_source_item(session, source_id)
    if source.status != "active":
        raise JobFailed(f"source {source.display} is {source.status}: {source.message or source.reason}")
    if source.desired != "running":
        raise TerminalError(f"source {source.display} was asked to stop", hint=start(source.name))
    if not items.list_tables(session, source_id):
        raise TerminalError(f"source {source.display} has no tables", hint="CREATE TABLE … FROM SOURCE … first")
    active = job_rows.active_jobs(session, source_id, kind="ingest")
    if not active:
        raise _ended(f"source {source.display}", job_rows.last_jobs(session, source_id, 1, kind="ingest"), source)
    job_id = source.lease.job_id
    if job_id is None or job_id not in {job.id for job in active}:
        return None
    tick = _last_tick(session, source_id)
    if tick is None or tick.job_id != job_id:
        return None
    return Ingesting(source.display, job_id, tick.number, tick.mz_timestamp)


def _last_tick(session: Session, source_id: ItemId) -> TickRow | None:
    """The newest tick is enough: if the app that holds the lease has minted any tick, it minted the newest."""
    committed = select(TickRow).where(TickRow.source_id == source_id, TickRow.committed)
    return session.scalar(committed.order_by(TickRow.number.desc()).limit(1).execution_options(populate_existing=True))


def _backfilling(session: Session, table_ids: Sequence[ItemId]) -> Backfilling | None:
    tables = [items.get_table_item(session, table_id) for table_id in table_ids]
    backfills = backfills_of(session, table_ids)
    arriving = {arrival.table_id for backfill in backfills for arrival in backfill.tables}
    settled = [table for table in tables if table.id not in arriving]
    for table in settled:
        if table.status in ("stalled", "dropped"):
            raise JobFailed(f"table {table.display} is {table.status}{f': {table.reason}' if table.reason else ''}")
    waiting = places(session)
    queued = {str(backfill.id): str(waiting[backfill.id]) for backfill in backfills if backfill.id in waiting}
    running = {str(one.id): _backfill_job(session, one) for one in backfills if one.id not in waiting}
    jobs = {backfill_id: job_id for backfill_id, job_id in running.items() if job_id is not None}
    if len(jobs) < len(running):
        return None
    return Backfilling(jobs, tuple(table.display for table in settled), queued)


def backfills_of(session: Session, table_ids: Sequence[ItemId]) -> Sequence[Backfill]:
    """The backfills that still have to bring up one of these tables."""
    sources = {items.get_table_item(session, table_id).source_id for table_id in table_ids}
    active = [backfill for source_id in sorted(sources) for backfill in active_backfills(session, source_id)]
    return [backfill for backfill in active if {a.table_id for a in backfill.tables} & set(table_ids)]


def _backfill_job(session: Session, backfill: Backfill) -> JobId | None:
    source = items.get_source_item(session, backfill.source_id)
    if source.desired != "running":
        raise TerminalError(f"source {source.display} was asked to stop", hint=start(source.name))
    active = job_rows.active_jobs(session, kind="backfill", backfill_id=backfill.id)
    if not active:
        last = job_rows.last_jobs(session, None, 1, kind="backfill", backfill_id=backfill.id)
        raise _ended(f"backfill {backfill.id}", last, source)
    holder = backfill.lease.job_id
    return holder if holder in {job.id for job in active} else None


def _ended(what: str, last: Sequence[job_rows.Job], source: items.SourceItem) -> Exception:
    """The app ran and has ended, or was never started. A retry starts it again, so the error is transient."""
    if not last:
        return LaunchFailed(f"nothing has been started for {what}", hint=start(source.name))
    job = last[0]
    why = f": {job.error}" if job.error else ""
    return LaunchFailed(f"{what}: job {job.id} ended as {job.state}{why}", hint=f"mzshare logs {job.id}")
