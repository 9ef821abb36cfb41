"""What the rules of journals decide upon: partitions, segments, and batches that are not taken twice. Values only.

Offsets number the messages of a partition from 0 on, without holes. A message counts once it is announced: until then
nobody reads its bytes, and they may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.ticklog.state import Lease

FREE = Lease()


@dataclass(frozen=True)
class Segment:
    """A file of a partition, as far as it is announced. Only the holder of ``epoch`` ever writes to it."""

    partition: int
    epoch: int
    number: int
    """Within the epoch, from 1 on: an attempt whose bytes were not announced uses up its number."""
    first: int
    """The offset of its first message."""
    end: int
    """The offset after its last announced message."""
    length: int
    """How many of its bytes are announced. There may be more: they do not count."""
    checksum: int
    """CRC-32 of these bytes."""
    payload: int
    """Bytes of the keys, values and headers in them, before compression."""
    announced_at: int = 0
    """When its newest message was announced, in milliseconds, by the clock of the catalog's database."""
    low: int | None = None
    """The upstream's own position of its first message, where the upstream has positions."""
    boundary: int | None = None
    """All that the upstream has below this position of its own is announced, and a tick may end there. Every segment
    carries the last one, also if it was announced before the segment was begun."""

    @property
    def messages(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class PartitionState:
    """A partition as one transaction sees it, behind its lock."""

    partition: int
    lease: Lease = FREE
    """Its writer's, apart from any source's."""
    begin: int = 0
    """Messages before this offset are gone."""
    end: int = 0
    """The offset of the next message."""
    segment: Segment | None = None
    """The newest."""
    size: int = 0
    """Bytes of all its segments that are there."""


@dataclass(frozen=True)
class OnDisk:
    """What a look at the files of a partition has found."""

    known: int
    """The newest epoch that the catalog knew before the look."""
    greatest: int = 0
    """The greatest epoch in their names; 0 if there are none. Epochs up to ``known`` may be left out."""
    begun: int = 0
    """The greatest offset at which a file of the epoch ``known`` begins, or something that was flushed into one."""


@dataclass(frozen=True)
class Batch:
    """Messages that were sent under an id of their sender's: sent again, they are acknowledged and not taken again."""

    id: str
    partition: int
    first: int
    end: int
    digest: str
    """Of what it holds: another batch must not have its id."""


def folder_of(journal: JournalId) -> str:
    """Below the warehouse."""
    return f"journals/{journal.removeprefix('journal:')}"


def path_of(journal: JournalId, segment: Segment) -> str:
    """Below the warehouse. The names of a partition sort as its segments were begun."""
    return f"{folder_of(journal)}/{segment.partition}/{segment.epoch:010d}-{segment.number:08d}.journal"
