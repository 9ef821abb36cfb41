"""Starts backfills that nobody has started yet, for commands that need them; what was lost or failed is left alone.

An app belongs on the machine that runs the apps of its source: there its home, jars and connections are. That is
where the source's own app is seen to be alive, as a process of this machine that was launched from this home.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.log.backfills import Backfill
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.apps_wait import backfills_of
from airflow_provider_mzshare.control.supervision.runs import run_of
from airflow_provider_mzshare.control.supervision.starter import Starter
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.settings import Settings

_BAD_ENDS = ("failed", "lost", "fenced")


@dataclass(frozen=True)
class Started:
    """:param tables: what it brings up. :param came_of_it: its job and process, or its place in the queue."""

    backfill_id: str
    tables: tuple[str, ...]
    came_of_it: str

    @property
    def told(self) -> str:
        return f"backfill {self.backfill_id} for {', '.join(self.tables)}: {self.came_of_it}"


class BackfillStarter:
    """:param start: True: here, in any case. False: never. None: where the app of their source runs."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        connections: ConnectionStore,
        launchers: Launchers,
        *,
        start: bool | None = None,
    ) -> None:
        self._catalog, self._settings, self._launchers, self._start = catalog, settings, launchers, start
        self._starter = Starter(catalog, settings, connections, launchers)

    def bring_up(self, table_ids: Collection[ItemId]) -> list[Started]:
        """Start the backfills that these tables need and nobody has started. If two do this at once, one starts it."""
        if self._start is False:
            return []
        with self._catalog.read() as session:
            waiting = [one for one in backfills_of(session, list(table_ids)) if _nobody_started(session, one)]
            here = [one for one in waiting if self._start or self._runs_here(session, one.source_id)]
        return [
            Started(one.id, tuple(table.display for table in one.tables), self._starter.start(one.source_id, one.id))
            for one in here
        ]

    def _runs_here(self, session: Session, source_id: ItemId) -> bool:
        return any(self._is_here(job) for job in job_rows.active_jobs(session, source_id, kind="ingest"))

    def _is_here(self, job: job_rows.Job) -> bool:
        if not Path(job.folder).is_relative_to(self._settings.jobs):
            return False
        run = run_of(job, self._launchers)
        return run is not None and run.status() == "alive"


def tables_of(session: Session, item_ids: Sequence[str]) -> list[ItemId]:
    """Tables among these items, and all tables of those that are sources; what was dropped since is left out."""
    found: dict[ItemId, None] = {}
    for item_id in item_ids:
        item = items.get_live_item(session, ItemId(item_id))
        if isinstance(item, items.SourceItem):
            found |= dict.fromkeys(table.id for table in items.list_tables(session, item.id))
        elif isinstance(item, items.TableItem):
            found[item.id] = None
    return list(found)


def _nobody_started(session: Session, backfill: Backfill) -> bool:
    """The same rule as in ``arrival_text``: a source that was asked to stop does not let its backfills run either."""
    if items.get_source_item(session, backfill.source_id).desired != "running":
        return False
    if job_rows.active_jobs(session, kind="backfill", backfill_id=backfill.id):
        return False
    newest = job_rows.last_jobs(session, None, 1, kind="backfill", backfill_id=backfill.id)
    return not newest or newest[0].state not in _BAD_ENDS
