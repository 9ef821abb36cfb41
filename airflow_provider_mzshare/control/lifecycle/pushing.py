"""Pushes records into a source: takes a partition of its journal, and says what became of every record.

An answer without an error means: all records are durable, count once, and stand in the order in which they were given.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.lifecycle.journal_folders import make_journal_folder
from airflow_provider_mzshare.control.lifecycle.journal_room import JournalRoom, check_not_behind
from airflow_provider_mzshare.control.lifecycle.partition_choice import Choice
from airflow_provider_mzshare.control.lifecycle.typed_names import find_source
from airflow_provider_mzshare.core.ids import JournalId, new_job_id
from airflow_provider_mzshare.errors import Fenced, MzShareError, TerminalError, TransientError
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.journal.cutting import cut
from airflow_provider_mzshare.storage.journal.records import pieces_of
from airflow_provider_mzshare.storage.journal.rows import Messages, as_arrow, digest_of, stamp, weight_of
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged, Answer, BatchMark
from airflow_provider_mzshare.storage.journal.writer import LIMITS, JournalWriter

LEASE_SECONDS = 10.0
"""A pusher that was silent for so long is taken over; sooner if the apps' leases are shorter."""
WAIT_SECONDS = 30.0
"""How long to wait for a partition. Longer than a lease: a pusher that was killed is no reason to fail."""
PIECE = 1 << 20
"""Without a batch, records are sent on by so many bytes."""
PART = LIMITS.batch
"""A batch of more bytes is taken in parts. If this changes, those that are sent again across the change are refused."""

Report = Callable[[int], None]


class NotPushable(TerminalError):
    """Records cannot be pushed into a source of this kind."""

    def __init__(self, source: str, kind: str) -> None:
        self.source, self.kind = source, kind
        super().__init__(
            f"source {source} reads {kind}, and records are only pushed into sources that were made FROM JOURNAL",
            hint='mzshare sql "CREATE SOURCE … FROM JOURNAL"',
        )


class BadBatchId(TerminalError):
    def __init__(self, batch: Any) -> None:
        self.batch = batch
        shown = ascii(batch[:60] if isinstance(batch, str) else batch)
        super().__init__(f"{shown} cannot be the id of a batch: it takes 1 to 500 characters that can be printed")


class PusherReplaced(TransientError):
    """Another pusher has taken the partition over. What was not acknowledged does not count."""

    def __init__(self, source: str, error: Fenced) -> None:
        self.source = source
        super().__init__(
            f"another process pushes into this partition of source {source} now, as this one was silent for too long: "
            f"{error.message}",
            hint="push again",
        )


class PushCut(TransientError):
    """A push that ended early. Its first ``acknowledged`` records count, and none after them."""

    def __init__(self, acknowledged: int, error: MzShareError) -> None:
        self.acknowledged = acknowledged
        told = "record was" if acknowledged == 1 else "records were"
        super().__init__(f"the first {acknowledged} {told} taken, then: {error.message}", hint=error.hint)


class PushRefused(TerminalError):
    """The same, when another attempt would be useless."""

    def __init__(self, acknowledged: int, error: MzShareError) -> None:
        self.acknowledged = acknowledged
        told = "record was" if acknowledged == 1 else "records were"
        super().__init__(f"the first {acknowledged} {told} taken, then: {error.message}", hint=error.hint)


@dataclass(frozen=True)
class Pushed:
    """What was acknowledged."""

    messages: int = 0
    repeated: int = 0
    """Of these, those that had been taken before, under the same id of a batch."""
    ranges: tuple[Acknowledged, ...] = ()
    """Where they are: partitions and offsets."""

    def with_more(self, one: Acknowledged) -> Pushed:
        last = self.ranges[-1] if self.ranges else None
        ranges = (*self.ranges, one)
        if last and (last.partition, last.end, last.is_repeated) == (one.partition, one.first, one.is_repeated):
            ranges = (*self.ranges[:-1], replace(last, end=one.end))
        repeated = one.messages if one.is_repeated else 0
        return Pushed(self.messages + one.messages, self.repeated + repeated, ranges)


