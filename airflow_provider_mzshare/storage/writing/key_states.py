"""What an app knows of the rows of its tables that change, table by table, in a folder of the job's own.

Whoever commits to a collection takes its state, and from then on nobody else moves it. Before that it may be made, and
brought on, beside the ticks (``indexing``). A state whose index would take long to be made is not taken, or given back:
its table leaves the ticks, and until it comes back the state is lent for one commit at a time.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Collection as Ids
from collections.abc import Iterator
from contextlib import contextmanager
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
from airflow_provider_mzshare.storage.collections.vectors.state import IndexLate, KeyState, rows_in

log = logging.getLogger(__name__)

SHORT_SECONDS = 0.3
"""An entry may take as long to follow as the index to be made: so it is with a compaction. No tick waits for that."""
FEW_ROWS = 100_000
"""The index of so many is made within some hundredths of a second: that is not worth to leave the ticks for."""
TOLD_SECONDS = 0.1
"""A commit that waits longer for what is made beside it says so in the log."""


@dataclass(eq=False)
class _Kept:
    """:param lock: held by whoever moves the state while it is not taken.
    :param is_taken: a thread that commits has it, until it gives it back.
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
        self.needless: set[CollectionId] = set()
        """Those that have no index, or whose commit will say why there is none: they are not waited for."""

    def take(self, collection: Collection) -> bool:
        """For a thread that commits and waits for no index; False if it would have to."""
        if not collection.has_vectors:
            return True
        kept = self._kept(collection)
        if kept.is_taken and kept.state.version is not None:
            return True
        is_short = self._is_short(collection)
        if not kept.lock.acquire(timeout=-1 if is_short else SHORT_SECONDS):
            return False
        try:
            kept.is_taken = is_short or kept.state.version is not None
            return kept.is_taken
        finally:
            kept.lock.release()

    def _is_short(self, collection: Collection) -> bool:
        return collection.collection_id in self.needless or rows_in(collection) <= FEW_ROWS

    def give_back(self, collection: Collection, why: IndexLate) -> None:
        """Its table leaves, and comes back when the index is there: it may be made beside the ticks."""
        log.warning("%s; its table leaves the ticks until that is done", why)
        self._kept(collection).is_taken = False

    @contextmanager
    def commits_to(self, collection: Collection) -> Iterator[None]:
        """Around each commit."""
        yield

    def rows_of(self, collection: Collection, most: int | None = None) -> KeyedRows:
        """How the rows of a collection with keys are found and changed, for the thread that commits to it.

        If its index is made beside the ticks at this moment, that is waited for.

        :param most: see ``KeyState.bring_to``.
        """
        if not collection.has_vectors:
            return MERGED
        kept, began = self._kept(collection), time.monotonic()
        with kept.lock:
            kept.is_taken = True
        if (waited := time.monotonic() - began) > TOLD_SECONDS:
            log.info("%s: the commit waited %.2f s for its index", collection.collection_id, waited)
        return VectorRows(kept.state, None if collection.collection_id in self.needless else most)

    def bring(self, collection: Collection) -> None:
        """Beside the ticks: make the index, or bring it to the version that is loaded, unless it is taken by now, or a
        commit that it was lent for has brought it further.

        :param collection: a handle of the calling thread's own. Raises ``Interrupted`` if nobody wants it any more.
        """
        if not collection.has_vectors:
            return
        kept = self._kept(collection)
        try:
            with kept.lock:
                at = kept.state.version
                if not kept.is_taken and (at is None or at < collection.delta_version):
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

    def put_rewritten(self, collection: Collection, done: Rewritten, most: int | None = None) -> bool:
        """By the thread that commits ticks. False if it was not put: files and rows are as they were.

        Whatever fails, the table's next tick meets it too, and says so.

        :param most: see ``KeyState.bring_to``.
        """
        name = collection.collection_id
        state = self._taken(collection)
        if collection.has_vectors and state is None:
            return False
        try:
            is_put = put_rewritten(collection, state, done, most)
        except (IndexLate, MzShareError, OSError, ValueError, LookupError, pa.ArrowException, DeltaError) as error:
            log.warning("%s: a compaction was not put: %s", name, brief(error))
            return False
        if is_put:
            log.info("%s compacted: %s files became %s", name, len(done.inputs), len(done.outputs))
        return is_put

    def _taken(self, collection: Collection) -> KeyState | None:
        kept = self._states.get(collection.collection_id)
        return kept.state if kept is not None and kept.is_taken else None


class LentStates(KeyStates):
    """The states of an ingestion app, for a backfill that it executes itself: each is lent for one commit.

    Compactions are left to whoever takes a state.
    """

    def __init__(self, owner: KeyStates) -> None:
        self._folder, self._memory = owner._folder, owner._memory
        self._states, self._guard, self.needless = owner._states, owner._guard, owner.needless

    @contextmanager
    def commits_to(self, collection: Collection) -> Iterator[None]:
        """Nobody else moves the state meanwhile, and the table is no member before the commit is known."""
        if not collection.has_vectors:
            yield
            return
        kept = self._kept(collection)
        try:
            with kept.lock:
                yield
        finally:
            if kept.is_gone:
                self._end(kept)

    def rows_of(self, collection: Collection, most: int | None = None) -> KeyedRows:
        return VectorRows(self._kept(collection).state) if collection.has_vectors else MERGED

    def keep(self, names: Ids[CollectionId]) -> None:
        """The owner knows which tables there are."""

    def close(self) -> None:
        """The owner does."""
