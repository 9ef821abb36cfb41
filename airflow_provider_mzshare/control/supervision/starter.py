"""Starts the apps of sources and of backfills. Whether one should run is decided elsewhere."""

from __future__ import annotations

import os
from collections.abc import Collection

from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.compute.jobs import AppJob
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.compute.machine import default_backfills
from airflow_provider_mzshare.compute.masters import backfill_master
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.log import queue as waiting
from airflow_provider_mzshare.control.catalog.log.merging import merge_backfills
from airflow_provider_mzshare.control.catalog.log.queue import Place
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.supervision.queue_rules import at_most
from airflow_provider_mzshare.control.upstreams import connection_of
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId, new_job_id
from airflow_provider_mzshare.core.ticklog.backfill_rules import inside
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.settings import Settings


def backfill_limit(settings: Settings) -> int:
    """How many backfills may have an app at once, of all sources of the catalog."""
    return default_backfills() if settings.max_backfills is None else settings.max_backfills


class Starter:
    def __init__(
        self, catalog: Catalog, settings: Settings, connections: ConnectionStore, launchers: Launchers
    ) -> None:
        self._catalog, self._settings = catalog, settings
        self._connections, self._launchers = connections, launchers

    def start(self, source_id: ItemId, backfill_id: BackfillId | None = None) -> str:
        """Start the app of a source, or of one of its backfills. Returns the job, or why none was started."""
        with self._catalog.read() as session:
            source = items.get_source_item(session, source_id)
        job = self._job_or_requeue(source, backfill_id)
        if present := self._record(job, source_id, backfill_id):
            return present
        try:
            handle = self._launchers.chosen().start(job)
        except MzShareError as error:
            with self._catalog.write() as session:
                job_rows.set_state(session, JobId(job.job_id), "failed", expect=job_rows.ACTIVE, error=error.line)
            raise
        return f"job {job.job_id}, pid {handle.pid}"

    def _job_or_requeue(self, source: items.SourceItem, backfill_id: BackfillId | None) -> AppJob:
        """A backfill that cannot be started from here goes to the end of the queue, so that the others can start."""
        try:
            return self.job_for(source, backfill_id)
        except MzShareError:
            if backfill_id is not None:
                with self._catalog.locked(source.id) as (session, _):
                    if waiting.places(session).keys() - {backfill_id}:
                        waiting.enter_queue(session, source.id, backfill_id, since=wall_ms())
            raise

    def _record(self, job: AppJob, source_id: ItemId, backfill_id: BackfillId | None) -> str:
        """Write the job's row first, behind the source's lock: if two start the same app, only one succeeds.

        :returns: why it must not be started after all; empty when it is recorded.
        """
        with self._catalog.locked(source_id) as (session, state):
            if backfill_id is not None and backfill_id not in state.backfills:
                return f"backfill {backfill_id} has ended"
            if backfill_id in inside(state):
                return f"the app of the source executes backfill {backfill_id} itself"
            present = job_rows.active_jobs(session, source_id, kind=job.kind, backfill_id=backfill_id)
            if present:
                return f"job {present[0].id} exists already"
            if backfill_id is not None and (full := self._take_slot(session, source_id, backfill_id)):
                return full
            job_rows.create_job(
                session,
                kind=job.kind,
                source_id=source_id,
                backfill_id=backfill_id,
                launcher=self._launchers.chosen_name,
                folder=str(job.folder),
                master=job.master,
                job_id=JobId(job.job_id),
            )
        return ""

    # ── the queue of backfills ────────────────────────────────────────────────────────────────────────────────────────

    def _take_slot(self, session: Session, source_id: ItemId, backfill_id: BackfillId) -> str:
        """Running backfills are counted in the transaction that writes the job: the limit holds for all reconcilers."""
        waiting.lock_starts(session)
        if waiting.running_backfills(session) < backfill_limit(self._settings):
            waiting.leave_queue(session, backfill_id)
            return ""
        waiting.enter_queue(session, source_id, backfill_id)
        return f"{_place(session, backfill_id)}: {at_most(backfill_limit(self._settings))}"

    def queue(self, source_id: ItemId, backfill_id: BackfillId, why: str) -> str:
        """Record in the catalog that the backfill waits for an app. A place that it has already is kept."""
        with self._catalog.locked(source_id) as (session, state):
            if backfill_id not in state.backfills:
                return f"backfill {backfill_id} has ended"
            waiting.enter_queue(session, source_id, backfill_id)
        return why

    def merge(self, source_id: ItemId, backfill_ids: Collection[BackfillId]) -> str:
        with self._catalog.write() as session:
            merged = merge_backfills(session, source_id, backfill_ids)
        return f"{', '.join(merged[:-1])} into {merged[-1]}" if merged else "they run already, or have ended"

    def job_for(self, source: items.SourceItem, backfill_id: BackfillId | None = None) -> AppJob:
        """What is missing on this machine is found here, before the job is recorded."""
        self._launchers.chosen()
        java_program(os.environ)
        kind: job_rows.Kind = "ingest" if backfill_id is None else "backfill"
        chosen, job_id = self._settings, new_job_id(kind)
        of_backfills = chosen.backfill_master or backfill_master(chosen.master)
        connection = connection_of(self._connections, source.spec)
        return AppJob(
            kind=kind,
            job_id=job_id,
            source_id=source.id,
            source_name=str(QualifiedName(*source.name)),
            backfill_id=backfill_id,
            catalog_url=self._catalog.url,
            warehouse=chosen.warehouse,
            master=chosen.master if backfill_id is None else of_backfills,
            connection=connection.to_dict() if connection else None,
            folder=chosen.jobs / source.id / job_id,
            lease_seconds=chosen.lease_seconds,
            heartbeat_seconds=chosen.heartbeat_seconds,
            spark_conf=dict(chosen.spark_conf),
            key_index_mb=chosen.key_index_mb,
            umask=chosen.umask,
            jars=[str(path) for path in jars.spark_jars(chosen.jars or jars.default_folder())],
        )


def _place(session: Session, backfill_id: BackfillId) -> Place:
    places = waiting.places(session)
    return places.get(backfill_id, Place(len(places) + 1, len(places) + 1))
