"""A disk and a catalog for the model of journals, as values: bytes are lists of elements, a transaction is one call.

The rules are the real ones (``core/journal/rules.py``). A mutant leaves one of them out, here or in ``journal_model``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment
from airflow_provider_mzshare.core.ticklog import rules as ticklog
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease

Name = tuple[int, int, int]
"""Of a file: partition, epoch, number."""

TORN = -1
"""An element that was not written whole."""


def begun_at(offset: int) -> int:
    """The element that says: a flush begins here, or all was announced when its writer closed."""
    return -2 - offset


def messages_in(elements: Sequence[int]) -> list[int]:
    return [one for one in elements if one > TORN]


class Violation(AssertionError):
    """What must never be true, was."""


class Mutant(Enum):
    NONE = "none"
    NO_EPOCH = "an announcement is not compared with the lease"
    NO_BEFORE = "an announcement is not compared with what is announced"
    NO_FLUSH = "bytes are announced before they are flushed"
    NO_FOLDER_FLUSH = "the name of a new file is not flushed"
    PREDECESSORS_FILE = "a successor goes on in its predecessor's file"
    IDS_UNCHECKED = "ids of batches are not looked up when they are announced"
    DIGESTS_UNCHECKED = "a batch with an announced id is acknowledged, whatever is in it"
    LOST_IS_REFUSED = "an answer that was lost is taken for a refusal, and the messages are written again"
    FENCED_IS_REFUSED = "whoever is fenced after an answer was lost takes that for a refusal"
    REFUSED_IN_PLACE = "after a duplicate the writer goes on behind the refused bytes, in the same file"
    ACKNOWLEDGED_EARLY = "messages are acknowledged when they are flushed"
    TRIMMED_TOO_FAR = "a segment goes although a reader still needs its last messages"
    NEWEST_TRIMMED = "the segment goes that its writer goes on with"
    REMOVED_AT_ONCE = "the files of what was trimmed are removed without a grace"
    UNKNOWN_EPOCH = "files of an epoch that the catalog does not know are not looked for"
    BEGUN_UNCHECKED = "files of the known epoch are not asked for what was begun behind the announced end"
    STATE_FIRST = "the catalog is asked before the files are looked at"
    NO_SEAL = "a writer that closes does not note how far all was announced"
    DOUBTFUL_SEAL = "a writer that closes without an answer notes that all was announced"
    BEGUN_EARLY = "a flush begins before the one before it is announced"
    SWEPT_NEWER = "maintenance removes files that are newer than all that is announced"
    ANY_FREE_LEASE = "a free lease is claimed, though it is not the one that was compared with the files"
    SWEPT_UNKNOWN = "maintenance removes the files of an epoch that the catalog does not know"
    SWEPT_CURRENT = "maintenance removes files of the current epoch that no row names"
    WHOLE_FILE_READ = "a reader reads a file to its end"


# ── the disk ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class File:
    elements: list[int] = field(default_factory=list)
    flushed: int = 0
    """So many of them outlive a power cut. Of the others, some do."""
    named: bool = False
    """Its name outlives it too."""


class Disk:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.files: dict[Name, File] = {}

    def greatest_epoch(self, partition: int, *, named: bool = False) -> int:
        """:param named: of files that a power cut cannot take away."""
        found = (name[1] for name, file in self.files.items() if name[0] == partition and (file.named or not named))
        return max(found, default=0)

    def begun(self, partition: int, epoch: int) -> int:
        """The greatest offset at which one of the epoch's flushes begins."""
        files = [file.elements for name, file in self.files.items() if name[:2] == (partition, epoch)]
        whole = [each[: each.index(TORN)] if TORN in each else each for each in files]
        return max((-2 - one for each in whole for one in each if one < TORN), default=0)

    def put(self, name: Name) -> bool:
        """Whether it was made: not if it is there."""
        if name in self.files:
            return False
        self.files[name] = File()
        return True

    def write(self, name: Name, at: int, elements: Sequence[int]) -> None:
        """From ``at`` on. A file that was removed under its writer is written on, and nobody finds it."""
        found = self.files.get(name, File()).elements
        found += [TORN] * (at - len(found))
        found[at : at + len(elements)] = elements

    def flush(self, name: Name) -> None:
        if (file := self.files.get(name)) is not None:
            file.flushed = len(file.elements)

    def flush_folder(self, name: Name) -> None:
        if (file := self.files.get(name)) is not None:
            file.named = True

    def cut_power(self) -> None:
        for name, file in list(self.files.items()):
            if not file.named and self.random.random() < 0.5:
                del self.files[name]
                continue
            kept = self.random.randint(file.flushed, len(file.elements)) if self.random.random() < 0.7 else file.flushed
            torn = [TORN] if kept < len(file.elements) and self.random.random() < 0.3 else []
            file.elements[kept:] = torn
            file.flushed, file.named = len(file.elements), True


