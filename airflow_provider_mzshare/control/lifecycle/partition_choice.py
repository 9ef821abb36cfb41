"""Which partition of a journal a pusher gets: the one that it names, or the first that is free. It waits if none is.

Partitions are looked at in their order. So pushers that come one after another write to the same one, and what they
push stays in order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import LeaseTaken, TerminalError, WaitTimeout
from airflow_provider_mzshare.storage.journal.writer import claim_partition


class NoSuchPartition(TerminalError):
    def __init__(self, source: str, partition: int, count: int) -> None:
        self.source, self.partition, self.count = source, partition, count
        last = f"partitions 0 to {count - 1}" if count > 1 else "partition 0 alone"
        super().__init__(f"source {source} has no partition {partition}: it has {last}", hint="leave the partition out")


class PartitionsTaken(WaitTimeout):
    """Others push into all partitions that would do. :param holders: their jobs, by partition."""

    def __init__(self, source: str, holders: Mapping[int, str], seconds: float, *, is_named: bool) -> None:
        self.source, self.holders = source, dict(holders)
        told = ", ".join(f"partition {partition} is held by {job}" for partition, job in sorted(holders.items())[:4])
        more = f" and {len(holders) - 4} more" if len(holders) > 4 else ""
        count = "" if is_named else f" (PARTITIONS {len(holders)})"
        super().__init__(
            f"no partition of source {source}{count} was free to push into within {seconds:g} s: {told}{more}",
            hint="name no partition" if is_named else "let one of them end, or push from one process by many threads",
        )


@dataclass(frozen=True)
class Choice:
    """:param lease_seconds: whoever was silent for so long is taken over.
    :param wait: for how many seconds to try.
    """

    store: JournalStore
    root: str
    source: str
    job_id: JobId
    lease_seconds: float
    wait: float

    def take(self, count: int, wanted: int | None) -> tuple[int, Holder]:
        """A partition of ``count``, and its lease."""
        if wanted is not None and not 0 <= wanted < count:
            raise NoSuchPartition(self.source, wanted, count)
        candidates = range(count) if wanted is None else [wanted]
        began = time.monotonic()
        seen: dict[int, tuple[Lease, float]] = {}
        while True:
            leases = self._leases(candidates)
            if found := self._free(leases) or self._silent(leases, seen):
                return found
            if time.monotonic() >= began + self.wait:
                holders = {partition: lease.job_id or "?" for partition, lease in leases.items()}
                raise PartitionsTaken(self.source, holders, self.wait, is_named=wanted is not None)
            time.sleep(min(0.2, self.lease_seconds / 5))

    def _leases(self, candidates: Sequence[int]) -> dict[int, Lease]:
        found = {state.partition: state.lease for state in self.store.partitions()}
        return {partition: found.get(partition, Lease()) for partition in candidates}

    def _free(self, leases: Mapping[int, Lease]) -> tuple[int, Holder] | None:
        return next((won for n, lease in leases.items() if lease.job_id is None and (won := self._claimed(n))), None)

    def _silent(self, leases: Mapping[int, Lease], seen: dict[int, tuple[Lease, float]]) -> tuple[int, Holder] | None:
        """Of a holder that did not give a sign for as long as a lease lasts, by this process's clock."""
        now = time.monotonic()
        for partition, lease in leases.items():
            if partition not in seen or seen[partition][0] != lease:
                seen[partition] = lease, now
            elif now - seen[partition][1] >= self.lease_seconds and (won := self._claimed(partition, lease)):
                return won
        return None

    def _claimed(self, partition: int, stood_still: Lease | None = None) -> tuple[int, Holder] | None:
        try:
            return partition, claim_partition(self.store, self.root, partition, self.job_id, stood_still=stood_still)
        except LeaseTaken:
            return None
