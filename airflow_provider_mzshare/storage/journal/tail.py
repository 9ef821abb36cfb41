"""The end of a partition as its writer has it: the segment that grows, and what of it is announced.

One thread has it. It writes a group of messages, makes it durable, announces it, and knows then that it counts; or it
gives the file up, and goes on in the next one. What was announced stands in both cases.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

from airflow_provider_mzshare.core.journal.rules import (
    AnnouncedOtherwise,
    BadAnnouncement,
    BatchDiffers,
    DuplicateBatch,
    JournalBehind,
)
from airflow_provider_mzshare.core.journal.state import Batch, Segment
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import CatalogUnreachable, Fenced, LogConflict, MzShareError
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.journal.cutting import NO_MESSAGES
from airflow_provider_mzshare.storage.journal.rows import Messages, as_one_batch
from airflow_provider_mzshare.storage.journal.segment_file import SegmentExists, SegmentFile
from airflow_provider_mzshare.storage.journal.write_errors import AnswerMissing

log = logging.getLogger(__name__)

RETRY_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Waits between questions to a catalog that does not answer; the last one is used from there on."""


REFUSALS = (AnnouncedOtherwise, BadAnnouncement, BatchDiffers, DuplicateBatch, Fenced, JournalBehind)
"""The catalog has answered: nothing of what was announced counts."""


@dataclass(frozen=True)
class Part:
    """Messages of one sender. :param batch: its id and digest."""

    messages: Messages
    batch: tuple[str, str] | None = None


class Tail:
    """:param end: the offset of the next message, as the holder found it.
    :param stopping: set when the writer has to end: then the catalog is asked for ``grace`` seconds more.
    :param umask: of files; None: the process's.
    :param boundary: the last one that is announced, where the upstream has positions.
    """

    def __init__(
        self,
        store: JournalStore,
        root: str,
        partition: int,
        holder: Holder,
        *,
        end: int,
        stopping: threading.Event,
        grace: float,
        umask: int | None = None,
        boundary: int | None = None,
    ) -> None:
        self._umask = umask
        self._store, self._root, self._holder = store, root, holder
        self._partition, self._partition_store = partition, store.partition(partition)
        self._stopping, self._grace = stopping, grace
        self._numbers = count(1)
        self._end, self._boundary, self._prologue = end, boundary, b""
        self._file: SegmentFile | None = None
        self._announced: Segment | None = None
        """Of the file that grows; None if it has nothing that counts."""

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self._end

    @property
    def boundary(self) -> int | None:
        """The last one that is announced."""
        return self._boundary

    def begin(self, prologue: bytes) -> None:
        """What is written from now on needs this to be decoded, and is in another segment than what was before."""
        self.give_up()
        self._prologue = prologue

    def write(self, group: Sequence[Part], *, boundary: int | None = None) -> list[tuple[int, int]]:
        """Returns when all of the group counts: the offsets of each part. If it raises, nothing counts, unless it is an
        AnswerMissing; then ``give_up`` the file, or the tail, if the error says that the partition is somebody else's.

        :param boundary: all that the upstream has below this position is written now.
        """
        file = self._growing()
        ranges, first = [], self._end
        for part in group:
            ranges.append((first, first + part.messages.num_rows))
            first += part.messages.num_rows
        file.append(as_one_batch([part.messages for part in group]), boundary=boundary)
        crashpoint("segment_written")
        after = file.flush()
        crashpoint("segment_flushed")
        batches = [
            Batch(part.batch[0], self._partition, *where, part.batch[1])
            for part, where in zip(group, ranges, strict=True)
            if part.batch
        ]
        self._announce(after, batches)
        crashpoint("announced")
        self._announced, self._end, self._boundary = after, after.end, after.boundary
        return ranges

    def seal(self) -> None:
        """Leave a note in storage that all of the file is announced, for when the catalog is put back to an older copy.

        Only where the writer ends by itself: it knows the answer to all that it has announced.
        """
        if self._file is None or self._announced is None:
            return  # Nothing was written; or what was refused last begins at the end, and tells the same.
        try:
            if not self._file.seal():
                self.give_up()
                self._file = self._begun()
                self._file.flush()
        except (OSError, SegmentExists) as error:
            log.info("partition %s ends without a note at %s: %s", self._partition, self._end, error)

    def move(self, boundary: int) -> None:
        """The upstream has told nothing more below this position: a boundary without messages. As ``write``."""
        if self._file is None or self._announced is None:
            self.write([Part(NO_MESSAGES)], boundary=boundary)
            return
        after = replace(self._announced, boundary=boundary)
        self._announce(after, [])
        crashpoint("boundary_announced")
        self._announced, self._boundary = after, boundary
        self._file.carry(boundary)

    def give_up(self) -> None:
        """The file's bytes that were not announced never count; what comes next is in another file."""
        file, self._file, self._announced = self._file, None, None
        if file is not None:
            try:
                file.close()
            except OSError as error:  # A disk that is full or away: nothing in this file is needed any more.
                log.info("a segment that was given up could not be closed: %s", error)

    def _growing(self) -> SegmentFile:
        if self._file is not None and not self._file.takes_more:
            self.give_up()
        if self._file is None:
            self._file = self._begun()
            crashpoint("segment_begun")
        return self._file

    def _begun(self) -> SegmentFile:
        return SegmentFile.create(
            self._root,
            self._store.journal,
            partition=self._partition,
            epoch=self._holder.epoch,
            number=next(self._numbers),
            first=self._end,
            prologue=self._prologue,
            umask=self._umask,
            boundary=self._boundary,
        )

    # ── announcing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _announce(self, after: Segment, batches: Sequence[Batch]) -> None:
        """Ask until there is an answer: an announcement that is asked for again changes nothing."""
        give_up_at = inf
        for attempt in count():
            try:
                self._ask(after, batches, again=attempt > 0)
                return
            except REFUSALS:
                raise
            except (CatalogUnreachable, LogConflict) as error:
                log.warning("partition %s is not announced up to %s yet: %s", self._partition, after.end, error)
                why = error
            except Exception as error:
                if isinstance(error, MzShareError) and not attempt:
                    raise  # Refused before anything was told.
                raise AnswerMissing(self._partition, self._end, after.end, error) from error
            if self._stopping.is_set():
                give_up_at = min(give_up_at, time.monotonic() + self._grace)
            if time.monotonic() >= give_up_at:
                raise AnswerMissing(self._partition, self._end, after.end, why) from why
            self._wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])

    def _ask(self, after: Segment, batches: Sequence[Batch], *, again: bool) -> None:
        try:
            self._partition_store.announce(self._holder, self._announced, after, batches)
        except Fenced:
            if not again or not self._was_announced(after):
                raise

    def _wait(self, seconds: float) -> None:
        if self._stopping.is_set():
            time.sleep(min(seconds, 0.2))
        else:
            self._stopping.wait(seconds)

    def _was_announced(self, after: Segment) -> bool:
        """Does it count, although somebody else has the partition now and an answer was lost before? What was announced
        never changes, so this says it for good."""
        found = self._store.segments(self._partition, self._end, after.end)
        if after.end == self._end:
            # Only a boundary moved: segments without messages are found by positions.
            found = self._store.positioned(self._partition, after.boundary or 0, after.boundary or 0)
        name = (after.epoch, after.number)
        return any(
            (one.epoch, one.number) == name and one.end >= after.end and (one.boundary or 0) >= (after.boundary or 0)
            for one in found
        )
