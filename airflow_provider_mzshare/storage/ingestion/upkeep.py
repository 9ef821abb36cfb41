"""What a table's owner does between two of its ticks: compact small files, remove what no read can need any more.

One thing at a time, so that a tick never waits for long; a failure costs tidiness, never a tick.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.collections import Collection
from airflow_provider_mzshare.storage.compaction import compact
from airflow_provider_mzshare.storage.maintenance import expire
from airflow_provider_mzshare.types.ids import CollectionId

log = logging.getLogger(__name__)

COMMITS_BEFORE_COMPACTION = 60
RETENTION_SECONDS = 600.0


class Upkeep:
    """:param advance_since: moves ``since`` and says from which version on each collection is needed."""

    def __init__(self, advance_since: Callable[[], Mapping[CollectionId, int]]) -> None:
        self._advance_since = advance_since
        self._commits: Counter[CollectionId] = Counter()
        self._needed: dict[CollectionId, int] = {}
        self._expired: dict[CollectionId, int] = {}
        self._next_look = time.monotonic()

    def committed(self, collection_id: CollectionId) -> None:
        self._commits[collection_id] += 1

    def between_ticks(self, collections: Mapping[CollectionId, Collection]) -> None:
        try:
            self._one_thing(collections)
        except (MzShareError, OSError) as error:
            log.warning("upkeep was put off: %s", error.line if isinstance(error, MzShareError) else error)

    def _one_thing(self, collections: Mapping[CollectionId, Collection]) -> None:
        name, count = max(self._commits.items(), key=lambda item: item[1], default=("", 0))
        if count >= COMMITS_BEFORE_COMPACTION:
            del self._commits[CollectionId(name)]
            done = compact(collections[CollectionId(name)], min_files=COMMITS_BEFORE_COMPACTION // 2)
            log.info("%s compacted: %s files became %s", name, done.files_before, done.files_after)
        elif self._needed:
            self._expire(*self._needed.popitem(), collections)
        elif time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + RETENTION_SECONDS
            self._needed = {n: v for n, v in self._advance_since().items() if v > self._expired.get(n, 0)}

    def _expire(self, name: CollectionId, version: int, collections: Mapping[CollectionId, Collection]) -> None:
        if name in collections:
            gone = expire(collections[name], keep_from_version=version, now=datetime.now(timezone.utc))
            self._expired[name] = version
            log.info("%s: %s files below version %s removed", name, len(gone.data_files), version)
