"""What the app that writes a table does between its ticks: compact small files, move ``since``.

One thing at a time, on a thread of its own: no tick waits for tidiness, and a failure costs nothing else. Files that
``since`` has passed are removed by maintenance, not here.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import MzShareError, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.check import check_collection
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.damage import in_collection, told
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten
from airflow_provider_mzshare.storage.writing.key_states import KeyStates

log = logging.getLogger(__name__)

COMMITS_BEFORE_COMPACTION = 60
VECTORS_WEIGH = 3
"""A commit to a collection with vectors counts for so many: a tick writes a vector for most of its small files."""
SINCE_SECONDS = 60.0


class Upkeep:
    """:param root: the warehouse.
    :param advance_since: moves ``since`` as the tables' retention says.
    :param note_damage: told what is wrong with a collection that cannot be compacted.
    :param states: what the app knows of collections whose rows change. Their files are written anew here, and put by
        the thread that commits ticks.
    """

    def __init__(
        self,
        root: str,
        advance_since: Callable[[], None],
        note_damage: Callable[[CollectionId, str], None],
        states: KeyStates,
    ) -> None:
        self._root, self._advance_since, self._note_damage = root, advance_since, note_damage
        self._states = states
        self._rewritten: Queue[tuple[CollectionId, Rewritten]] = Queue()
        self._commits: Counter[CollectionId] = Counter()
        self._asked: dict[CollectionId, None] = {}
        self._next_since = time.monotonic()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mzshare-upkeep")
        self._running: Future[None] | None = None

    def committed(self, collection: Collection) -> None:
        self._commits[collection.collection_id] += VECTORS_WEIGH if collection.has_vectors else 1

    def rewritten(self) -> Iterator[tuple[CollectionId, Rewritten]]:
        """Compactions of collections whose rows change that are written and wait to be put."""
        with suppress(Empty):
            while True:
                yield self._rewritten.get_nowait()

    def postpone(self, name: CollectionId) -> None:
        """Its compaction was not done: it is due again some commits later."""
        self._commits[name] += COMMITS_BEFORE_COMPACTION // 2

    def compact_all(self, names: Iterable[CollectionId]) -> None:
        """All of them, however few commits they have had."""
        self._asked.update(dict.fromkeys(names))

    def after_tick(self) -> None:
        """Begin the next thing that is due, unless the last one still runs."""
        if self._running is not None and not self._running.done():
            return
        name, count = max(self._commits.items(), key=lambda item: item[1], default=(CollectionId(""), 0))
        if count >= COMMITS_BEFORE_COMPACTION:
            del self._commits[name]
            self._running = self._thread.submit(self._try, lambda: self._compact(name, COMMITS_BEFORE_COMPACTION // 2))
        elif self._asked:
            asked = next(iter(self._asked))
            del self._asked[asked]
            self._commits.pop(asked, None)
            self._running = self._thread.submit(self._try, lambda: self._compact(asked, min_files=2))
        elif time.monotonic() >= self._next_since:
            self._next_since = time.monotonic() + SINCE_SECONDS
            self._running = self._thread.submit(self._try, self._advance_since)

    def close(self) -> None:
        """Wait for what runs: a compaction that is interrupted leaves files that no commit names."""
        self._thread.shutdown()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (MzShareError, OSError) as error:
            log.warning("upkeep was postponed: %s", error.line if isinstance(error, MzShareError) else error)

    def _compact(self, name: CollectionId, min_files: int) -> None:
        """With a handle of its own. Appends beside it do not conflict; a second compaction is refused by Delta.

        Where rows change, it is only written here. The thread that commits puts it on the version that it knows.
        """
        try:
            collection = Collection.open(self._root, name)
            if collection.keys:
                few = min_files // VECTORS_WEIGH if collection.has_vectors else min_files
                if rewritten := self._states.rewrite(collection, min_files=few):
                    self._rewritten.put((name, rewritten))
                return
            done = compact(collection, min_files=min_files)
        except WarehouseUnreachable:
            # Compaction reads old files, which no tick reads: it may be the first to meet a damage.
            if damages := check_collection(self._root, name).damages:
                self._note_damage(name, told(in_collection(name, damages)))
            raise
        if done.refused:
            self.postpone(name)
        log.info("%s compacted: %s files became %s", name, done.files_before, done.files_after)
