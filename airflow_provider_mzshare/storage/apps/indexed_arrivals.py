"""Keyed tables that come, or come back: their indexes are made beside the ticks, and only then they become members.

They are followed by themselves meanwhile, so nothing waits: neither the ticks for the indexes, nor the tables for
anything else.
"""

from __future__ import annotations

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.backfill_rules import converging_keyed
from airflow_provider_mzshare.core.ticklog.state import Generation, SourceState
from airflow_provider_mzshare.core.ticklog.stores import TickStore
from airflow_provider_mzshare.storage.writing.indexing import Indexing


class IndexedArrivals:
    """``look`` is for one thread; ``ready`` for any."""

    def __init__(self, store: TickStore, indexing: Indexing) -> None:
        self._store, self._indexing = store, indexing
        self._names: dict[Generation, CollectionId] = {}

    def look(self, state: SourceState) -> None:
        """With each look at the catalog: indexes follow what the backfills have committed since the last one."""
        coming = converging_keyed(state)
        if not coming and not self._names:
            return
        names = {one: name for one, name in self._names.items() if one in coming}
        if new := coming - names.keys():
            found = self._store.generations(new)
            names |= {(member.table_id, member.generation): member.data for member in found}
        gone = self._names.keys() - names.keys()
        left = [self._names[one] for one in gone if not _has_joined(state, one)]
        self._names = names
        for name in left:
            self._indexing.forget(name)
        self._indexing.want(names.values())

    def ready(self) -> frozenset[Generation]:
        """Those that a tick may make members."""
        return frozenset(one for one, name in self._names.items() if self._indexing.is_ready(name))


def _has_joined(state: SourceState, one: Generation) -> bool:
    table = state.tables.get(one[0])
    return table is not None and table.identity == one and table.status == "live"
