"""Looks at the catalog, at processes and at folders, and reports what it found. Changes nothing, decides nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute.jobs import LOG_FILE, Exit
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import BackfillRow
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.jobs import Job, active_jobs, last_jobs
from airflow_provider_mzshare.control.catalog.log.merging import mergeable
from airflow_provider_mzshare.control.catalog.log.queue import queue, running_backfills, since_of
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.supervision.decisions import (
    KEEP_LOGS,
    BackfillView,
    JobView,
    Overview,
    Process,
    SourceView,
)
from airflow_provider_mzshare.control.supervision.leftovers import find_journals, find_leftovers
from airflow_provider_mzshare.control.supervision.queue_rules import Slots
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.control.supervision.starter import backfill_limit
from airflow_provider_mzshare.control.supervision.warehouse import collection_folders, journal_folders
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, is_item_id
from airflow_provider_mzshare.core.ticklog import backfill_rules
from airflow_provider_mzshare.core.ticklog.state import Lease
from airflow_provider_mzshare.errors import TransientError, UnknownItem
from airflow_provider_mzshare.settings import Settings

MAX_LAG = 1
"""How many ticks a table may be behind when the reconciler arms its cutover without being asked."""
_HISTORY, _BACKOFF = KEEP_LOGS + 30, 10
_KEPT = frozenset({LOG_FILE})


@dataclass(frozen=True)
class _Backfill:
    lease: Lease
    tables: tuple[str, ...]
    jobs: tuple[Job, ...]
    since: int


@dataclass(frozen=True)
class _Source:
    """What one transaction says about a source."""

    item: items.SourceItem
    tables: int
    jobs: tuple[Job, ...]
    backfills: dict[BackfillId, _Backfill]
    ready: tuple[str, ...]
    merges: tuple[tuple[BackfillId, ...], ...]


class Observer:
    """Remembers leases between two looks: only after some time is it known that a lease gets no heartbeats.

    :param monotonic: the clock of this process, in seconds; clocks of other machines are never compared.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        launchers: Launchers,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog, self._settings, self._launchers, self._clock = catalog, settings, launchers, monotonic
        self._hearts: dict[str, tuple[Lease, float]] = {}
        self._silent: set[str] = set()
        """Sources and backfills whose lease is held by a job, and has got no heartbeat since the first look."""

    @property
    def is_in_doubt(self) -> bool:
        """Only another look can tell whether all jobs that should be alive are."""
        return bool(self._silent)

    def look(self, only: ItemId | None = None) -> Overview:
        folders, journals = collection_folders(self._settings.warehouse), journal_folders(self._settings.warehouse)
        try:
            with self._catalog.read() as session:
                found = [_source(session, source_id) for source_id in self._source_ids(session, only)]
                dropped, left = (
                    find_leftovers(session, folders, only),
                    find_journals(session, journals, wall_ms(), only),
                )
                slots = self._slots(session)
        except TransientError:
            # No app could send a heartbeat while the catalog was away: each gets its whole time-to-live again.
            self._hearts.clear()
            self._silent.clear()
            raise
        views = tuple(self._view(source) for source in found)
        return Overview(sources=views, dropped=dropped, journals=left, slots=slots)

    def _slots(self, session: Session) -> Slots:
        queued = tuple((one.since, str(one.backfill_id)) for one in queue(session))
        return Slots(backfill_limit(self._settings), running_backfills(session), queued)

    def look_at_jobs(self, jobs: Iterable[Job]) -> tuple[JobView, ...]:
        """Only these jobs, in their order; heartbeats are not checked."""
        now = wall_ms()
        return tuple(self._job(job, now, False) for job in jobs)

    def _source_ids(self, session: Session, only: ItemId | None) -> list[ItemId]:
        """All sources, and dropped ones of which something is left."""
        if only is not None:
            return [only]
        ids = {source.id for source in items.list_sources(session)}
        ids |= {job.source_id for job in active_jobs(session)}
        folders = self._settings.jobs.iterdir() if self._settings.jobs.is_dir() else ()
        ids |= {ItemId(path.name) for path in folders if is_item_id(path.name) and _is_source(session, path.name)}
        return sorted(ids, key=lambda source_id: int(source_id[1:]))

    def _view(self, found: _Source) -> SourceView:
        item = found.item
        return SourceView(
            source_id=item.id,
            name=str(QualifiedName(*item.name)),
            status=item.status,
            desired=item.desired,
            tables=found.tables,
            jobs=self._jobs(item.id, item.lease, found.jobs),
            backfills=tuple(
                BackfillView(one, its.tables, self._jobs(one, its.lease, its.jobs), its.since)
                for one, its in found.backfills.items()
            ),
            ready=found.ready,
            merges=found.merges,
        )

    def _jobs(self, owner: str, lease: Lease, jobs: Collection[Job]) -> tuple[JobView, ...]:
        before, now = self._hearts.get(owner), wall_ms()
        stopped = self._heart_stopped(owner, lease)
        if not any(job.is_active and job.id == lease.job_id for job in jobs) or (before and before[0] != lease):
            self._silent.discard(owner)
        elif before is None:
            self._silent.add(owner)
        return tuple(self._job(job, now, stopped and lease.job_id == job.id) for job in jobs)

    def _heart_stopped(self, owner: str, lease: Lease) -> bool:
        seen = self._hearts.get(owner)
        if seen is None or seen[0] != lease:
            self._hearts[owner] = (lease, self._clock())
            return False
        return lease.job_id is not None and self._clock() - seen[1] >= self._settings.lease_seconds

    def _job(self, job: Job, now: int, heart_stopped: bool) -> JobView:
        end = now if job.ended_at is None else job.ended_at
        run = run_of(job, self._launchers) if job.is_active else None
        process: Process = run.status() if run else "absent"
        has_folder, has_scratch = (False, False) if job.is_active else self._leftovers(job)
        return JobView(
            job_id=job.id,
            state=job.state,
            age=(now - job.created_at) / 1000,
            ran=max(0, end - (job.started_at or job.created_at)) / 1000,
            ended_ago=max(0, now - end) / 1000,
            process=process,
            heart_stopped=heart_stopped,
            started=job.started_at is not None and job.exit_code != Exit.UNAVAILABLE,
            worked=job.running_at is not None,
            has_folder=has_folder,
            has_scratch=has_scratch,
        )

    def _leftovers(self, job: Job) -> tuple[bool, bool]:
        """Whether an ended job still has its folder here, and more than a log in it. Its process may end later."""
        folder = Path(job.folder)
        try:
            more = any(path.name not in _KEPT for path in folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return False, False
        if not more:
            return True, False
        run = run_of(job, self._launchers)
        gone = run is None or run.status() == "gone"
        return gone, gone


def _is_source(session: Session, source_id: str) -> bool:
    try:
        items.get_source_item(session, ItemId(source_id))
    except UnknownItem:
        return False
    return True


def _source(session: Session, source_id: ItemId) -> _Source:
    tables = {table.id: str(QualifiedName(*table.name)) for table in items.list_tables(session, source_id)}
    newest = last_jobs(session, source_id, _HISTORY, kind="ingest")
    backfills, ready, merges = _backfills(session, source_id, tables)
    return _Source(
        item=items.get_source_item(session, source_id),
        tables=len(tables),
        jobs=_once(*newest, *active_jobs(session, source_id, kind="ingest")),
        backfills=backfills,
        ready=ready,
        merges=merges,
    )


def _backfills(
    session: Session, source_id: ItemId, names: dict[ItemId, str]
) -> tuple[dict[BackfillId, _Backfill], tuple[str, ...], tuple[tuple[BackfillId, ...], ...]]:
    """Backfills that have tables or jobs; the tables that can be armed; and the groups of backfills to merge."""
    if not session.scalar(select(exists().where(BackfillRow.source_id == source_id))):
        return {}, (), ()
    state = load_state(session, get_source(session, source_id))
    tables, jobs = defaultdict(list), defaultdict(list)
    for table in backfill_rules.arriving(state).values():
        # Else the ingestion app brings it up.
        if table.backfill_id is not None and table.status in backfill_rules.BY_AN_APP:
            tables[table.backfill_id].append(names[table.table_id])
    newest = last_jobs(session, source_id, _HISTORY, kind="backfill")
    of_each = [job for one in tables for job in last_jobs(session, source_id, _BACKOFF, backfill_id=one)]
    for job in _once(*newest, *of_each, *active_jobs(session, source_id, kind="backfill")):
        if job.backfill_id is not None:
            jobs[job.backfill_id].append(job)
    leases = {backfill_id: backfill.lease for backfill_id, backfill in state.backfills.items()}
    ready = [table for table in backfill_rules.arriving(state) if backfill_rules.arm(state, table, max_lag=MAX_LAG)]
    since = since_of(session, list(tables))
    found = {
        one: _Backfill(leases.get(one, Lease()), tuple(sorted(tables[one])), tuple(jobs[one]), since.get(one, 0))
        for one in dict.fromkeys([*tables, *jobs])
    }
    return found, tuple(sorted(names[table] for table in ready)), tuple(mergeable(session, state))


def _once(*jobs: Job) -> tuple[Job, ...]:
    return tuple({job.id: job for job in jobs}.values())
