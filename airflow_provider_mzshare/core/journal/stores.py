"""What writers and readers of a journal ask; the catalog implements it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from airflow_provider_mzshare.core.ids import JournalId
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.core.ticklog.stores import LeaseStore


class PartitionStore(LeaseStore, Protocol):
    """One partition of a journal. The first claim makes it."""

    def load(self) -> PartitionState: ...

    def announce(
        self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]
    ) -> PartitionState:
        """In one transaction: the messages of ``after`` that ``before`` does not have count from now on. Its bytes are
        durable. Asked again after an answer was lost, it changes nothing. See ``rules.announce`` for what it raises.

        :param before: the segment as it was announced last; None for a segment that begins.
        """
        ...


class JournalStore(Protocol):
    """One journal."""

    @property
    def journal(self) -> JournalId: ...

    def partition(self, number: int) -> PartitionStore: ...

    def partitions(self) -> Sequence[PartitionState]:
        """All that were ever written to, in order."""
        ...

    def segments(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        """Those that have messages of ``[lower, upper)``, in order, as they are announced now; at most ``limit``."""
        ...

    def positioned(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        """Those that tell where the upstream's positions ``[lower, upper)`` are, as ``positions.slices`` needs them; at
        most ``limit``, which may be continued from the position of the last one that has one."""
        ...

    def batches(self, ids: Collection[str]) -> Mapping[str, Batch]:
        """Those of these batches that are announced."""
        ...
