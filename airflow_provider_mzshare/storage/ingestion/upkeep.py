"""What a table's owner does between two of its ticks: compact small files, one collection at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.collections import Collection
from airflow_provider_mzshare.storage.compaction import compact
from airflow_provider_mzshare.types.ids import CollectionId

log = logging.getLogger(__name__)

COMMITS_BEFORE_COMPACTION = 60


class Upkeep:
    """Counts commits per collection and compacts the one that has waited longest, at most one between two ticks."""

    def __init__(self, *, after_commits: int = COMMITS_BEFORE_COMPACTION) -> None:
        self._after = after_commits
        self._commits: Counter[CollectionId] = Counter()

    def committed(self, collection_id: CollectionId) -> None:
        self._commits[collection_id] += 1

    def between_ticks(self, collections: Mapping[CollectionId, Collection]) -> None:
        due = [(count, name) for name, count in self._commits.items() if count >= self._after]
        if not due:
            return
        _, name = max(due)
        del self._commits[name]
        try:
            done = compact(collections[name], min_files=self._after // 2)
        except MzShareError as error:
            # Small files cost reads a little; a tick must not wait for tidiness.
            log.warning("%s was not compacted: %s", name, error.line)
            return
        log.info("%s compacted: %s files became %s", name, done.files_before, done.files_after)
