"""The rules of journals, as decisions without input, output or clock.

A store loads a ``PartitionState`` behind the partition's lock, asks one of these, and writes what comes back in the
same transaction. A refusal is an exception, and nothing of what was refused counts.

What makes the messages exact: only the holder of an epoch announces, it says what it believes to be announced, and
what it wants announced begins there. So a zombie's bytes never count, what was announced never changes, and who asks
again because an answer was lost is recognised by what it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.state import Batch, OnDisk, PartitionState, Segment
from airflow_provider_mzshare.core.ticklog import rules as ticklog
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import LeaseTaken, LogConflict, TerminalError

# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class JournalBehind(TerminalError):
    """The catalog has lost what was announced last: it was restored from an old copy. Nothing may be written."""

    reason = "catalog_behind"
    hint = "restore a newer backup of the catalog; or DROP SOURCE … CASCADE and create it again"

    def __init__(self, partition: int, problem: str) -> None:
        self.partition, self.problem = partition, problem
        super().__init__(f"the catalog is behind partition {partition} of the journal: {problem}")


class AnnouncedOtherwise(LogConflict):
    """More is announced than the writer knows of, or something else: it must look before it writes again."""

    def __init__(self, partition: int, problem: str) -> None:
        self.partition, self.problem = partition, problem
        super().__init__(f"partition {partition} of the journal is not where its writer believes: {problem}")


class BadAnnouncement(TerminalError):
    """An announcement that contradicts itself: an error of the program that makes it."""

    def __init__(self, partition: int, problem: str) -> None:
        self.partition, self.problem = partition, problem
        super().__init__(f"partition {partition} of the journal: {problem}")


class DuplicateBatch(LogConflict):
    """Batches that are announced already, maybe in other partitions. They are acknowledged, and not taken again.

    The bytes of the refused announcement never count: the writer goes on in another file, without these batches.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = tuple(batches)
        """As they are announced."""
        self.ids = tuple(batch.id for batch in self.batches)
        super().__init__(f"the journal has {_listed(self.batches)} already")


class BatchDiffers(TerminalError):
    """The ids of batches that are announced, for other messages than these."""

    hint = "an id of its own for each batch; the same one only to send the same messages again"

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = tuple(batches)
        """As they are announced."""
        self.ids = tuple(batch.id for batch in self.batches)
        super().__init__(f"the journal has {_listed(self.batches)} already, with other records")


def _listed(batches: Sequence[Batch]) -> str:
    shown = ", ".join(f"{one.id!r} (partition {one.partition}, {one.first} to {one.end})" for one in batches[:3])
    more = f" and {len(batches) - 3} more" if len(batches) > 3 else ""
    return f"{'batch' if len(batches) == 1 else 'batches'} {shown}{more}"


# ── the lease of a partition's writer ─────────────────────────────────────────────────────────────────────────────────


def claim(state: PartitionState, job_id: JobId, *, stood_still: Lease | None = None) -> PartitionState:
    """Become the writer.

    :param stood_still: the lease as ``check_files`` has seen it; not taken, even if it is free, when it is another by
        now: the catalog may have been restored in between, and this claim would make a lost epoch a known one.
    """
    if stood_still is not None and stood_still != state.lease:
        raise LeaseTaken(f"the lease of partition {state.partition} was taken meanwhile (epoch {state.lease.epoch})")
    return replace(state, lease=ticklog.claim(state.lease, job_id, stood_still=stood_still))


def beat(state: PartitionState, holder: Holder) -> PartitionState:
    return replace(state, lease=ticklog.beat(state.lease, holder))


def release(state: PartitionState, holder: Holder) -> PartitionState:
    return replace(state, lease=ticklog.release(state.lease, holder))


def check_files(state: PartitionState, found: OnDisk) -> None:
    """Refuse to write beside files that tell of more than the catalog knows: of an epoch that was never claimed, or of
    something that was announced. A writer begins only where it knows that all before was announced.

    It comes before the claim, which would make an unknown epoch a known one.

    :param found: looked at before ``state`` is loaded: else what another writer does meanwhile looks like a loss.
    """
    if found.greatest > state.lease.epoch:
        raise JournalBehind(
            state.partition, f"there are files of epoch {found.greatest}, but it knows only {state.lease.epoch}"
        )
    if found.begun > state.end:
        raise JournalBehind(
            state.partition,
            f"it ends at {state.end}, and what epoch {found.known} wrote was announced to {found.begun}",
        )
    if found.known != state.lease.epoch:
        # Files of the other epoch were not looked at.
        raise LeaseTaken(f"partition {state.partition} was taken meanwhile (epoch {state.lease.epoch})")


# ── announcing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def announce(
    state: PartitionState,
    holder: Holder,
    before: Segment | None,
    after: Segment,
    batches: Sequence[Batch],
    known: Mapping[str, Batch],
) -> PartitionState:
    """From now on the messages of ``after`` that ``before`` does not have count. The same again changes nothing.

    :param before: the segment as its writer last announced it; None for a segment that begins.
    :param batches: those whose messages are in what is new.
    :param known: which of their ids are announced, in whatever partition.
    """
    ticklog.check_holder(state.lease, holder)
    if _is_same(state.segment, after) and all(known.get(batch.id) == batch for batch in batches):
        return state
    _check_made(state, holder, before, after)
    _check_believed(state, before, after)
    _check_boundary(state, after)
    _check_batches(state, before, after, batches)
    _check_new(batches, known)
    grown = after.length - (before.length if before else 0)
    return replace(state, end=after.end, segment=after, size=state.size + grown)


