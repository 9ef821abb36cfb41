"""What files tell that a restored catalog does not know any more: a writer refuses to go on. Real files, real rules."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.rules import JournalBehind
from airflow_provider_mzshare.core.journal.state import OnDisk, folder_of
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import Fenced
from airflow_provider_mzshare.journal.begun import last_begun
from airflow_provider_mzshare.journal.reading import Extent
from airflow_provider_mzshare.storage.journal import segment_file
from airflow_provider_mzshare.storage.journal.looking import look
from airflow_provider_mzshare.storage.journal.records import messages_of
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile
from airflow_provider_mzshare.storage.journal.writer import JournalWriter, claim_partition
from tests.support.journal_memory import Faulty, MemoryJournal, fenced_by, open_writer, read_values
from tests.support.journals import JOURNAL, numbered, values_of

SECONDS = 20
FORMER = (
    r"c-rgqjq>8<lH!`P+~PbV0~%mtVrF4wV+S!ieWRTAuxzRWs^Nf1GePMcP%Kt>PMZM-_zwg#fV2pd&%+?bz{bD|G>iubfq<EXK>|og"
    r"z;$o|**pv^Kowj-o(~WUAlV7l!hjp_KxqLqw}QQe#>Xa}m;|9g{${+9&IR%}6OuX**Z{>+0`01l`dfg2zZr@2HwPNch~_^=9R5yb"
    r"K=?P6UD_VxUuGQsWtMc(AL{;1fwBRU^d{i"
)
"""A segment of the version that did not say where flushes begin: a and b, c, d, each flushed."""


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def store() -> MemoryJournal:
    return MemoryJournal()


def push(writer: JournalWriter, *texts: str) -> None:
    """Each flushed by itself."""
    for text in texts:
        messages: pa.RecordBatch = next(messages_of([text]))
        writer.append(messages).result(SECONDS)


@contextmanager
def restored(store: MemoryJournal) -> Iterator[None]:
    """To what it was when the context began."""
    copy = dict(store.states), dict(store.kept), dict(store.known)
    yield
    store.states, store.kept, store.known = copy


def claim(store: MemoryJournal, root: str) -> Holder:
    return claim_partition(store, root, 0, JobId("push-b"), stood_still=store.partition(0).lease())


def files(store: MemoryJournal, root: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(root, folder_of(store.journal), "0").glob("*.journal")}


# ── a restored catalog ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("before", [(), ("a",), ("a", "b")], ids=["of nothing", "of one", "of two"])
def test_what_was_announced_after_the_copy_by_a_writer_that_was_open_is_missed(
    store: MemoryJournal, root: str, before: tuple[str, ...]
) -> None:
    with open_writer(store, root) as writer:
        push(writer, *before)
        copy = dict(store.states), dict(store.kept), dict(store.known)
        push(writer, "c")
    store.states, store.kept, store.known = copy
    there = files(store, root)
    for _ in range(3):
        with pytest.raises(JournalBehind, match=r"it ends at \d, and what epoch 1 wrote was announced to"):
            claim(store, root)
    assert (files(store, root), store.partition(0).lease().epoch) == (there, 1)


def test_of_a_writer_that_was_killed_all_but_its_last_announcement_is_missed(store: MemoryJournal, root: str) -> None:
    with open_writer(store, root) as writer:
        push(writer, "a")
        with restored(store):
            push(writer, "b")
        claim(store, root)  # Nobody can tell it from what was written and never announced.
    store = MemoryJournal()
    with open_writer(store, root) as writer:
        push(writer, "a")
        with restored(store):
            push(writer, "b", "c")
        with pytest.raises(JournalBehind):
            claim(store, root)


def test_a_segment_that_was_begun_behind_the_copy_is_missed(
    store: MemoryJournal, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_file, "MAX_BYTES", 1)
    with open_writer(store, root) as writer:
        push(writer, "a")
        with restored(store):
            push(writer, "b", "c")
        assert len(files(store, root)) == 3
        with pytest.raises(JournalBehind):
            claim(store, root)
        # A name alone tells nothing: the power was cut before the file had a byte.
        Path(root, folder_of(store.journal), "0", "0000000001-00000009.journal").touch()
        with pytest.raises(JournalBehind):
            claim(store, root)


def test_a_writer_that_lives_on_beside_a_restored_catalog_is_refused_and_what_it_tried_is_told(
    store: MemoryJournal, root: str
) -> None:
    with open_writer(store, root) as writer:
        push(writer, "a")
        with restored(store):
            push(writer, "b")
        with pytest.raises(JournalBehind):
            push(writer, "c")
    with pytest.raises(JournalBehind):
        claim(store, root)


# ── a catalog that was not restored ───────────────────────────────────────────────────────────────────────────────────


def test_what_was_written_and_never_announced_stops_nobody(store: MemoryJournal, root: str) -> None:
    """Again and again, by writers of which each goes on where the one before it was cut off."""
    for turn in range(4):
        told: list[None] = []

        def cut_off(told: list[None] = told) -> None:
            told.append(None)
            if len(told) > 1:
                fenced_by(store, 0, f"push-{len(store.kept)}-b")

        with open_writer(Faulty(store, before=cut_off), root, f"push-{turn}") as writer:
            push(writer, "kept")
            with pytest.raises(Fenced):
                push(writer, "never announced")
        store.partition(0).release(claim(store, root))
    assert read_values(store, root) == [b"kept"] * 4


def test_the_note_of_a_writer_that_closed_is_in_nobodys_way(store: MemoryJournal, root: str) -> None:
    for turn in range(3):
        with open_writer(store, root) as writer:
            push(writer, f"a{turn}", f"b{turn}")
    assert read_values(store, root) == [f"{c}{n}".encode() for n in range(3) for c in "ab"]
    with open_writer(store, root):
        pass
    assert len(files(store, root)) == 3, "who has nothing to write leaves nothing"


# ── one file ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wherever_a_file_is_torn_what_is_whole_is_told(tmp_path: Path) -> None:
    file = SegmentFile.create(str(tmp_path), JOURNAL, partition=0, epoch=1, number=1, first=0)
    lengths = []
    for first in (0, 10, 20):
        file.append(numbered(first, 5))
        file.append(numbered(first + 5, 5))
        lengths.append(file.flush().length)
    assert file.seal()
    file.close()
    path = str(tmp_path / file.path)
    content = Path(path).read_bytes()
    seen = set()
    for size in reversed(range(0, len(content) + 1, 8)):
        os.truncate(path, size)
        told = last_begun(path, lengths[0], 10)
        block = 64
        expected = [None, 10, 20, 30][sum(size >= one + block for one in lengths)]
        assert told == expected, size
        seen.add(told)
        if size >= 64:
            assert last_begun(path) == (0 if told is None else told)
    assert seen == {None, 10, 20, 30}
    assert last_begun(path) is None
    os.unlink(path)
    assert last_begun(path) is None


def test_bytes_that_are_no_blocks_tell_nothing(tmp_path: Path) -> None:
    file = SegmentFile.create(str(tmp_path), JOURNAL, partition=0, epoch=1, number=1, first=0)
    file.append(numbered(0, 5))
    segment = file.flush()
    file.close()
    path = tmp_path / file.path
    content = path.read_bytes()
    for more in (bytes(500), os.urandom(500), content[:500], content[40:]):
        path.write_bytes(content + more)
        assert last_begun(str(path), segment.length, segment.end) is None


def test_a_file_of_the_former_version_is_read_and_tells_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "0" / "0" / "0" / "former"
    path.parent.mkdir(parents=True)
    path.write_bytes(zlib.decompress(base64.b85decode("".join(FORMER))))
    assert values_of(Extent(str(path), 0, 768, 0, 4)) == [b"a", b"b", b"c", b"d"]
    assert last_begun(str(path)) == 0
    for length, end in ((288, 2), (528, 3), (768, 4)):
        assert last_begun(str(path), length, end) is None


def test_files_of_the_newest_known_epoch_are_looked_at(store: MemoryJournal, root: str) -> None:
    assert look(root, store.journal, store.partition(0).load()) == OnDisk(0)
    with open_writer(store, root) as writer:
        push(writer, "a", "b")
        assert look(root, store.journal, store.partition(0).load()) == OnDisk(1, 1, 0)
    assert look(root, store.journal, store.partition(0).load()) == OnDisk(1, 1, 2)
