"""The stream of a replication slot: what it sends becomes groups of messages, and the server is kept patient.

One connection, one stream: after any error it is closed, and the next one begins at the last boundary. Nothing of a
transaction is kept here beyond a group.
"""

from __future__ import annotations

import logging
import select
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.pq import ExecStatus

from airflow_provider_mzshare.connectors.base import Told
from airflow_provider_mzshare.connectors.postgres import checks, slot
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig, connect, explain, explained
from airflow_provider_mzshare.connectors.postgres.identity import slot_name
from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn, show_lsn
from airflow_provider_mzshare.connectors.postgres.pgoutput import CHANGES, Group, Relation
from airflow_provider_mzshare.connectors.postgres.text_form import TEXT_FORM
from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.errors import MzShareError, ReferenceMissing, TransientError, UpstreamChanged

log = logging.getLogger(__name__)

GROUP_MESSAGES, GROUP_BYTES = 16_384, 4 << 20
"""Of one group: as much as a block of a segment has."""
LINGER_SECONDS, LONGEST_SECONDS = 0.04, 0.2
"""A change waits so long for others to come with it; while they keep coming, so long."""
IDLE_SECONDS = 1.0
"""How often at most an idle server's progress is told."""
_PULSE_SECONDS = 10.0

_DATA, _KEEPALIVE = b"w"[0], b"k"[0]
_HEAD = 25
"""Bytes before the frame: the letter, two LSNs and a time."""
_ALIVE, _STATUS = struct.Struct(">xQqB"), struct.Struct(">cQQQqB")
_EPOCH_US = 946_684_800_000_000


class SlotBusy(TransientError):
    """Somebody reads the slot: a recorder whose connection the server has not given up yet, or a stranger."""


class StreamEnded(TransientError):
    """The connection to the server broke, or the server ended the stream."""


class PostgresFeed:
    """:param begin: where the stream begins: a boundary.
    :param relations: that are known from before; the server says each again before its first change.
    """

    def __init__(
        self, config: PostgresConfig, slot_name: str, publication: str, begin: int, relations: tuple[Relation, ...]
    ) -> None:
        self._config, self._slot, self._publication = config, slot_name, publication
        self._group = Group(relations)
        self._told: int | None = None
        self._received = self._idle = begin
        self._idle_at, self._confirmed, self._bytes = 0.0, 0, 0
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._connection = connect(config, "recorder", replication=True, settings=TEXT_FORM)
        try:
            with explained(config):
                self._pulse = min(_PULSE_SECONDS, _patience(self._connection) / 3)
            self._start(begin)
        except BaseException:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._keep, name="mzshare-feed", daemon=True)
        self._thread.start()

    @property
    def relations(self) -> tuple[Relation, ...]:
        return self._group.relations

    def read(self, seconds: float) -> Told | None:
        began: float | None = None
        give_up = time.monotonic() + seconds
        while True:
            with self._lock, self._explained():
                self._drain()
            now = time.monotonic()
            if self._has_some(now):
                began = now if began is None else began
                until = min(began + LONGEST_SECONDS, now + LINGER_SECONDS)
                if self._is_enough() or now >= began + LONGEST_SECONDS or not self._wait(until - now):
                    return self._take()
            elif now >= give_up or (not self._wait(give_up - now) and not self._has_some(time.monotonic())):
                return None

    def confirm(self, position: int) -> None:
        if position > self._confirmed:
            self._confirmed = position
            with self._lock, self._explained():
                self._send_status(flushed=position)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        with suppress(psycopg.Error):
            self._connection.close()

    def __enter__(self) -> PostgresFeed:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _drain(self) -> None:
        """Take what is there, as far as a group goes."""
        group, get = self._group, self._connection.pgconn.get_copy_data
        append, room = group.frames.append, GROUP_BYTES - self._bytes
        most = GROUP_MESSAGES - len(group.frames)
        if group.is_full():
            return
        self._connection.pgconn.consume_input()
        while room > 0 and most > 0:
            size, data = get(1)
            if size <= 0:
                if size < 0:
                    self._raise_end()
                break
            room -= size
            # Views of memory are tracked by the collector of garbage, bytes are not: many at once cost ten times more.
            message = bytes(data)
            if message[0] == _DATA:
                if message[_HEAD] in CHANGES:
                    append(message[_HEAD:])
                    most -= 1
                    continue
                group.note(message[_HEAD:])
                if group.is_full():
                    break
            elif message[0] == _KEEPALIVE:
                self._note_alive(message)
        self._bytes = GROUP_BYTES - room

    def _note_alive(self, data: bytes) -> None:
        end, _, asks = _ALIVE.unpack(data)
        if not self._group.is_open:
            # All that is committed below was sent.
            self._idle = self._received = max(self._idle, end)
        if asks:
            self._send_status()

    def _is_enough(self) -> bool:
        group = self._group
        return group.is_full() or self._bytes >= GROUP_BYTES or len(group.frames) >= GROUP_MESSAGES

    def _has_some(self, now: float) -> bool:
        if self._group.frames or self._group.boundary is not None or self._told is None:
            return True  # At first, where it begins: below that, nothing will come.
        return not self._group.is_open and self._idle > self._told and now >= self._idle_at + IDLE_SECONDS

    def _take(self) -> Told:
        boundary = self._group.boundary
        is_idle = not self._group.is_open and self._idle > max(boundary or 0, self._told or 0)
        if is_idle or (boundary is None and self._told is None):
            boundary = self._idle
        messages, prologue = self._group.take()
        if boundary is not None:
            self._told = max(self._told or 0, boundary)
            self._received = max(self._received, self._told)
            self._idle_at = time.monotonic()
        self._bytes = 0
        return Told(messages, boundary, prologue)

    def _wait(self, seconds: float) -> bool:
        """Whether more has come."""
        if self._connection.closed:
            raise StreamEnded(f"the stream of replication slot {self._slot!r} is closed")
        readable, _, _ = select.select([self._connection.pgconn.socket], [], [], max(0.0, seconds))
        return bool(readable)

    def _raise_end(self) -> None:
        result = self._connection.pgconn.get_result()
        if result is not None and result.status == ExecStatus.FATAL_ERROR:
            raise pg.error_from_result(result)
        raise StreamEnded(f"Postgres at {self._config.where} has ended the stream of replication slot {self._slot!r}")

    # ── what the server is told ───────────────────────────────────────────────────────────────────────────────────────

    def _keep(self) -> None:
        """The server gives up who says nothing for too long, also while our disk is slow."""
        while not self._closed.wait(self._pulse):
            with self._lock, suppress(psycopg.Error, OSError):
                self._send_status()

    def _send_status(self, *, flushed: int = 0) -> None:
        """:param flushed: only where it has moved: else a server that is shut down would wait for our ticks."""
        now = time.time_ns() // 1000 - _EPOCH_US
        pgconn = self._connection.pgconn
        pgconn.put_copy_data(_STATUS.pack(b"r", max(self._received, flushed), flushed, flushed, now, 0))
        pgconn.flush()

    # ── beginning ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, begin: int) -> None:
        publication = _literal('"' + self._publication.replace('"', '""') + '"')
        command = (
            f'START_REPLICATION SLOT "{self._slot}" LOGICAL {show_lsn(begin)} '
            f"(proto_version '1', publication_names {publication})"
        )
        pgconn = self._connection.pgconn
        with self._explained():
            pgconn.send_query(command.encode())
            while pgconn.flush():
                self._wait(0.1)
            while pgconn.is_busy():
                self._wait(1.0)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None or result.status != ExecStatus.COPY_BOTH:
                raise (
                    pg.error_from_result(result) if result else StreamEnded("the server did not begin to send changes")
                )

    def _explained(self) -> _Explained:
        return _Explained(self._explain)

    def _explain(self, error: psycopg.Error) -> MzShareError:
        text = self._config.redact(" ".join(str(error).split()))
        if isinstance(error, pg.ObjectInUse):
            return SlotBusy(f"replication slot {self._slot!r} is in use: {text}", hint="wait, or end who reads it")
        if isinstance(error, pg.UndefinedObject):
            of_slot = "replication slot" in (error.diag.message_primary or text)
            what = "slot_missing" if of_slot else "publication_missing"
            return UpstreamChanged(what, f"Postgres at {self._config.where} cannot go on: {text}")
        if isinstance(error, pg.ObjectNotInPrerequisiteState) and "slot" in text:
            return UpstreamChanged("slot_lost", f"replication slot {self._slot!r} cannot be read any more: {text}")
        return explain(self._config, error)


