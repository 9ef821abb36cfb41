"""A journal's catalog in memory, by the real rules, for writers in one process; and one that loses answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mzshare.core.ids import JobId, JournalId, new_journal_id
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment, path_of
from airflow_provider_mzshare.core.journal.stores import JournalStore, PartitionStore
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import CatalogUnreachable
from airflow_provider_mzshare.journal.reading import Extent, read
from airflow_provider_mzshare.storage.journal.writer import JournalWriter, claim_partition


@dataclass
class MemoryJournal:
    """Implements JournalStore. ``announcements`` counts those that changed something."""

    journal: JournalId = field(default_factory=new_journal_id)
    announcements: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self.states: dict[int, PartitionState] = {}
        self.kept: dict[tuple[int, int, int], Segment] = {}
        self.known: dict[str, Batch] = {}

    def partition(self, number: int) -> MemoryPartition:
        return MemoryPartition(self, number)

    def partitions(self) -> Sequence[PartitionState]:
        with self.lock:
            return [state for _, state in sorted(self.states.items())]

    def segments(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        with self.lock:
            mine = sorted((s for s in self.kept.values() if s.partition == partition), key=lambda s: s.first)
        return [s for s in mine if s.first < upper and s.end > lower][:limit]

    def batches(self, ids: Collection[str]) -> Mapping[str, Batch]:
        with self.lock:
            return {each: self.known[each] for each in ids if each in self.known}


class MemoryPartition:
    def __init__(self, journal: MemoryJournal, number: int) -> None:
        self._journal, self._number = journal, number

    def load(self) -> PartitionState:
        return self._journal.states.get(self._number, PartitionState(self._number))

    def lease(self) -> Lease:
        return self.load().lease

    def claim(self, job_id: JobId, *, stood_still: Lease | None = None) -> Holder:
        with self._journal.lock:
            state = self._journal.states[self._number] = rules.claim(self.load(), job_id, stood_still=stood_still)
        return Holder(job_id, state.lease.epoch)

    def beat(self, holder: Holder) -> None:
        with self._journal.lock:
            self._journal.states[self._number] = rules.beat(self.load(), holder)

    def release(self, holder: Holder) -> None:
        with self._journal.lock:
            self._journal.states[self._number] = rules.release(self.load(), holder)

    def announce(
        self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]
    ) -> PartitionState:
        journal = self._journal
        with journal.lock:
            was = self.load()
            state = rules.announce(was, holder, before, after, batches, journal.known)
            if state is not was:
                journal.announcements += 1
                journal.states[self._number] = state
                journal.kept[after.partition, after.epoch, after.number] = after
                journal.known.update({batch.id: batch for batch in batches})
            return state


@dataclass
class Faulty:
    """A journal's store around another. ``before`` and ``after`` are called around each announcement and may raise:
    after it, what was said is true, and nobody hears it.
    """

    store: JournalStore
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    @property
    def journal(self) -> JournalId:
        return self.store.journal

    def partition(self, number: int) -> PartitionStore:
        return FaultyPartition(self, self.store.partition(number))

    def partitions(self) -> Sequence[PartitionState]:
        return self.store.partitions()

    def segments(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        return self.store.segments(partition, lower, upper, limit=limit)

    def batches(self, ids: Collection[str]) -> Mapping[str, Batch]:
        return self.store.batches(ids)


class FaultyPartition:
    def __init__(self, faulty: Faulty, owned: PartitionStore) -> None:
        self._faulty, self._owned = faulty, owned
        self.load, self.lease = owned.load, owned.lease
        self.claim, self.beat, self.release = owned.claim, owned.beat, owned.release

    def announce(
        self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]
    ) -> PartitionState:
        self._faulty.before()
        state = self._owned.announce(holder, before, after, batches)
        self._faulty.after()
        return state


def times(count: int) -> Callable[[], None]:
    """Raise so many times that the catalog does not answer."""
    left = [count]

    def fail() -> None:
        if left[0]:
            left[0] -= 1
            raise CatalogUnreachable("the answer got lost")

    return fail


def open_writer(
    store: JournalStore, root: str, job: str = "push-a", *, partition: int = 0, **more: object
) -> JournalWriter:
    holder = claim_partition(store, root, partition, JobId(job))
    return JournalWriter(store, root, partition, holder, heartbeat_seconds=0.5, **more)  # type: ignore[arg-type]


def read_values(store: JournalStore, root: str, partition: int = 0) -> list[bytes | None]:
    """Of all that is announced, in order; each offset once."""
    found: list[bytes | None] = []
    for segment in store.segments(partition, 0, 1 << 62):
        path = f"{root}/{path_of(store.journal, segment)}"
        extent = Extent(path, segment.first, segment.length, segment.first, segment.end)
        for first, messages in read(extent):
            assert first == len(found), "an offset is missing, or there twice"
            found += messages.column("value").to_pylist()
    return found


def fenced_by(store: JournalStore, partition: int, job: str = "push-b") -> Holder:
    """Somebody takes the lease over, whoever has it, as if it had stood still."""
    owned = store.partition(partition)
    return owned.claim(JobId(job), stood_still=owned.lease())
