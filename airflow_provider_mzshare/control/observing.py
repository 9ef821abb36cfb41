"""Looks at the catalog, at processes and at folders, and says what was found. Changes nothing, decides nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from airflow_provider_mzshare.compute.jobs import LOG_FILE
from airflow_provider_mzshare.compute.launchers.base import Launcher
from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.catalog.clock import wall_ms
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE, Job, active_jobs, last_jobs
from airflow_provider_mzshare.control.catalog.models import (
    CollectionRow,
    JobRow,
    MembershipRow,
    TableRow,
    TickRow,
)
from airflow_provider_mzshare.control.plans import KEEP_LOGS, DroppedTable, JobView, Overview, Process, SourceView
from airflow_provider_mzshare.control.runs import handle_of
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.warehouse import collection_folders
from airflow_provider_mzshare.errors import TransientError, UnknownItem
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.ticks.state import Lease
from airflow_provider_mzshare.types.ids import ItemId, is_item_id

_HISTORY = KEEP_LOGS + 30
_KEPT = frozenset({LOG_FILE})


class Observer:
    """Remembers leases between two looks, since a heart is only known to stand still after a while.

    :param monotonic: its own clock, in seconds; no other machine's time is ever compared.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        launcher: Launcher,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog, self._settings, self._launcher, self._clock = catalog, settings, launcher, monotonic
        self._hearts: dict[ItemId, tuple[Lease, float]] = {}

    def look(self, only: ItemId | None = None) -> Overview:
        folders = collection_folders(self._settings.warehouse)
        try:
            with self._catalog.read() as session:
                found = [self._source(session, source_id) for source_id in self._source_ids(session, only)]
                dropped = _dropped_tables(session, folders, only)
        except TransientError:
            # While the catalog was away no heart could beat: from here on they get their whole time again.
            self._hearts.clear()
            raise
        sources = tuple(self._view(item, tables, jobs) for item, tables, jobs in found)
        return Overview(sources=sources, dropped=dropped)

    def _source_ids(self, session: Session, only: ItemId | None) -> list[ItemId]:
        """All sources, and dropped ones of which something is left."""
        if only is not None:
            return [only]
        ids = {source.id for source in items.list_sources(session)}
        ids |= {job.source_id for job in active_jobs(session)}
        folders = self._settings.jobs.iterdir() if self._settings.jobs.is_dir() else ()
        ids |= {ItemId(path.name) for path in folders if is_item_id(path.name) and _is_source(session, path.name)}
        return sorted(ids, key=lambda source_id: int(source_id[1:]))

    def _source(self, session: Session, source_id: ItemId) -> tuple[items.SourceItem, int, list[Job]]:
        jobs = {job.id: job for job in (*last_jobs(session, source_id, _HISTORY), *active_jobs(session, source_id))}
        return items.get_source_item(session, source_id), len(items.list_tables(session, source_id)), [*jobs.values()]

    def _view(self, item: items.SourceItem, tables: int, jobs: list[Job]) -> SourceView:
        stopped = self._heart_stopped(item)
        now = wall_ms()
        return SourceView(
            source_id=item.id,
            name=str(QualifiedName(*item.name)),
            status=item.status,
            desired=item.desired,
            tables=tables,
            jobs=tuple(self._job(job, now, stopped and item.lease.job_id == job.id) for job in jobs),
        )

    def _heart_stopped(self, item: items.SourceItem) -> bool:
        seen = self._hearts.get(item.id)
        if seen is None or seen[0] != item.lease:
            self._hearts[item.id] = (item.lease, self._clock())
            return False
        return item.lease.job_id is not None and self._clock() - seen[1] >= self._settings.lease_seconds

    def _job(self, job: Job, now: int, heart_stopped: bool) -> JobView:
        end = now if job.ended_at is None else job.ended_at
        handle = handle_of(job, self._launcher) if job.is_active else None
        process: Process = self._launcher.status(handle) if handle else "absent"
        has_folder, has_scratch = (False, False) if job.is_active else self._leftovers(job)
        return JobView(
            job_id=job.id,
            state=job.state,
            age=(now - job.created_at) / 1000,
            ran=max(0, end - (job.started_at or job.created_at)) / 1000,
            ended_ago=max(0, now - end) / 1000,
            process=process,
            heart_stopped=heart_stopped,
            has_folder=has_folder,
            has_scratch=has_scratch,
        )

    def _leftovers(self, job: Job) -> tuple[bool, bool]:
        """Whether an ended job has its folder here still, and more than a log in it. A run may outlive its end."""
        folder = Path(job.folder)
        if not folder.is_dir() or any(path.name not in _KEPT for path in folder.iterdir()) is False:
            return folder.is_dir(), False
        handle = handle_of(job, self._launcher)
        gone = handle is None or self._launcher.status(handle) == "gone"
        return gone, gone


def _is_source(session: Session, source_id: str) -> bool:
    try:
        items.get_source_item(session, ItemId(source_id))
    except UnknownItem:
        return False
    return True


def _dropped_tables(session: Session, folders: frozenset[str], only: ItemId | None) -> tuple[DroppedTable, ...]:
    """Dropped tables that still have folders, once no tick that may have them as a member is pending."""
    if not folders:
        return ()
    other = aliased(TableRow)
    left = select(func.max(MembershipRow.left_at)).where(MembershipRow.table_id == TableRow.id).scalar_subquery()
    # Without tables nothing runs that could finish a tick: a pending one then names nobody any more.
    used = exists().where(other.source_id == TableRow.source_id, other.status != "dropped")
    runs = exists().where(JobRow.source_id == TableRow.source_id, JobRow.state.in_(ACTIVE))
    waits = exists().where(TickRow.source_id == TableRow.source_id, ~TickRow.committed, TickRow.number <= left)
    query = (
        select(TableRow.id, CollectionRow.path)
        .join(CollectionRow, CollectionRow.table_id == TableRow.id)
        .where(TableRow.status == "dropped", ~(waits & (used | runs)))
    )
    if only is not None:
        query = query.where(TableRow.source_id == only)
    paths: dict[ItemId, list[str]] = defaultdict(list)
    for table_id, path in session.execute(query):
        if path in folders:
            paths[table_id].append(path)
    return tuple(
        DroppedTable(table_id, str(QualifiedName(*items.get_table_item(session, table_id).name)), tuple(found))
        for table_id, found in sorted(paths.items())
    )
