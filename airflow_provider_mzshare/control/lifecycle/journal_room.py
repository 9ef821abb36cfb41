"""What a journal must be to be pushed into: not full (``MAX JOURNAL``), and not behind its own readers."""

from __future__ import annotations

import time

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.catalog.objects.lookup import SourceItem, get_live_item
from airflow_provider_mzshare.control.sql.sizes import format_size
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.rules import JournalBehind
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.errors import TransientError, UnknownItem

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


def check_not_behind(catalog: Catalog, source: SourceItem, store: JournalStore) -> None:
    """Raise JournalBehind if ticks have records that the catalog does not know of any more.

    What is pushed now would get their offsets, and would never be read.
    """
    with catalog.read() as session:
        read = load_state(session, get_source(session, source.id)).upper
    ends = {str(state.partition): state.end for state in store.partitions()}
    for partition, upper in read.entries:
        if upper > ends.get(partition, 0):
            raise JournalBehind(
                int(partition), f"it ends at {ends.get(partition, 0)}, and tables have been given all up to {upper}"
            )


class JournalRoom:
    """Use it from one thread."""

    def __init__(self, catalog: Catalog, source: SourceItem) -> None:
        self._catalog, self._source = catalog, source
        self._journal = CatalogJournal(catalog, JournalId(source.incarnation))
        self._next = 0.0

    def check(self) -> None:
        """Raises JournalFull, or UnknownItem once the source is dropped. The setting may be changed at any time."""
        if time.monotonic() < self._next:
            return
        with self._catalog.read() as session:
            source = get_live_item(session, self._source.id)
        if not isinstance(source, SourceItem):
            raise UnknownItem("source", self._source.display)
        limit = source.settings.max_journal_bytes
        if limit is not None:
            size = sum(state.size for state in self._journal.partitions())
            if size >= limit:
                raise JournalFull(self._source.display, size, limit)
        self._next = time.monotonic() + LOOK_SECONDS
