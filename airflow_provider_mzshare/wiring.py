"""The parts put together on one catalog, the same for commands, hooks and Python users.

Everything is made when it is first asked for: whoever only reads a table does not load what starts apps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_provider_mzshare.folders import make_folder

if TYPE_CHECKING:
    from airflow_provider_mzshare.compute.launchers.registry import Launchers
    from airflow_provider_mzshare.connectors.connections import ConnectionStore
    from airflow_provider_mzshare.control.catalog import Catalog
    from airflow_provider_mzshare.control.catalog.objects.lookup import SourceItem, TableItem
    from airflow_provider_mzshare.control.lifecycle.live_decision import Goal
    from airflow_provider_mzshare.control.lifecycle.progress import Progress
    from airflow_provider_mzshare.control.supervision.backfill_starter import BackfillStarter
    from airflow_provider_mzshare.control.supervision.live_wait import Waiter
    from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
    from airflow_provider_mzshare.control.supervision.status import StatusReader
    from airflow_provider_mzshare.settings import Settings


class Wiring:
    """:param connections: finds the store of connections to upstreams.
    :param catalog: an open catalog, which its opener closes.
    """

    def __init__(
        self, settings: Settings, connections: Callable[[], ConnectionStore], *, catalog: Catalog | None = None
    ) -> None:
        self.settings, self._find_connections = settings, connections
        self._given, self._opened = catalog, catalog

    # ── the catalog ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def catalog(self) -> Catalog:
        """Opened when first asked for, and kept until ``close``."""
        if self._opened is None:
            from airflow_provider_mzshare.control.composition import open_catalog

            self._opened = open_catalog(self.settings.catalog_url)
        return self._opened

    def ensure_catalog(self) -> Catalog:
        """The same; an embedded catalog that is not there yet is made. One on a server is only made when asked for."""
        if self.catalog.is_embedded and self.catalog.revision() is None:
            make_folder(self.settings.home, self.settings.umask)
            self.catalog.ensure()
        return self.catalog

    def close(self) -> None:
        """May be used again: then the catalog is opened anew."""
        if self._opened is not None and self._opened is not self._given:
            self._opened.close()
        self._opened = self._given

    # ── what works on it ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def connections(self) -> ConnectionStore:
        return self._find_connections()

    @cached_property
    def launchers(self) -> Launchers:
        from airflow_provider_mzshare.compute.launchers.registry import Launchers

        return Launchers(self.settings)

    def reconciler(self, *, stop_seconds: float | None = None) -> Reconciler:
        """:param stop_seconds: how long an app may take to end its current tick."""
        from airflow_provider_mzshare.control.supervision.reconciler import STOP_SECONDS, Reconciler

        grace = STOP_SECONDS if stop_seconds is None else stop_seconds
        return Reconciler(self.catalog, self.settings, self.connections, self.launchers, stop_seconds=grace)

    def backfill_starter(self, start: bool | None = None) -> BackfillStarter:
        """:param start: whether to start backfills that are not started; None: only if the app of their source runs."""
        from airflow_provider_mzshare.control.supervision.backfill_starter import BackfillStarter

        return BackfillStarter(self.catalog, self.settings, self.connections, self.launchers, start=start)

    def status_reader(self, *, ask_upstreams: bool = False) -> StatusReader:
        from airflow_provider_mzshare.control.supervision.status import StatusReader

        return StatusReader(self.catalog, self.launchers, self.connections if ask_upstreams else None)

    def waiter(
        self,
        item: SourceItem | TableItem,
        goal: Goal = "live",
        *,
        start: bool | None = None,
        max_lag: int = 1,
        report: Callable[[Progress], None] | None = None,
    ) -> Waiter:
        """Waits for a table, or for all tables of a source. :param start: as in ``backfill_starter``."""
        from airflow_provider_mzshare.control.supervision.live_wait import Waiter

        return Waiter(
            self.catalog,
            self.status_reader(),
            self.connections,
            item,
            goal,
            max_lag=max_lag,
            report=report or (lambda progress: None),
            bring_up=self.backfill_starter(start).bring_up,
            start_queued=self.reconciler().start_queued,
        )
