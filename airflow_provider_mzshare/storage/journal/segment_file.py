"""Writes one segment of a journal: created where there is none, appended to, flushed. Announces nothing. Segments are
also listed and removed here, by their names alone.

What is flushed can be announced; only then do readers look at it. After an error the file may hold anything behind what
was flushed before, so it is not appended to any more: the writer goes on in a new segment.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import Segment, folder_of, path_of
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.journal.blocks import Encoded, encode, encode_end, encode_segment, payload_bytes
from airflow_provider_mzshare.journal.messages import MESSAGES
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.collections.vectors.puts import names_of_objects, remove_object
from airflow_provider_mzshare.storage.journal.sinks import Sink, create_sink

MAX_BYTES = 64 << 20
_SALT_BYTES = 8
_NAME = re.compile(r"([0-9]{10,})-([0-9]{8,})\.journal")


class SegmentExists(TerminalError):
    """The name of a segment is taken, and what has it is never touched: its writer goes on with the next number."""

    hint = "mzshare status"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"there is a file {path} already; nothing was written to it")


class SegmentFile:
    """A segment while its writer has it. Not to be used by two threads at once."""

    def __init__(self, sink: Sink, path: str, segment: Segment) -> None:
        self._sink, self.path = sink, path
        self._written = self._flushed = segment
        self._ends: OSError | None = None
        self._is_closed = False

    @classmethod
    def create(
        cls,
        root: str,
        journal: JournalId,
        *,
        partition: int,
        epoch: int,
        number: int,
        first: int,
        prologue: bytes = b"",
        umask: int | None = None,
        boundary: int | None = None,
    ) -> SegmentFile:
        """A segment that nobody else has. Raises SegmentExists; an object store can only say so at the flush.

        :param root: the warehouse, a local path or a URI. :param first: the offset of its first message.
        :param prologue: what its messages need beside themselves to be decoded.
        :param umask: of the file; None: the process's.
        :param boundary: the last one of the partition, which it carries until there is another.
        """
        segment = Segment(partition, epoch, number, first, first, 0, 0, 0, boundary=boundary)
        path = path_of(journal, segment)
        try:
            sink = create_sink(root, path, begins=first == 0, umask=umask)
        except FileExistsError as error:
            raise SegmentExists(path) from error
        file = cls(sink, path, segment)
        file._write(encode_segment(first, os.urandom(_SALT_BYTES), prologue))
        return file

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self._written.end

    @property
    def takes_more(self) -> bool:
        """Whether it is to be appended to; else the next messages belong to a new segment."""
        if self._is_closed or self._ends is not None:
            return False
        return self._written.length < MAX_BYTES and not (self._sink.once and self._flushed.length)

    def append(self, messages: pa.RecordBatch, *, boundary: int | None = None, low: int | None = None) -> None:
        """Write messages behind those that are there. They are not durable before ``flush``.

        :param boundary: all that the upstream has below this position of its own is written now; positions do not fall.
        :param low: the upstream's position of the first message, where it is not the lowest that ``messages`` has.
        """
        if messages.schema != MESSAGES:
            raise ValueError(f"messages of a journal have other columns: {messages.schema}")
        # All of them first: what cannot be encoded leaves the file as it was.
        encoded = list(encode(messages, self.end, boundary, begins=self.end == self._flushed.end))
        payload = payload_bytes(messages)
        for each in encoded:
            self._append(each)
        if self._written.low is None and encoded:
            low = low if low is not None else encoded[0].block.low
            self._written = replace(self._written, low=low)
        if boundary is not None:
            self._written = replace(self._written, boundary=boundary)
        self._written = replace(self._written, payload=self._written.payload + payload)

    def carry(self, boundary: int) -> None:
        """The boundary has moved, and no bytes tell of it."""
        self._written = replace(self._written, boundary=boundary)

    def flush(self) -> Segment:
        """Return the segment, as it can be announced, once all of it and its name are durable. Raises OSError.

        For an object store it is the last call but ``close``; it may raise SegmentExists.
        """
        if self._ends is not None:
            raise self._ends
        if self._written.length != self._flushed.length:
            with self._ending():
                self._sink.flush()
        # A boundary may have moved although no message came.
        self._flushed = self._written
        return self._flushed

    def seal(self) -> bool:
        """Write down that all of it is announced, behind all that is: only who wants to know what a catalog lacks looks
        there. Return whether there is room for it: an object stays as it is. Raises OSError.
        """
        if self._sink.once:
            return False
        self._write(encode_end(self.end))
        with self._ending():
            self._sink.flush()
        return True

    def close(self) -> None:
        """What was not flushed may be lost. Nothing is raised."""
        self._is_closed = True
        self._sink.close()

    def _append(self, encoded: Encoded) -> None:
        self._sink.note(encoded.block.first, self._written.length)
        for part in encoded.parts:
            self._write(part)
        self._written = replace(self._written, end=encoded.block.end)

    def _write(self, data: bytes | pa.Buffer) -> None:
        with self._ending():
            self._sink.write(data)
        length, checksum = self._written.length + len(data), zlib.crc32(data, self._written.checksum)
        self._written = replace(self._written, length=length, checksum=checksum)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """An error is the file's last: nobody knows what the disk has of what was being written, and a flush that is
        tried again may find nothing to do."""
        if self._ends is not None:
            raise self._ends
        if self._is_closed or (self._sink.once and self._flushed.length):
            raise ValueError(f"{self.path} takes no more")
        try:
            yield
        except FileExistsError as error:
            self._ends = error
            raise SegmentExists(self.path) from error
        except OSError as error:
            self._ends = error
            raise


# ── what lies in a folder, whatever the catalog says ──────────────────────────────────────────────────────────────────


def list_epochs(root: str, journal: JournalId, partition: int, *, after: int = 0) -> int:
    """The greatest epoch that any segment file of the partition carries; 0 if none does.

    :param after: only greater ones count.
    """
    return max((epoch for epoch, _ in list_segments(root, journal, partition, after=after)), default=0)


def list_segments(root: str, journal: JournalId, partition: int, *, after: int = 0) -> list[tuple[int, int]]:
    """Epoch and number of each segment file, in order. There may be some that were never announced.

    :param after: without those of this epoch and of earlier ones. An object store does not list them.
    """
    folder = f"{folder_of(journal)}/{partition}"
    local = local_path(root)
    if local is None:
        names = names_of_objects(root, folder, after=f"{after + 1:010d}")
    else:
        names = _names_of_files(local, folder)
    found = [(int(match[1]), int(match[2])) for name in names if (match := _NAME.fullmatch(name))]
    return sorted(each for each in found if each[0] > after)


def remove_segment(root: str, path: str) -> None:
    """Remove a segment that nobody needs, and its index. One that is gone already is no error.

    :param path: below the warehouse.
    """
    local = local_path(root)
    if local is None:
        remove_object(root, path)
        return
    # The index first: it would be found by nobody afterwards.
    for name in (path + index.SUFFIX, path):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(local, name))


def _names_of_files(root: str, folder: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, folder))
    except FileNotFoundError:
        # Raised again where the warehouse is not there either.
        os.stat(root)
        return []
