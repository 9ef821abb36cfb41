"""Makes the indexes of keyed tables beside the ticks, and brings them on, one after the other on a thread of its own.

Nothing depends on it but time: what is not made here is made by the thread that commits, when it needs it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.storage.collections.collection import Collection, collection_exists
from airflow_provider_mzshare.storage.collections.vectors.state import Interrupted
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.writing.key_states import SHORT_SECONDS, KeyStates

log = logging.getLogger(__name__)


class Indexing:
    """:param root: the warehouse. :param states: closed with it."""

    def __init__(self, root: str, states: KeyStates) -> None:
        self._root, self.states = root, states
        self._guard = threading.Lock()
        self._asked: set[CollectionId] = set()
        self._ended = False
        self._doing: tuple[CollectionId | None, float] = (None, 0.0)
        """What is being made or brought on, and since when."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mzshare-index")

    def want(self, names: Iterable[CollectionId]) -> None:
        """Make these indexes, in this order, or bring them to the newest version. Want one again to let it follow."""
        with self._guard:
            new = [name for name in dict.fromkeys(names) if name not in self._asked]
            self._asked.update(new)
        for name in new:
            self._thread.submit(self._bring, name)

    def is_ready(self, name: CollectionId) -> bool:
        """It was made, is at most a few entries behind, and nobody has taken it; or there is none to be waited for."""
        doing, since = self._doing
        if doing == name and time.monotonic() - since > SHORT_SECONDS:
            return False
        return name in self.states.needless or self.states.is_made(name)

    def forget(self, name: CollectionId) -> None:
        """Nobody will commit to it."""
        with self._guard:
            self._asked.discard(name)
        self.states.needless.discard(name)
        self.states.forget(name)

    def close(self) -> None:
        with self._guard:
            self._ended = True
        self.states.interrupt()
        self._thread.shutdown(cancel_futures=True)
        self.states.close()

    def _bring(self, name: CollectionId) -> None:
        with self._guard:
            if self._ended or name not in self._asked:
                return
            self._asked.discard(name)
        self._doing = name, time.monotonic()
        try:
            is_needless = not self._made(name)
        except Interrupted:
            is_needless = False
        except Exception as error:  # noqa: BLE001  whatever it is, a commit meets it too, and says whose it is
            log.warning("%s: its index cannot be made beside the ticks: %s", name, error)
            # What may go by is tried again at the next look, and no tick waits for it meanwhile.
            is_needless = not isinstance(error, TransientError) and not fault_of(error)
        finally:
            self._doing = None, 0.0
        (self.states.needless.add if is_needless else self.states.needless.discard)(name)

    def _made(self, name: CollectionId) -> bool:
        """False if there is nothing to make."""
        if not collection_exists(self._root, name):
            return False
        collection = Collection.open(self._root, name)
        self.states.bring(collection)
        return collection.has_vectors