class Pusher:
    """A partition that is held to push into it. Any number of threads may push; each push keeps its order."""

    def __init__(self, source: str, writer: JournalWriter) -> None:
        self.source, self._writer = source, writer

    @property
    def partition(self) -> int:
        return self._writer.partition

    def push(self, records: Any, *, batch: str | None = None, report: Report | None = None) -> Pushed:
        """Returns when all records are durable and count.

        :param records: an iterable of bytes or texts (values), or of dictionaries with ``value`` and maybe ``key``,
            ``headers``, ``timestamp``; or an Arrow table of such columns.
        :param batch: an id of the sender's. The same records sent again under it are acknowledged, and not taken again;
            other records under it are refused.
        :param report: told how many are acknowledged, now and then.
        """
        return self.push_messages(pieces_of(records), batch=batch, report=report)

    def push_messages(
        self, messages: Iterable[Messages], *, batch: str | None = None, report: Report | None = None
    ) -> Pushed:
        """The same, of what are messages already."""
        sending = _Sending(self._writer, report or (lambda acknowledged: None))
        try:
            for piece, mark in _pieces(messages) if batch is None else _parts(messages, batch):
                sending.send(piece, mark)
            sending.finish()
        except BaseException as error:
            sending.wait()
            told = self._told(error, sending.pushed.messages)
            if told is error:
                raise
            raise told from error
        return sending.pushed

    def _told(self, error: BaseException, acknowledged: int) -> BaseException:
        if isinstance(error, Fenced):
            error = PusherReplaced(self.source, error)
        if not acknowledged or not isinstance(error, MzShareError):
            return error
        return (PushCut if isinstance(error, TransientError) else PushRefused)(acknowledged, error)


def _pieces(messages: Iterable[Messages]) -> Iterator[tuple[Messages, None]]:
    """As they come: what is there is sent on, whatever comes later."""
    for some in messages:
        for piece in [some] if weight_of(some) <= PIECE else cut([as_arrow(some)], PIECE):
            yield piece, None


_ID = re.compile(r"[^\x00-\x1f\x7f]{1,500}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _may_name(batch: Any) -> bool:
    """A lone surrogate, of a name that is not UTF-8, is no character that any database takes."""
    return isinstance(batch, str) and bool(_ID.fullmatch(batch)) and not _SURROGATE.search(batch)


def _parts(messages: Iterable[Messages], batch: str) -> Iterator[tuple[Messages, BatchMark]]:
    """What fits into one announcement is one batch. What does not is cut, always at the same records, and each part is
    a batch by itself: who sends all again sends the same parts.
    """
    if not _may_name(batch):
        raise BadBatchId(batch)
    for number, part in enumerate(_cut(iter(messages)), 1):
        yield part, BatchMark(batch if number == 1 else f"{batch} #{number}", digest_of(part))


def _cut(messages: Iterator[Messages]) -> Iterator[Messages]:
    """A few that are all stay as they are."""
    begin = list(islice(messages, 2))
    if len(begin) == 1 and weight_of(begin[0]) <= PART:
        return iter(begin)
    return cut(map(as_arrow, chain(begin, messages)), PART)


class _Sending:
    """One push under way: each piece is only taken if those before it were. ``pushed``: what is acknowledged."""

    def __init__(self, writer: JournalWriter, report: Report) -> None:
        self.pushed = Pushed()
        self._writer, self._report = writer, report
        self._sent: deque[Answer] = deque()
        self._last: Answer | None = None

    def send(self, piece: Messages, mark: BatchMark | None) -> None:
        now = time.time_ns() // 1_000
        self._last = self._writer.append(stamp(piece, now), mark, follows=self._last)
        self._sent.append(self._last)
        while self._sent and self._sent[0].done():
            self._note(self._sent[0].result())

    def finish(self) -> None:
        while self._sent:
            self._note(self._sent[0].result())

    def wait(self) -> None:
        """Until it is known of all that were sent whether they count."""
        while self._sent:
            if self._sent[0].exception() is None:
                self._note(self._sent[0].result())
            else:
                self._sent.popleft()

    def _note(self, one: Acknowledged) -> None:
        self._sent.popleft()
        self.pushed = self.pushed.with_more(one)
        self._report(self.pushed.messages)


@contextmanager
def open_pusher(
    catalog: Catalog, settings: Settings, name: str, *, partition: int | None = None, wait: float = WAIT_SECONDS
) -> Iterator[Pusher]:
    """Hold a partition of a source's journal while the context is open. At its end, all that was pushed is settled.

    :param partition: None: the first that nobody pushes into.
    :param wait: for how many seconds to wait for one.
    """
    source = find_source(catalog, name)
    kind = kind_of(source.spec)
    if not (pushers := kind.pushers(source.spec)):
        raise NotPushable(source.display, kind.title)
    store = journals_of(catalog).open(JournalId(source.incarnation))
    check_not_behind(catalog, source, store)
    make_journal_folder(catalog, settings.warehouse, settings.umask, store.journal)
    lease = min(settings.lease_seconds, LEASE_SECONDS)
    job_id = new_job_id(f"push-{socket.gethostname()}-{os.getpid()}")
    choice = Choice(store, settings.warehouse, source.display, job_id, lease, wait)
    taken, holder = choice.take(pushers, partition)
    beats = min(settings.heartbeat_seconds, lease / 5)
    room = JournalRoom(catalog, source)
    with JournalWriter(
        store,
        settings.warehouse,
        taken,
        holder,
        heartbeat_seconds=beats,
        check_room=room.check,
        umask=settings.umask,
    ) as writer:
        yield Pusher(source.display, writer)
