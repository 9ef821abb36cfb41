"""Writes down what an upstream tells that cannot be told twice: from its feed into partition 0 of the source's journal.

One thread, beside the ticks. Each connection to the upstream is an epoch of the partition: it is claimed, the last
boundary is looked up, and the feed begins there. After an error of the connection there is another epoch; a disk or a
catalog that does not answer is waited for. What is told is never held beyond one group.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

from airflow_provider_mzshare.connectors.base import Feed, Told
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import LeaseTaken, MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.lease import Heartbeat
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.journal.segment_file import SegmentExists
from airflow_provider_mzshare.storage.journal.tail import Part, Tail
from airflow_provider_mzshare.storage.journal.write_errors import NotWritten
from airflow_provider_mzshare.storage.journal.writer import claim_partition

log = logging.getLogger(__name__)

PARTITION = 0
READ_SECONDS = 0.5
CONFIRM_SECONDS = 1.0
"""How often it is asked which tick was committed last."""
RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
GRACE_SECONDS = 5.0
"""For how long a catalog that does not answer is asked when the app has to end; and what closing waits for at most."""


class Recorded(Protocol):
    """The log of the source whose upstream is recorded."""

    def check(self) -> None:
        """Raise Fenced unless the app still holds the source's lease."""
        ...

    def committed(self) -> int:
        """The upper of the last committed tick."""
        ...


class Recorder:
    """A context; it records until it is closed, or has met what only the app can decide (``check``).

    :param store: of the journal. :param root: the warehouse.
    :param open_feed: from the last boundary on.
    :param prepare: makes the journal's folder, if nobody has written there yet.
    """

    def __init__(
        self,
        store: JournalStore,
        root: str,
        job_id: JobId,
        open_feed: Callable[[int | None], Feed],
        source: Recorded,
        *,
        heartbeat_seconds: float,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._root, self._job_id, self._prepare = store, root, job_id, prepare
        self._open_feed, self._source, self._heartbeat_seconds = open_feed, source, heartbeat_seconds
        self._stopping = threading.Event()
        self._failure: MzShareError | None = None
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="mzshare-recorder", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """What holds it up just now."""
        return self._trouble

    def check(self) -> None:
        """Raise what ended it."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """An upstream that does not answer is not waited for: nothing of what it may still say counts."""
        self._stopping.set()
        self._thread.join(GRACE_SECONDS + READ_SECONDS)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── the thread ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self._record()
                failures = 0
            except (TransientError, LeaseTaken) as error:
                failures = 1 if self._trouble is None else failures + 1
                self._tell(error)
                self._stopping.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])
            except MzShareError as error:
                log.warning("the recorder of %s ends: %s", self._job_id, error.line)
                self._failure = error
                return
            except Exception as error:
                log.exception("the recorder of %s begins anew", self._job_id)
                failures += 1
                self._tell(RecorderFailed(f"the upstream's changes cannot be written down: {error!r}"))
                self._stopping.wait(RETRY_SECONDS[min(failures, len(RETRY_SECONDS)) - 1])

    def _record(self) -> None:
        """One epoch."""
        self._prepare()
        holder = self._claim()
        partition = self._store.partition(PARTITION)
        try:
            crashpoint("recorder_claimed")
            with Heartbeat(partition, holder, seconds=self._heartbeat_seconds):
                # Only now: whoever held the partition until then may have announced more.
                state = partition.load()
                boundary = state.segment.boundary if state.segment else None
                with self._open_feed(boundary) as feed:
                    crashpoint("feed_opened")
                    tail = Tail(
                        self._store,
                        self._root,
                        PARTITION,
                        holder,
                        end=state.end,
                        stopping=self._stopping,
                        grace=GRACE_SECONDS,
                        boundary=boundary,
                    )
                    _Epoch(feed, tail, self._root, self._source, self._stopping, self._tell).run()
        finally:
            self._release(holder)

    def _claim(self) -> Holder:
        """The partition's lease is looked at before the source's: so of two apps, only the one that holds the source
        finds what it has looked at unchanged. That it does is proof that the partition's holder has ended."""
        seen = self._store.partition(PARTITION).lease()
        self._source.check()
        return claim_partition(self._store, self._root, PARTITION, self._job_id, stood_still=seen)

    def _release(self, holder: Holder) -> None:
        try:
            self._store.partition(PARTITION).release(holder)
        except MzShareError as error:
            log.info("%s could not release the journal: %s", self._job_id, error)

    def _tell(self, error: MzShareError | None) -> None:
        if error is not None and error.line != self._trouble:
            log.warning("%s does not record: %s", self._job_id, error.line)
        self._trouble = None if error is None else error.line


class RecorderFailed(TransientError):
    """Nobody foresaw it: the app says so, and the recorder begins anew."""


class _Epoch:
    def __init__(
        self,
        feed: Feed,
        tail: Tail,
        root: str,
        source: Recorded,
        stopping: threading.Event,
        tell: Callable[[MzShareError | None], None],
    ) -> None:
        self._feed, self._tail, self._root, self._source = feed, tail, root, source
        self._stopping, self._tell = stopping, tell
        self._asked_at = 0.0

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                told = self._feed.read(READ_SECONDS)
                if told is not None:
                    self._insist(told)
                self._tell(None)
                self._confirm()
        finally:
            self._tail.give_up()

    def _insist(self, told: Told) -> None:
        """Write it, and again in another file where the storage or a name stood in the way: nothing of it counted."""
        if told.prologue is not None:
            self._tail.begin(told.prologue)
        for attempt in count():
            try:
                self._write(told)
                return
            except SegmentExists as error:
                log.info("%s", error)
            except OSError as error:
                self._tell(NotWritten(self._root, error, then="the app goes on by itself"))
                self._stopping.wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            self._tail.give_up()
            if self._stopping.is_set():
                return

    def _write(self, told: Told) -> None:
        known = self._tail.boundary
        boundary = told.boundary if told.boundary is not None and (known is None or told.boundary > known) else None
        if told.messages.num_rows:
            self._tail.write([Part(told.messages)], boundary=boundary)
        elif boundary is not None:
            self._tail.move(boundary)

    def _confirm(self) -> None:
        """What committed ticks have read, nobody needs from the upstream any more; never more than is announced."""
        if time.monotonic() < self._asked_at + CONFIRM_SECONDS or self._tail.boundary is None:
            return
        self._asked_at = time.monotonic()
        try:
            committed = self._source.committed()
        except TransientError as error:
            log.info("the upstream keeps what it might forget: %s", error)
            return
        self._feed.confirm(min(committed, self._tail.boundary))
        crashpoint("confirmed")