def _is_same(one: Segment | None, other: Segment | None) -> bool:
    """When it was announced is not for the writer to say."""
    if one is None or other is None:
        return one is other
    return replace(one, announced_at=0) == replace(other, announced_at=0)


def _check_made(state: PartitionState, holder: Holder, before: Segment | None, after: Segment) -> None:
    """Does ``after`` go on with ``before``, in a file of the writer's own?"""
    if (after.partition, after.epoch) != (state.partition, holder.epoch):
        raise BadAnnouncement(
            state.partition,
            f"epoch {holder.epoch} cannot write the file of partition {after.partition} and epoch {after.epoch}",
        )
    if after.number < 1 or after.end < after.first:
        raise BadAnnouncement(state.partition, f"segment {after.number} cannot be from {after.first} to {after.end}")
    if before is None:
        return
    if _start(before) != _start(after) or (before.low is not None and after.low != before.low):
        raise BadAnnouncement(state.partition, f"segment {after.number} does not go on with segment {before.number}")
    if after.end < before.end or after.length < before.length or after.payload < before.payload:
        raise BadAnnouncement(
            state.partition, f"segment {after.number} ended at {before.end}, and cannot shrink to {after.end}"
        )


def _start(segment: Segment) -> tuple[int, ...]:
    return segment.partition, segment.epoch, segment.number, segment.first


def _check_believed(state: PartitionState, before: Segment | None, after: Segment) -> None:
    """Is announced what the writer believes to be? No more, which it would write again; no less, which is lost."""
    believed = after.first if before is None else before.end
    if state.end < believed:
        raise JournalBehind(state.partition, f"it ends at {state.end}, and {believed} was announced")
    if state.end > believed:
        raise AnnouncedOtherwise(state.partition, f"it ends at {state.end}, and not at {believed}")
    newest = state.segment
    if before is None:
        if newest is not None and (newest.epoch, newest.number) >= (after.epoch, after.number):
            raise AnnouncedOtherwise(state.partition, f"segment {after.number} of epoch {after.epoch} is not new")
        return
    if newest is None or _age(newest) < _age(before):
        raise JournalBehind(state.partition, f"it does not know all of segment {before.number} of {before.epoch}")
    if not _is_same(newest, before):
        raise AnnouncedOtherwise(
            state.partition, f"its newest segment is {newest.number} of epoch {newest.epoch}, at {newest.length} bytes"
        )


def _age(segment: Segment) -> tuple[int, int, int]:
    return segment.epoch, segment.number, segment.length


def _check_boundary(state: PartitionState, after: Segment) -> None:
    """Positions of the upstream's own are looked up by boundaries: these only go forward, every segment carries the
    last one, and nothing is announced below it any more."""
    last = state.segment.boundary if state.segment else None
    if last is None:
        return
    if after.boundary is None or after.boundary < last:
        raise BadAnnouncement(state.partition, f"a boundary at {last} cannot be followed by one at {after.boundary}")
    begins = not _is_of(state.segment, after) or (state.segment is not None and state.segment.low is None)
    if begins and after.low is not None and after.low < last:
        raise BadAnnouncement(
            state.partition, f"a segment cannot begin at position {after.low}: all below {last} is announced"
        )


def _is_of(one: Segment | None, other: Segment) -> bool:
    return one is not None and _start(one) == _start(other)


def _check_batches(state: PartitionState, before: Segment | None, after: Segment, batches: Sequence[Batch]) -> None:
    lower = after.first if before is None else before.end
    for one in batches:
        if one.partition != state.partition or not lower <= one.first <= one.end <= after.end:
            raise BadAnnouncement(
                state.partition,
                f"batch {one.id!r} cannot be from {one.first} to {one.end}: what is new is from {lower} to {after.end}",
            )
    if len({batch.id for batch in batches}) < len(batches):
        raise BadAnnouncement(state.partition, "a batch was written twice at once")


def _check_new(batches: Sequence[Batch], known: Mapping[str, Batch]) -> None:
    twins = [(batch, known[batch.id]) for batch in batches if batch.id in known]
    differing = [announced for batch, announced in twins if batch.digest != announced.digest]
    if differing:
        raise BatchDiffers(differing)
    if twins:
        raise DuplicateBatch([announced for _batch, announced in twins])


# ── letting go ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Trimmed:
    """``gone``: the segments that nobody begins to read any more. Who has begun may still be reading them: their rows
    and files go later."""

    state: PartitionState
    gone: tuple[Segment, ...]


def trim(state: PartitionState, to: int, segments: Sequence[Segment]) -> Trimmed:
    """What may go when nobody needs what is before ``to``: whole segments, and never the newest.

    The newest one stays because its writer goes on with it.

    :param segments: from ``begin`` on, in order, as many as are to be looked at.
    """
    gone: list[Segment] = []
    for segment in segments:
        if segment.end > min(to, state.end) or _is_same(segment, state.segment):
            break
        gone.append(segment)
    begin = gone[-1].end if gone else state.begin
    return Trimmed(replace(state, begin=max(begin, state.begin)), tuple(gone))
