"""What an app knows of the rows of its tables that change, table by table, in a folder of the job's own."""

from __future__ import annotations

import logging
from collections.abc import Collection as Ids
from itertools import count
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import DeltaError

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import TARGET_SIZE
from airflow_provider_mzshare.storage.collections.damage import brief
from airflow_provider_mzshare.storage.collections.faults import check_room
from airflow_provider_mzshare.storage.collections.keyed import KeyedRows
from airflow_provider_mzshare.storage.collections.merging import MERGED
from airflow_provider_mzshare.storage.collections.vectors.committing import VectorRows, put_rewritten
from airflow_provider_mzshare.storage.collections.vectors.live_files import files_at
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewriting, Rewritten, choose
from airflow_provider_mzshare.storage.collections.vectors.state import KeyState

log = logging.getLogger(__name__)


class KeyStates:
    """Different collections may be asked for by different threads; each of them by one at a time.

    :param folder: made when it is needed, removed by ``close``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._states: dict[CollectionId, KeyState] = {}

    def rows_of(self, collection: Collection) -> KeyedRows:
        """How the rows of a collection with keys are found and changed."""
        if not collection.has_vectors:
            return MERGED
        name = collection.collection_id
        if name not in self._states:
            self._states[name] = KeyState(self._folder / name, collection.keys)
        return VectorRows(self._states[name])

    def keep(self, names: Ids[CollectionId]) -> None:
        """Let go of all others: their tables have left."""
        for name in [name for name in self._states if name not in names]:
            self._states.pop(name).close()

    def close(self) -> None:
        self.keep(())

    # ── compaction ────────────────────────────────────────────────────────────────────────────────────────────────────

    def rewrite(self, collection: Collection, *, min_files: int, target_size: int = TARGET_SIZE) -> Rewritten | None:
        """Write what is to take the place of small and worn files, beside the ticks. None if there are too few.

        :param collection: a handle of the calling thread's own.
        """
        state = self._states.get(collection.collection_id)
        mirror = state.mirror if state is not None else None
        if collection.has_vectors and mirror is None:
            return None
        found = files_at(collection)
        chosen = choose(found.files.values(), min_files=min_files, target_size=target_size)
        if not chosen:
            return None
        # A compaction that fails halfway leaves files on a disk that has no room for them.
        check_room(collection.root, sum(file.size for file in chosen))
        numbers = state.numbers if state is not None else count()
        return Rewriting(collection, collection.schema, mirror, numbers, target_size=target_size).run(chosen)

    def put_rewritten(self, collection: Collection, done: Rewritten) -> bool:
        """By the thread that commits ticks. False if it was not put: files and rows are as they were.

        Whatever fails, the table's next tick meets it too, and says so.
        """
        name = collection.collection_id
        state = self._states.get(name)
        if collection.has_vectors and state is None:
            return False
        try:
            is_put = put_rewritten(collection, state if collection.has_vectors else None, done)
        except (MzShareError, OSError, ValueError, LookupError, pa.ArrowException, DeltaError) as error:
            log.warning("%s: a compaction was not put: %s", name, brief(error))
            return False
        if is_put:
            log.info("%s compacted: %s files became %s", name, len(done.inputs), len(done.outputs))
        return is_put
