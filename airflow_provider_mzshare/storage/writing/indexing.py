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
from airflow_provider_mzshare.storage.writing.key_states import KeyStates

SHORT_SECONDS = 0.3
"""An entry may take as long to follow as the index to be made: so it is with a compaction. No tick waits for that."""

log = logging.getLogger(__name__)


class Indexing:
    """:param root: the warehouse. :param states: closed with it."""

    def __init__(self, root: str, states: KeyStates) -> None:
        self._root, self.states = root, states
        self._guard = threading.Lock()
        self._asked: set[CollectionId] = set()
        self._ready: set[CollectionId] = set()
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
        """It was made and is at most a few entries behind; or there is none to be waited for."""
        doing, since = self._doing
        return name in self._ready and not (doing == name and time.monotonic() - since > SHORT_SECONDS)

    def forget(self, name: CollectionId) -> None:
        """Nobody will commit to it."""
        with self._guard:
            self._asked.discard(name)
        self._ready.discard(name)
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
            if collection_exists(self._root, name):
                self.states.bring(Collection.open(self._root, name))
        except Interrupted:
            return
        except Exception as error:  # noqa: BLE001  whatever it is, a commit meets it too, and says whose it is
            log.warning("%s: its index cannot be made beside the ticks: %s", name, error)
            if isinstance(error, TransientError) or fault_of(error):
                # It may go by: the next look tries again, and nobody waits for it in a tick meanwhile.
                self._ready.discard(name)
                return
        finally:
            self._doing = None, 0.0
        self._ready.add(name)
