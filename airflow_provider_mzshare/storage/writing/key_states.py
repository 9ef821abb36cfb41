"""What an app knows of the rows of its tables that change, table by table, in a folder of the job's own."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection as Ids
from pathlib import Path

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import TARGET_SIZE
from airflow_provider_mzshare.storage.collections.faults import check_room
from airflow_provider_mzshare.storage.collections.keyed import KeyedRows
from airflow_provider_mzshare.storage.collections.merging import MERGED
from airflow_provider_mzshare.storage.collections.vectors.committing import VectorRows, put_rewritten
from airflow_provider_mzshare.storage.collections.vectors.live_files import live_files
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewriting, Rewritten, choose
from airflow_provider_mzshare.storage.collections.vectors.state import KeyState

log = logging.getLogger(__name__)


class KeyStates:
    """Different collections may be asked for by different threads; each of them by one at a time.

    :param folder: made when it is needed, removed by ``close``.
    :param memory: what the indexes of all of them may take; those that do not fit are on disk. None: all they need.
    """

    def __init__(self, folder: Path, memory: IndexMemory | None = None) -> None:
        self._folder, self._memory = folder, memory or IndexMemory()
        self._states: dict[CollectionId, KeyState] = {}

    def rows_of(self, collection: Collection) -> KeyedRows:
        """How the rows of a collection with keys are found and changed."""
        if not collection.has_vectors:
            return MERGED
        name = collection.collection_id
        if name not in self._states:
            self._states[name] = KeyState(self._folder / name, collection.keys, self._memory.share())
        return VectorRows(self._states[name])

    def keep(self, names: Ids[CollectionId]) -> None:
        """Let go of all others: their tables have left."""
        for name in [name for name in self._states if name not in names]:
            self._states.pop(name).close()

    def close(self) -> None:
        self.keep(())
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def on_disk(self) -> int:
        """How many indexes do not fit into the memory."""
        return sum(state.disk_bytes > 0 for state in list(self._states.values()))

    # ── compaction ────────────────────────────────────────────────────────────────────────────────────────────────────

    def rewrite(self, collection: Collection, *, min_files: int, target_size: int = TARGET_SIZE) -> Rewritten | None:
        """Write what is to take the place of small and worn files, beside the ticks. None if there are too few.

        :param collection: a handle of the calling thread's own.
        """
        state = self._states.get(collection.collection_id)
        mirror = state.mirror if state is not None else None
        if state is None or mirror is None:
            return None
        found = live_files(collection.filesystem, collection.delta_version)
        chosen = choose(found.files.values(), min_files=min_files, target_size=target_size)
        if not chosen:
            return None
        # A compaction that fails halfway leaves files on a disk that has no room for them.
        check_room(collection.root, sum(file.size for file in chosen))
        return Rewriting(collection, collection.schema, mirror, state.numbers, target_size=target_size).run(chosen)

    def put_rewritten(self, collection: Collection, done: Rewritten) -> None:
        """By the thread that commits ticks."""
        state = self._states.get(collection.collection_id)
        if state is not None and put_rewritten(collection, state, done):
            before, after = len(done.inputs), len(done.outputs)
            log.info("%s compacted: %s files became %s", collection.collection_id, before, after)