def checksum_of(elements: Sequence[int]) -> int:
    return hash(tuple(elements))


# ── the catalog ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Copy:
    """All that the catalog holds, as of one moment."""

    states: Mapping[int, PartitionState]
    segments: Mapping[Name, Segment]
    batches: Mapping[str, Batch]


class Catalog:
    def __init__(self, partitions: Sequence[int], mutant: Mutant) -> None:
        self.mutant = mutant
        self.states = {number: PartitionState(number) for number in partitions}
        self.segments: dict[Name, Segment] = {}
        self.batches: dict[str, Batch] = {}
        self.announced = 0

    # What a writer asks.

    def claim(self, partition: int, job: JobId, stood_still: Lease) -> Holder:
        state = self.states[partition]
        compared = None if self.mutant is Mutant.ANY_FREE_LEASE and state.lease.job_id is None else stood_still
        self.states[partition] = rules.claim(state, job, stood_still=compared)
        return Holder(job, self.states[partition].lease.epoch)

    def beat(self, partition: int, holder: Holder) -> None:
        self.states[partition] = rules.beat(self.states[partition], holder)

    def release(self, partition: int, holder: Holder) -> None:
        self.states[partition] = rules.release(self.states[partition], holder)

    def announce(self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]) -> None:
        state = self.states[after.partition]
        seen, as_holder = self._left_out(state, holder, before, after)
        known = {} if self.mutant is Mutant.IDS_UNCHECKED else self.batches
        decided = rules.announce(seen, as_holder, before, after, batches, known)
        if decided != seen or seen is not state:
            self.announced += 1
            self.states[after.partition] = replace(decided, lease=state.lease)
            self.segments[after.partition, after.epoch, after.number] = after
            self.batches |= {batch.id: batch for batch in batches}

    def _left_out(
        self, state: PartitionState, holder: Holder, before: Segment | None, after: Segment
    ) -> tuple[PartitionState, Holder]:
        """The state as a rule would see it that does not compare all of it."""
        if self.mutant is Mutant.NO_EPOCH:
            return replace(state, lease=Lease(holder.epoch, holder.job_id)), holder
        if self.mutant is Mutant.NO_BEFORE and state.segment != after:
            return replace(state, end=before.end if before else after.first, segment=before), holder
        if self.mutant is Mutant.PREDECESSORS_FILE and after.epoch != holder.epoch:
            ticklog.check_holder(state.lease, holder)
            as_holder = Holder(holder.job_id, after.epoch)
            return replace(state, lease=Lease(as_holder.epoch, as_holder.job_id)), as_holder
        return state, holder

    # What readers and maintenance ask.

    def rows(self, partition: int) -> list[Segment]:
        found = [segment for name, segment in self.segments.items() if name[0] == partition]
        return sorted(found, key=lambda one: (one.first, one.epoch, one.number))

    def range(self, partition: int, lower: int, upper: int) -> list[Segment]:
        return [one for one in self.rows(partition) if one.end > lower and one.first < upper]

    def trim(self, partition: int, to: int) -> None:
        state = self.states[partition]
        rows = [one for one in self.rows(partition) if one.first >= state.begin]
        if self.mutant is Mutant.TRIMMED_TOO_FAR:
            to = next((one.end for one in rows if one.first < to < one.end), to)
        if self.mutant is Mutant.NEWEST_TRIMMED:
            begin = max((one.end for one in rows if one.end <= to), default=state.begin)
            gone = state.segment is not None and state.segment.end <= begin
            self.states[partition] = replace(state, begin=begin, segment=None if gone else state.segment)
            return
        self.states[partition] = rules.trim(state, to, rows).state

    # Copies.

    def copy(self) -> Copy:
        return Copy(dict(self.states), dict(self.segments), dict(self.batches))

    def restore(self, copy: Copy) -> None:
        self.states, self.segments, self.batches = dict(copy.states), dict(copy.segments), dict(copy.batches)
