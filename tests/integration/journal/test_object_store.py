"""Segments in an object store: put once by one writer, whatever happens to answers, and read in ranges."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import obstore
import pytest
from obstore.store import from_url

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.rules import JournalBehind
from airflow_provider_mzshare.core.journal.state import Segment, folder_of
from airflow_provider_mzshare.journal.reading import DamagedSegment, checksum_of, prologue
from airflow_provider_mzshare.storage.journal.segment_file import (
    SegmentExists,
    SegmentFile,
    list_epochs,
    list_segments,
    remove_segment,
)
from airflow_provider_mzshare.storage.journal.writer import claim_partition
from tests.support.journal_memory import MemoryJournal, open_writer, read_values
from tests.support.journals import JOURNAL, extent_of, messages_of, numbered, place_of, values, values_of
from tests.support.put_races import race
from tests.support.relay import Loss, Relay, relay
from tests.support.s3 import S3Server
from tests.support.segment_races import put_segments


@pytest.fixture
def root(s3: S3Server) -> str:
    return s3.new_root()


@pytest.fixture
def lossy(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay in front of the server, which this test's environment names."""
    with relay(s3.port) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


def created(root: str, number: int = 1, epoch: int = 1, first: int = 0) -> SegmentFile:
    return SegmentFile.create(
        root, JOURNAL, partition=0, epoch=epoch, number=number, first=first, prologue=b"relations"
    )


def put(root: str, *batches: object, number: int = 1, first: int = 0) -> Segment:
    file = created(root, number, first=first)
    for batch in batches:
        file.append(batch)
    segment = file.flush()
    file.close()
    return segment


def test_one_flush_is_one_object(root: str) -> None:
    file = created(root)
    file.append(numbered(0, 10))
    file.append(numbered(10, 10))
    assert file.takes_more
    segment = file.flush()
    assert not file.takes_more
    with pytest.raises(ValueError, match="takes no more"):
        file.append(numbered(20, 1))
    assert file.flush() == segment
    assert values_of(extent_of(root, segment)) == [b"message %d" % n for n in range(20)]
    assert checksum_of(place_of(root, segment), segment.length) == segment.checksum
    assert prologue(place_of(root, segment), segment.length) == b"relations"
    following = put(root, numbered(20, 5), number=2, first=20)
    assert values_of(extent_of(root, following)) == [b"message %d" % n for n in range(20, 25)]


def test_any_part_of_an_object_is_read(root: str) -> None:
    """Larger than what is asked for at once."""
    given = [os.urandom(3 << 20) for _ in range(5)] + [b"%d" % n for n in range(100)]
    segment = put(root, *(values(each) for each in given[:5]), values(*given[5:]))
    for lower, upper in ((0, 105), (0, 1), (3, 4), (4, 50), (104, 105)):
        assert values_of(extent_of(root, segment, lower, upper)) == given[lower:upper]
    hadoop = extent_of(root.replace("s3://", "s3a://"), segment, 4, 50)
    assert values_of(hadoop) == given[4:50]


def test_nothing_is_there_before_the_flush(root: str) -> None:
    file = created(root)
    file.append(numbered(0, 10))
    assert list(obstore.list(from_url(root)).collect()) == []
    file.close()
    assert list(obstore.list(from_url(root)).collect()) == []


def test_a_name_is_given_once(root: str) -> None:
    first, second = created(root), created(root)
    for file in (first, second):
        file.append(values(b"the same"))
    segment = first.flush()
    with pytest.raises(SegmentExists, match=r"0000000001-00000001\.journal already"):
        second.flush()
    assert not second.takes_more
    assert checksum_of(place_of(root, segment), segment.length) == segment.checksum


@pytest.mark.parametrize("rounds", [12, pytest.param(300, marks=pytest.mark.full(seconds=30))])
def test_of_two_writers_that_race_each_segment_has_one(root: str, rounds: int) -> None:
    found = race(put_segments, 2, rounds, root, JOURNAL)
    for each, answers in enumerate(zip(*found, strict=True)):
        won = [writer for writer, answer in enumerate(answers) if answer is not None]
        assert len(won) == 1, f"round {each}: {answers}"
        segment = answers[won[0]]
        assert values_of(extent_of(root, segment)) == [b"writer %d" % won[0]]
        assert checksum_of(place_of(root, segment), segment.length) == segment.checksum
    assert min(Counter(answer is None for answer in answers)[False] for answers in found) > 0, "they did not race"