class _Explained:
    """As ``explained``, for what a stream says."""

    def __init__(self, explain_it: Callable[[psycopg.Error], MzShareError]) -> None:
        self._explain = explain_it

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, psycopg.Error):
            raise self._explain(error) from None


def open_feed(
    config: PostgresConfig,
    journal: JournalId,
    publication: str,
    after: int | None,
    relations: tuple[Relation, ...] = (),
) -> PostgresFeed:
    """Look whether the server still has everything from the last boundary on, and begin there.

    :param after: the last boundary; None: nothing was ever read, and the slot is made.
    :param relations: as an earlier feed knew them.
    """
    name = slot_name(journal)
    with explained(config), connect(config, "checks", timeout=0 if after is None else 30) as session:
        _check_publication(session, publication)
        found = slot.look(session, name)
        if found is None and after is None:
            log.info("%s is made; this waits for the transactions that run", name)
            slot.make(session, name)
            found = slot.look(session, name)
        checks.check_slot(found, name)
        assert found is not None  # as it was checked
        if after is not None:
            _check_reach(session, found, after)
    return PostgresFeed(config, name, publication, found.confirmed if after is None else after, relations)


def _check_reach(session: psycopg.Connection[Any], found: slot.Slot, after: int) -> None:
    if found.confirmed > after:
        raise UpstreamChanged(
            "slot_moved",
            f"replication slot {found.name!r} was confirmed up to {show_lsn(found.confirmed)} by somebody else, and "
            f"the source has read up to {show_lsn(after)}: what is between is lost",
        )
    row = session.execute(b"SELECT pg_current_wal_flush_lsn()").fetchone()
    assert row is not None  # a SELECT without FROM
    if (end := read_lsn(str(row[0]))) < after:
        raise UpstreamChanged(
            "upstream_behind",
            f"the server's log ends at {show_lsn(end)}, and the source has read up to {show_lsn(after)}: the server "
            "was restored from an old copy",
        )


def _check_publication(session: psycopg.Connection[Any], publication: str) -> None:
    try:
        checks.check_publication(session, publication)
    except ReferenceMissing as error:
        raise UpstreamChanged("publication_missing", error.message, hint=error.hint) from error


def _patience(connection: psycopg.Connection[Any]) -> float:
    """Seconds after which the server gives up a silent reader."""
    result = connection.pgconn.exec_(
        b"SELECT setting::int / 1000.0 FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'"
    )
    value = result.get_value(0, 0) if result.status == ExecStatus.TUPLES_OK and result.ntuples else None
    return float(value or 0) or 60.0


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
