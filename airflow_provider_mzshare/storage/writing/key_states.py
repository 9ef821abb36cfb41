"""What an app knows of the rows of its tables that change, table by table, in a folder of the job's own.

Whoever commits to a collection takes its state, and from then on nobody else moves it. Before that it may be made, and
brought on, beside the ticks (``indexing``).
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Collection as Ids
from dataclasses import dataclass, field
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
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewriting, Rewritten, choose
from airflow_provider_mzshare.storage.collections.vectors.state import KeyState

log = logging.getLogger(__name__)

TOLD_SECONDS = 0.1
"""A commit that waits longer for what is made beside it says so in the log."""


@dataclass(eq=False)
class _Kept:
    """:param lock: held by whoever moves the state while it is not taken.
    :param is_taken: a thread that commits has it. Never undone.
    :param is_gone: nobody wants it any more; who holds the lock then closes it.
    """

    state: KeyState
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_taken: bool = False
    is_gone: bool = False


class KeyStates:
    """Different threads may commit to different collections, one to each, while another one makes indexes beside them.

    :param folder: made when it is needed, removed by ``close``.
    :param memory: what the indexes of all of them may take; those that do not fit are on disk. None: all they need.
    """

    def __init__(self, folder: Path, memory: IndexMemory | None = None) -> None:
        self._folder, self._memory = folder, memory or IndexMemory()
        self._states: dict[CollectionId, _Kept] = {}
        self._guard = threading.Lock()

    def rows_of(self, collection: Collection) -> KeyedRows:
        """How the rows of a collection with keys are found and changed, for the thread that commits to it.

        If its index is made beside the ticks at this moment, that is waited for.
        """
        if not collection.has_vectors:
            return MERGED
        kept, began = self._kept(collection), time.monotonic()
        with kept.lock:
            kept.is_taken = True
        if (waited := time.monotonic() - began) > TOLD_SECONDS:
            log.info("%s: the commit waited %.2f s for its index", collection.collection_id, waited)
        return VectorRows(kept.state)

    def bring(self, collection: Collection) -> None:
        """Beside the ticks: make the index, or bring it to the version that is loaded, unless it is taken by now.

        :param collection: a handle of the calling thread's own. Raises ``Interrupted`` if nobody wants it any more.
        """
        if not collection.has_vectors:
            return
        kept = self._kept(collection)
        try:
            with kept.lock:
                if not kept.is_taken:
                    kept.state.bring_to(collection)
        finally:
            if kept.is_gone:
                self._end(kept)

    def is_made(self, name: CollectionId) -> bool:
        """Whether it is there, for somebody to take. One that is taken belongs to a member, or to one that has left."""
        kept = self._states.get(name)
        return kept is not None and not kept.is_taken and kept.state.version is not None

    def _kept(self, collection: Collection) -> _Kept:
        name = collection.collection_id
        with self._guard:
            if name not in self._states:
                state = KeyState(self._folder / name, collection.keys, self._memory.share())
                self._states[name] = _Kept(state)
            return self._states[name]

    def keep(self, names: Ids[CollectionId]) -> None:
        """Of those that are committed to, let go of all others: their tables have left."""
        with self._guard:
            others = [name for name, kept in self._states.items() if kept.is_taken and name not in names]
        for name in others:
            self._let_go(name)

    def forget(self, name: CollectionId) -> None:
        """Nobody will commit to it. One that is taken stays until ``keep``: a commit may use it at this moment."""
        with self._guard:
            kept = self._states.get(name)
        if kept is not None and not kept.is_taken:
            self._let_go(name)

    def _let_go(self, name: CollectionId) -> None:
        with self._guard:
            kept = self._states.pop(name, None)
        if kept is not None:
            kept.is_gone = True
            kept.state.interrupt()
            self._end(kept)

    @staticmethod
    def _end(kept: _Kept) -> None:
        """Nobody waits for a state that is just being made: who makes it ends it."""
        if kept.lock.acquire(blocking=False):
            try:
                kept.state.close()
            finally:
                kept.lock.release()

    def close(self) -> None:
        """No thread uses any of them."""
        for name in list(self._states):
            self._let_go(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def interrupt(self) -> None:
        """Nothing is made beside the ticks any more."""
        with self._guard:
            waiting = [kept for kept in self._states.values() if not kept.is_taken]
        for kept in waiting:
            kept.state.interrupt()

    @property
    def on_disk(self) -> int:
        """How many indexes do not fit into the memory."""
        with self._guard:
            return sum(kept.state.disk_bytes > 0 for kept in self._states.values())

    # ── compaction ────────────────────────────────────────────────────────────────────────────────────────────────────

    def rewrite(self, collection: Collection, *, min_files: int, target_size: int = TARGET_SIZE) -> Rewritten | None:
        """Write what is to take the place of small and worn files, beside the ticks. None if there are too few.

        :param collection: a handle of the calling thread's own.
        """
        state = self._taken(collection)
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
        state = self._taken(collection)
        if collection.has_vectors and state is None:
            return False
        try:
            is_put = put_rewritten(collection, state, done)
        except (MzShareError, OSError, ValueError, LookupError, pa.ArrowException, DeltaError) as error:
            log.warning("%s: a compaction was not put: %s", name, brief(error))
            return False
        if is_put:
            log.info("%s compacted: %s files became %s", name, len(done.inputs), len(done.outputs))
        return is_put

    def _taken(self, collection: Collection) -> KeyState | None:
        kept = self._states.get(collection.collection_id)
        return kept.state if kept is not None and kept.is_taken else None
