"""Looks where upstreams end whose apps do not run: so their keyed tables are stalled only where they may miss a delete.

Without these looks nobody would know when the records of that time were written (``core/ticklog/tombstones.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import func, select

from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import EndRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects.lookup import get_source_item
from airflow_provider_mzshare.control.upstreams import open_upstream
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.apps.end_watch import EndWatch

AFTER_MS = 120_000
"""Apps look at least once a minute. Where nobody has looked for this long, none does."""
SECONDS = 5.0
"""An upstream that does not answer must not hold up the others for long."""


class Unwatched:
    def __init__(self, catalog: Catalog, connections: ConnectionStore, *, clock: Callable[[], int] = wall_ms) -> None:
        self._catalog, self._connections, self._clock = catalog, connections, clock
        self._stores: dict[ItemId, CatalogTickStore] = {}

    def look(self) -> Mapping[ItemId, str]:
        """Which tables were stalled, and why. An upstream that is away is left for the next time."""
        stalled: dict[ItemId, str] = {}
        for source_id in self._sources():
            try:
                stalled |= self._look_at(source_id)
            except MzShareError:
                continue
        return stalled

    def _sources(self) -> Sequence[ItemId]:
        """Sources with keyed tables, of which somebody has looked before, but not lately."""
        keyed = select(TableRow.source_id).where(TableRow.keyed, TableRow.status != "dropped")
        newest = func.max(EndRow.at)
        query = select(EndRow.source_id).join(SourceRow, SourceRow.id == EndRow.source_id)
        query = query.where(SourceRow.status == "active", EndRow.source_id.in_(keyed)).group_by(EndRow.source_id)
        with self._catalog.read() as session:
            return session.scalars(query.having(newest < self._clock() - AFTER_MS).order_by(EndRow.source_id)).all()

    def _look_at(self, source_id: ItemId) -> Mapping[ItemId, str]:
        with self._catalog.read() as session:
            source = get_source_item(session, source_id)
        store = self._stores.setdefault(source_id, CatalogTickStore(self._catalog, source_id, clock=self._clock))
        with open_upstream(
            self._connections, source.spec, source.incarnation, timeout=SECONDS, journals=journals_of(self._catalog)
        ) as upstream:
            upstream.check_identity(source.incarnation)
            return EndWatch(upstream, store, JobId("reconciler")).look(store.load(), now=True)
