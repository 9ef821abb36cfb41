"""The writer of a partition of a journal: many threads append; one writes for all of them, flushes and announces once.

A message is acknowledged when it is durable and announced. Whoever cannot be told so is told what is known instead:
that the message does not count, or (``AnswerMissing``) that nobody knows.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from airflow_provider_mzshare.core.ids import JobId, JournalId
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.rules import AnnouncedOtherwise, BatchDiffers, DuplicateBatch
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import LeaseTaken, LogConflict, MzShareError, TransientError
from airflow_provider_mzshare.storage.apps.lease import Heartbeat
from airflow_provider_mzshare.storage.journal.cutting import weight
from airflow_provider_mzshare.storage.journal.looking import look
from airflow_provider_mzshare.storage.journal.rows import Messages, as_arrow, weight_of
from airflow_provider_mzshare.storage.journal.segment_file import SegmentExists
from airflow_provider_mzshare.storage.journal.tail import Part, Tail
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged, Answer, BatchMark, Waiting, WaitingLine
from airflow_provider_mzshare.storage.journal.write_errors import (
    AnswerMissing,
    BatchTooLarge,
    NotWritten,
    PreviousNotTaken,
    WriterClosed,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """By weight (``cutting.weights``): about the memory that messages take."""

    group: int = 16 << 20
    """What one announcement takes, if it is of several senders."""
    batch: int = 32 << 20
    """What a batch may have, which is announced at once whatever else waits."""
    waiting: int = 64 << 20
    """What waits or is under way. Whoever appends more is held up."""


LIMITS = Limits()
ATTEMPTS = 20
"""To write a group: each one fails for a batch that another writer has announced meanwhile, so two are many."""


def claim_partition(
    store: JournalStore, root: str, partition: int, job_id: JobId, *, stood_still: Lease | None = None
) -> Holder:
    """Become the writer of a partition. Raises LeaseTaken, or JournalBehind when its files tell of more than the
    catalog knows.

    :param stood_still: its lease, if it has not changed for as long as a lease lasts.
    """
    owned = store.partition(partition)
    # The files first: what another writer does meanwhile, the catalog knows when it is asked.
    try:
        found = look(root, store.journal, owned.load())
    except OSError as error:
        raise NotWritten(root, error) from error
    state = owned.load()
    rules.check_files(state, found)
    if state.lease.job_id is not None and state.lease != stood_still:
        raise LeaseTaken(f"partition {partition} is held by job {state.lease.job_id}, which is alive")
    return owned.claim(job_id, stood_still=state.lease)


class JournalWriter:
    """For any number of threads. Whoever opens it closes it.

    :param root: the warehouse.
    :param holder: of the partition's lease, which is released at the end.
    :param check_room: called before something is written; what it raises is told to those whose messages wait.
    :param grace: for how many seconds ``close`` goes on asking a catalog that does not answer.
    :param umask: of files; None: the process's.
    """

    def __init__(
        self,
        store: JournalStore,
        root: str,
        partition: int,
        holder: Holder,
        *,
        heartbeat_seconds: float,
        limits: Limits = LIMITS,
        grace: float = 5.0,
        check_room: Callable[[], None] = lambda: None,
        umask: int | None = None,
    ) -> None:
        self._store, self._root, self._holder, self._limits = store, root, holder, limits
        self._check_room, self._pid = check_room, os.getpid()
        self._owned = store.partition(partition)
        self._stopping = threading.Event()
        self._line = WaitingLine(limits.waiting)
        self._tail = Tail(
            store, root, partition, holder, end=self._end(), stopping=self._stopping, grace=grace, umask=umask
        )
        self.partition = partition
        self._heartbeat = Heartbeat(self._owned, holder, seconds=heartbeat_seconds)
        self._thread = threading.Thread(target=self._run, name=f"mzshare-journal-{partition}", daemon=True)
        self._opened = ExitStack()
        self._opened.callback(self._release)
        self._opened.enter_context(self._heartbeat)
        self._thread.start()

    @property
    def journal(self) -> JournalId:
        return self._store.journal

    def append(self, messages: Messages, batch: BatchMark | None = None, *, follows: Answer | None = None) -> Answer:
        """Messages of one append have offsets in a row, and are announced at once. Waits while too much waits.

        :param batch: if its id was announced before, the messages are acknowledged and not taken again.
        :param follows: of an append to this writer: if it fails, this one does, too.
        """
        if os.getpid() != self._pid:
            raise WriterClosed("the pusher was opened before this process was forked: it has to open one of its own")
        one = Waiting(messages, weight_of(messages), batch, follows)
        if batch is not None and one.weight > (limit := self._limits.batch):
            exact = weight(as_arrow(messages))
            if exact > limit:
                raise BatchTooLarge(batch.id, exact, limit)
        if not messages.num_rows:
            one.done.set_result(Acknowledged(self.partition, self._tail.end, self._tail.end))
        else:
            self._line.put(one)
        return one.done

    def close(self) -> None:
        """What waits is written first. May be called again."""
        self._line.end(WriterClosed(f"the writer of partition {self.partition} is closed"))
        self._stopping.set()
        self._thread.join()
        self._opened.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── the thread that writes ────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while taken := self._line.take(self._limits.group):
                try:
                    self._settle(taken)
                finally:
                    self._line.let_go(taken)
            self._tail.seal()
        except BaseException as error:  # noqa: BLE001  Whatever it is, nobody may wait for a thread that has ended.
            log.warning("the writer of partition %s ends: %s", self.partition, error)
            self._line.end(error)
            refuse(self._line.empty(), error)
        finally:
            self._tail.give_up()

    def _settle(self, taken: Sequence[Waiting]) -> None:
        """Tell all of them what became of their messages. Raises what ends the writer."""
        try:
            group = self._sifted(taken)
            if group:
                self._check_room()
            for _ in range(ATTEMPTS):
                if not group or self._has_written(group):
                    return
                group = self._sifted(group)
            raise LogConflict(
                f"partition {self.partition}: what is announced changed {ATTEMPTS} times under its writer"
            )
        except OSError as error:
            self._tail.give_up()
            refuse(taken, NotWritten(self._root, error))
        except (AnnouncedOtherwise, AnswerMissing) as error:
            refuse(taken, error)
            raise
        except TransientError as error:
            self._tail.give_up()  # It was refused, or only asked which batches are there: nothing was announced.
            refuse(taken, error)
        except MzShareError as error:
            refuse(taken, error)
            raise
        except Exception as error:
            # Of these messages, and not of those that come next. If it was announced, the next announcement ends this.
            log.exception("partition %s: what waited was not taken", self.partition)
            self._tail.give_up()
            refuse(taken, error)
        except BaseException as error:
            refuse(taken, error)
            raise

    def _has_written(self, group: Sequence[Waiting]) -> bool:
        """False: it has to be written once more, in another file, without what is announced by now."""
        marks = [(one.batch.id, one.batch.digest) if one.batch else None for one in group]
        try:
            ranges = self._tail.write([Part(one.messages, mark) for one, mark in zip(group, marks, strict=True)])
        except (DuplicateBatch, BatchDiffers, SegmentExists) as error:
            # Another writer was quicker with a batch, and this file has its messages, too. Or the name of the file is
            # taken: a store that was asked to put it once more, as an answer was lost, says so.
            log.info("partition %s goes on in another segment: %s", self.partition, error)
            self._tail.give_up()
            return False
        for one, (first, end) in zip(group, ranges, strict=True):
            one.done.set_result(Acknowledged(self.partition, first, end))
        return True

    def _sifted(self, waiting: Sequence[Waiting]) -> list[Waiting]:
        """Those that are to be written. Batches that are there, and what follows what was not taken, is told so."""
        ids = [one.batch.id for one in waiting if one.batch is not None]
        known = self._store.batches(ids) if ids else {}
        left: list[Waiting] = []
        for one in waiting:
            found = known.get(one.batch.id) if one.batch else None
            if one.follows is not None and _has_failed(one.follows):
                refuse([one], PreviousNotTaken("what came before it was not taken"))
            elif found is not None and one.batch and found.digest != one.batch.digest:
                refuse([one], BatchDiffers([found]))
            elif found is not None:
                one.done.set_result(Acknowledged(found.partition, found.first, found.end, is_repeated=True))
            else:
                left.append(one)
        return left

    def _end(self) -> int:
        try:
            return self._owned.load().end
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        try:
            self._owned.release(self._holder)
        except MzShareError as error:
            log.info("%s could not release partition %s: %s", self._holder.job_id, self.partition, error)


def refuse(waiting: Iterable[Waiting], error: BaseException) -> None:
    """Tell those that were not told anything yet."""
    for one in waiting:
        if not one.done.done():
            one.done.set_exception(error)


def _has_failed(done: Answer) -> bool:
    return done.done() and done.exception() is not None
