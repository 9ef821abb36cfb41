"""What a table's owner does between two of its ticks: compact small files, move ``since``.

One thing at a time, so that a tick never waits for long; a failure costs tidiness, never a tick. Files that ``since``
has passed are removed by maintenance, not here: finding them takes too long for the time between two ticks.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping

from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.collections import Collection
from airflow_provider_mzshare.storage.compaction import compact
from airflow_provider_mzshare.types.ids import CollectionId

log = logging.getLogger(__name__)

COMMITS_BEFORE_COMPACTION = 60
SINCE_SECONDS = 60.0


class Upkeep:
    """:param advance_since: moves ``since`` as the tables' retention says."""

    def __init__(self, advance_since: Callable[[], None]) -> None:
        self._advance_since = advance_since
        self._commits: Counter[CollectionId] = Counter()
        self._next_since = time.monotonic()

    def committed(self, collection_id: CollectionId) -> None:
        self._commits[collection_id] += 1

    def between_ticks(self, collections: Mapping[CollectionId, Collection]) -> None:
        try:
            self._one_thing(collections)
        except (MzShareError, OSError) as error:
            log.warning("upkeep was put off: %s", error.line if isinstance(error, MzShareError) else error)

    def _one_thing(self, collections: Mapping[CollectionId, Collection]) -> None:
        name, count = max(self._commits.items(), key=lambda item: item[1], default=(CollectionId(""), 0))
        if count >= COMMITS_BEFORE_COMPACTION:
            del self._commits[name]
            done = compact(collections[name], min_files=COMMITS_BEFORE_COMPACTION // 2)
            log.info("%s compacted: %s files became %s", name, done.files_before, done.files_after)
        elif time.monotonic() >= self._next_since:
            self._next_since = time.monotonic() + SINCE_SECONDS
            self._advance_since()
