"""``MAX JOURNAL``: how large a source's journal may become. New records are refused; nothing that is needed goes."""

from __future__ import annotations

import time

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.catalog.objects.lookup import SourceItem, get_source_item
from airflow_provider_mzshare.control.sql.sizes import format_size
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.errors import TransientError

LOOK_SECONDS = 1.0
"""Between two looks; what is pushed meanwhile may be too much."""


class JournalFull(TransientError):
    """:param size: of its files, in bytes. :param limit: what they may be."""

    def __init__(self, source: str, size: int, limit: int) -> None:
        self.source, self.size, self.limit = source, size, limit
        larger = hints.sql(f"ALTER SOURCE {source} SET (MAX JOURNAL '{format_size(limit * 2)}')")
        super().__init__(
            f"the journal of source {source} has {size:,} bytes and may have {limit:,}, so nothing was taken",
            hint=f"mzshare maintain, which removes what is older than RETAIN JOURNAL FOR and nobody needs; or {larger}",
        )


class JournalRoom:
    """Use it from one thread."""

    def __init__(self, catalog: Catalog, source: SourceItem) -> None:
        self._catalog, self._source = catalog, source
        self._journal = CatalogJournal(catalog, JournalId(source.incarnation))
        self._next = 0.0

    def check(self) -> None:
        """Raises JournalFull. The setting may be changed at any time."""
        if time.monotonic() < self._next:
            return
        with self._catalog.read() as session:
            limit = get_source_item(session, self._source.id).settings.max_journal_bytes
        if limit is not None:
            size = sum(state.size for state in self._journal.partitions())
            if size >= limit:
                raise JournalFull(self._source.display, size, limit)
        self._next = time.monotonic() + LOOK_SECONDS
