"""The rules of journals, one by one; by chance they meet in ``test_model``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_mzshare.core.ids import JobId, JournalId
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.rules import (
    AnnouncedOtherwise,
    BadAnnouncement,
    BatchDiffers,
    DuplicateBatch,
    JournalBehind,
)
from airflow_provider_mzshare.core.journal.state import Batch, OnDisk, PartitionState, Segment, folder_of, path_of
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import Fenced, LeaseTaken

ME = Holder(JobId("push-1"), 1)
MINE = PartitionState(0, Lease(1, ME.job_id, 1))
FIRST = Segment(0, epoch=1, number=1, first=0, end=10, length=100, checksum=7, payload=300)
MORE = replace(FIRST, end=15, length=150, checksum=8, payload=450)
BATCH = Batch("b", 0, 10, 15, "digest")


def at(segment: Segment, *, holder: Holder = ME) -> PartitionState:
    lease = Lease(holder.epoch, holder.job_id, 1)
    return PartitionState(0, lease, end=segment.end, segment=replace(segment, announced_at=1_000), size=segment.length)


def test_a_segment_begins_and_grows() -> None:
    begun = rules.announce(MINE, ME, None, FIRST, [], {})
    assert (begun.end, begun.size, begun.segment, begun.begin) == (10, 100, FIRST, 0)
    grown = rules.announce(begun, ME, FIRST, MORE, [BATCH], {})
    assert (grown.end, grown.size, grown.segment) == (15, 150, MORE)
    second = Segment(0, 1, 2, 15, 16, 20, 9, 30)
    assert rules.announce(grown, ME, None, second, [], {}).size == 170


def test_a_boundary_moves_without_a_message_and_the_first_message_comes_later() -> None:
    empty = replace(FIRST, end=0, length=20, payload=0, boundary=70)
    state = rules.announce(MINE, ME, None, empty, [], {})
    moved = replace(empty, boundary=80)
    state = rules.announce(state, ME, empty, moved, [], {})
    assert (state.end, state.size, state.segment) == (0, 20, moved)
    assert rules.announce(state, ME, moved, replace(FIRST, low=85, boundary=90), [], {}).end == 10


def test_the_same_again_changes_nothing() -> None:
    state = at(MORE)
    assert rules.announce(state, ME, FIRST, MORE, [BATCH], {"b": BATCH}) is state, "whenever it was announced"
    with pytest.raises(AnnouncedOtherwise):
        rules.announce(state, ME, FIRST, MORE, [BATCH], {})


@pytest.mark.parametrize("lease", [Lease(2, JobId("other"), 2), Lease(1, JobId("other"), 1), Lease(1, None, 1)])
def test_whoever_does_not_hold_the_lease_is_fenced(lease: Lease) -> None:
    state = replace(at(FIRST), lease=lease)
    for before, after in ((FIRST, MORE), (None, FIRST)):
        with pytest.raises(Fenced):
            rules.announce(state, ME, before, after, [], {})
    for change in (rules.beat, rules.release):
        with pytest.raises(Fenced):
            change(state, ME)


def test_a_successor_begins_at_the_announced_end_in_a_file_of_its_own() -> None:
    two = Holder(JobId("push-2"), 2)
    state = at(FIRST, holder=two)
    own = Segment(0, epoch=2, number=1, first=10, end=11, length=10, checksum=1, payload=3)
    assert rules.announce(state, two, None, own, [], {}).end == 11
    with pytest.raises(BadAnnouncement, match="epoch 2 cannot write the file of partition 0 and epoch 1"):
        rules.announce(state, two, FIRST, MORE, [], {})


@pytest.mark.parametrize(
    ("announced", "before", "after", "error", "says"),
    [
        (FIRST, MORE, replace(MORE, end=20, length=200), JournalBehind, "ends at 10, and 15 was announced"),
        (MORE, FIRST, replace(MORE, checksum=9), AnnouncedOtherwise, "ends at 15, and not at 10"),
        (MORE, None, replace(FIRST, number=2, first=10, end=12), AnnouncedOtherwise, "ends at 15, and not at 10"),
        (FIRST, None, replace(FIRST, number=2, first=11, end=12), JournalBehind, "ends at 10, and 11 was announced"),
        (FIRST, None, replace(FIRST, first=10, end=12), AnnouncedOtherwise, "segment 1 of epoch 1 is not new"),
        (FIRST, replace(FIRST, length=110), MORE, JournalBehind, "not know all of segment 1"),
        (FIRST, replace(FIRST, length=90), MORE, AnnouncedOtherwise, "at 100 bytes"),
        (FIRST, replace(FIRST, checksum=6), MORE, AnnouncedOtherwise, "its newest segment is 1"),
        (FIRST, FIRST, replace(FIRST, number=2, end=15, length=150), BadAnnouncement, "does not go on with"),
        (replace(FIRST, low=4), replace(FIRST, low=4), replace(MORE, low=5), BadAnnouncement, "does not go on with"),
        (FIRST, FIRST, replace(FIRST, end=9), BadAnnouncement, "cannot shrink to 9"),
        (FIRST, FIRST, replace(FIRST, length=99), BadAnnouncement, "cannot shrink"),
        (FIRST, FIRST, replace(MORE, partition=1), BadAnnouncement, "cannot write the file of partition 1"),
        (replace(FIRST, boundary=9), None, Segment(0, 1, 2, 10, 12, 9, 9, 9, boundary=8), BadAnnouncement, "boundary"),
    ],
)
def test_what_is_announced_must_be_what_its_writer_believes(
    announced: Segment, before: Segment | None, after: Segment, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        rules.announce(at(announced), ME, before, after, [], {})


def test_an_empty_catalog_is_behind_a_writer_that_has_announced() -> None:
    with pytest.raises(JournalBehind) as told:
        rules.announce(MINE, ME, FIRST, MORE, [], {})
    assert told.value.reason == "catalog_behind"
    assert told.value.line == (
        "the catalog is behind partition 0 of the journal: it ends at 0, and 10 was announced. "
        "Try: restore a newer backup of the catalog; or DROP SOURCE … CASCADE and create it again"
    )


def test_a_batch_is_taken_once_wherever_it_is() -> None:
    elsewhere = Batch("b", 3, 70, 75, "digest")
    with pytest.raises(DuplicateBatch) as told:
        rules.announce(at(FIRST), ME, FIRST, MORE, [BATCH], {"b": elsewhere})
    assert (told.value.ids, told.value.batches) == (("b",), (elsewhere,))
    assert told.value.line == "the journal has batch 'b' (partition 3, 70 to 75) already."
    other = replace(BATCH, id="c", first=10, end=12)
    with pytest.raises(BatchDiffers, match="already, with other records") as differs:
        rules.announce(
            at(FIRST), ME, FIRST, MORE, [replace(BATCH, first=12), other],
            {"b": elsewhere, "c": replace(other, digest="!")},
        )  # fmt: skip
    assert differs.value.ids == ("c",)


@pytest.mark.parametrize(
    ("batches", "says"),
    [
        ([replace(BATCH, first=9)], "batch 'b' cannot be from 9 to 15: what is new is from 10 to 15"),
        ([replace(BATCH, end=16)], "cannot be from 10 to 16"),
        ([replace(BATCH, partition=1)], "batch 'b'"),
        ([replace(BATCH, end=12), replace(BATCH, first=12)], "a batch was written twice at once"),
    ],
)
def test_batches_are_in_what_is_new(batches: list[Batch], says: str) -> None:
    with pytest.raises(BadAnnouncement, match=says):
        rules.announce(at(FIRST), ME, FIRST, MORE, batches, {})


def test_a_writer_follows_another_only_as_leases_allow() -> None:
    taken = rules.claim(PartitionState(0), ME.job_id)
    assert taken.lease == Lease(1, ME.job_id, 1)
    with pytest.raises(LeaseTaken):
        rules.claim(taken, JobId("push-2"))
    assert rules.claim(taken, JobId("push-2"), stood_still=taken.lease).lease.epoch == 2
    with pytest.raises(LeaseTaken):
        rules.claim(rules.beat(taken, ME), JobId("push-2"), stood_still=taken.lease)
    free = rules.release(taken, ME)
    assert rules.claim(free, JobId("push-2"), stood_still=free.lease).lease.epoch == 2
    with pytest.raises(LeaseTaken, match=r"was taken meanwhile \(epoch 1\)"):
        rules.claim(free, JobId("push-2"), stood_still=Lease(4, None, 9))


def test_files_that_tell_of_more_than_the_catalog_knows_stop_the_writer() -> None:
    for epoch, begun in ((0, 0), (1, 0), (1, 10)):
        rules.check_files(at(FIRST), OnDisk(1, epoch, begun))
    with pytest.raises(JournalBehind, match="there are files of epoch 2, but it knows only 1"):
        rules.check_files(at(FIRST), OnDisk(1, 2, 10))
    with pytest.raises(JournalBehind, match="it ends at 10, and what epoch 1 wrote was announced to 11"):
        rules.check_files(at(FIRST), OnDisk(1, 1, 11))


def test_an_epoch_that_was_claimed_while_the_files_were_looked_at_is_looked_at_anew() -> None:
    for known in (0, 2):
        with pytest.raises(LeaseTaken, match="taken meanwhile"):
            rules.check_files(at(FIRST), OnDisk(known))
    with pytest.raises(JournalBehind, match="announced to 11"):
        rules.check_files(at(FIRST), OnDisk(2, 0, 11))


def test_whole_segments_go_and_never_the_newest() -> None:
    rows = [Segment(0, 1, number, number * 10 - 10, number * 10, 100, 0, 0) for number in (1, 2, 3)]
    state = PartitionState(0, end=30, segment=replace(rows[-1], announced_at=5), size=300)
    for to, begin, gone in ((9, 0, 0), (10, 10, 1), (19, 10, 1), (20, 20, 2), (30, 20, 2), (99, 20, 2)):
        trimmed = rules.trim(state, to, rows)
        assert (trimmed.state.begin, len(trimmed.gone)) == (begin, gone), to
        assert replace(trimmed.state, begin=0) == state
    assert rules.trim(replace(state, begin=20), 10, rows[2:]).state.begin == 20


def test_files_of_a_partition_sort_as_they_were_begun() -> None:
    journal = JournalId("journal:0123456789abcdef")
    assert path_of(journal, FIRST) == "journals/0123456789abcdef/0/0000000001-00000001.journal"
    assert path_of(journal, FIRST).startswith(folder_of(journal))
    assert path_of(journal, replace(FIRST, number=99)) < path_of(journal, replace(FIRST, epoch=10))