@pytest.mark.parametrize("loss", ["request", "answer", "answer for an error"])
def test_a_segment_whose_answer_is_lost_is_sent_again_and_known_as_our_own(root: str, lossy: Relay, loss: Loss) -> None:
    lossy.lose("PUT", loss)
    segment = put(root, values(b"x"))
    assert lossy.seen("PUT") == 2
    assert values_of(extent_of(root, segment)) == [b"x"]


def test_a_segment_that_is_never_answered_is_not_used_any_more(root: str, lossy: Relay) -> None:
    """It may be there, or come later. Nobody announces it, and the next has another name."""
    lossy.lose("PUT", "answer", times=100)
    file = created(root)
    file.append(values(b"x"))
    with pytest.raises(OSError, match="PUT"):
        file.flush()
    assert not file.takes_more
    with pytest.raises(OSError, match="PUT"):
        file.flush()


def test_epochs_are_those_of_segments(root: str) -> None:
    assert list_epochs(root, JOURNAL, 0) == 0
    for epoch in (3, 12, 7):
        file = created(root, epoch=epoch)
        file.append(values(b"x"))
        file.flush()
    assert list_epochs(root, JOURNAL, 0) == list_epochs(root, JOURNAL, 0, after=11) == 12
    assert list_epochs(root, JOURNAL, 0, after=12) == list_epochs(root, JOURNAL, 1) == 0
    for _ in range(2):
        remove_segment(root, file.path)
        assert list_segments(root, JOURNAL, 0) == [(3, 1), (12, 1)]


def test_a_restored_catalog_is_told_from_the_objects_that_it_does_not_know(root: str) -> None:
    """One object is one flush, so what was put last has a note of its own, when its writer has closed."""
    store = MemoryJournal()
    with open_writer(store, root) as writer:
        writer.append(values(b"a")).result(20)
        copy = dict(store.states), dict(store.kept)
        writer.append(values(b"b")).result(20)
    assert list_segments(root, store.journal, 0) == [(1, 1), (1, 2), (1, 3)]
    with open_writer(store, root, "push-b") as writer:
        writer.append(values(b"c")).result(20)
    assert read_values(store, root) == [b"a", b"b", b"c"]
    remove_segment(root, f"{folder_of(store.journal)}/0/0000000002-00000001.journal")
    remove_segment(root, f"{folder_of(store.journal)}/0/0000000002-00000002.journal")
    store.states, store.kept = copy
    lease = store.partition(0).lease()
    with pytest.raises(JournalBehind, match="it ends at 1, and what epoch 1 wrote was announced to 2"):
        claim_partition(store, root, 0, JobId("push-c"), stood_still=lease)
    remove_segment(root, f"{folder_of(store.journal)}/0/0000000001-00000003.journal")
    claim_partition(store, root, 0, JobId("push-c"), stood_still=lease)


def test_an_object_that_is_gone_or_another_is_damage(root: str) -> None:
    segment = put(root, numbered(0, 1000), numbered(1000, 10))
    path = place_of(root, segment).removeprefix(f"{root}/")
    content = bytes(obstore.get(from_url(root), path).bytes())
    obstore.put(from_url(root), path, content[:-100])
    with pytest.raises(DamagedSegment, match=f"at byte {len(content) - 100}: it ends there"):
        messages_of(extent_of(root, segment))
    obstore.put(from_url(root), path, content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    assert len(messages_of(extent_of(root, segment, 0, 1000))) == 1000
    with pytest.raises(DamagedSegment, match="do not have its checksum"):
        messages_of(extent_of(root, segment))
    obstore.delete(from_url(root), path)
    with pytest.raises(DamagedSegment, match="it is missing"):
        messages_of(extent_of(root, segment))


def test_a_store_that_does_not_answer_is_not_damage(root: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = put(root, numbered(0, 10))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(OSError, match="ACCESS_DENIED") as caught:
        messages_of(extent_of(root, segment))
    assert not isinstance(caught.value, FileNotFoundError)
