"""A segment is created once, durable when it says so, and not touched again after an error."""

from __future__ import annotations

import errno
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.journal.reading import DamagedSegment, checksum_of, prologue
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.journal import segment_file
from airflow_provider_mzshare.storage.journal.segment_file import (
    SegmentExists,
    SegmentFile,
    list_epochs,
    list_segments,
    remove_segment,
)
from tests.support.journals import JOURNAL, batch_of, extent_of, numbered, place_of, values, values_of, write_segment
from tests.support.small_disk import fill, small_disk

FOLDER = "journals/0011223344556677/0"


@contextmanager
def created(
    root: Path | str, *, number: int = 1, epoch: int = 1, first: int = 0, text: bytes = b""
) -> Iterator[SegmentFile]:
    file = SegmentFile.create(str(root), JOURNAL, partition=0, epoch=epoch, number=number, first=first, prologue=text)
    try:
        yield file
    finally:
        file.close()


def names(first: int, end: int) -> list[bytes]:
    return [b"message %d" % n for n in range(first, end)]


# ── what is announced ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_segment_grows_from_flush_to_flush_and_what_was_told_stays_right(tmp_path: Path) -> None:
    told = []
    with created(tmp_path, text=b"relations") as file:
        for first in range(0, 50, 10):
            file.append(numbered(first, 7))
            file.append(numbered(first + 7, 3))
            told.append(file.flush())
            assert file.flush() == told[-1]
            assert (file.takes_more, file.end) == (True, first + 10)
    for number, segment in enumerate(told, 1):
        assert (segment.first, segment.end, segment.messages) == (0, number * 10, number * 10)
        assert values_of(extent_of(tmp_path, segment)) == names(0, number * 10)
        assert checksum_of(place_of(tmp_path, segment), segment.length) == segment.checksum
        assert segment.payload == sum(map(len, names(0, number * 10)))
    data = Path(place_of(tmp_path, told[-1])).read_bytes()
    assert (len(data), zlib.crc32(data)) == (told[-1].length, told[-1].checksum)
    assert prologue(place_of(tmp_path, told[0]), told[0].length) == b"relations"
    assert path_of(JOURNAL, told[0]) == "journals/0011223344556677/0/0000000001-00000001.journal" == file.path


def test_a_segment_knows_its_lowest_position_and_the_last_boundary(tmp_path: Path) -> None:
    with created(tmp_path) as file:
        file.append(values(b"x"))
        assert (file.flush().low, file.flush().boundary) == (None, None)
        file.append(batch_of([{"position": 7}, {"position": 9}]), boundary=9)
        assert (file.flush().low, file.flush().boundary) == (7, 9)
        file.append(batch_of([{"position": 9}]))
        assert (file.flush().low, file.flush().boundary) == (7, 9)
        before = file.flush()
        file.append(batch_of([]), boundary=12)
        assert file.flush() == Segment(**{**vars(before), "boundary": 12}), "a boundary needs no message"
    with created(tmp_path, number=2) as file:
        file.append(batch_of([{"position": 7}]), low=3)
        assert file.flush().low == 3


def test_segments_that_begin_alike_are_not_alike(tmp_path: Path) -> None:
    """A client that asks an object store again must not take another's object for its own. And the checksum covers
    headers, which have checksums themselves."""
    sums = set()
    for number in (1, 2):
        with created(tmp_path, number=number) as file:
            file.append(values(b"x"))
            sums.add(file.flush().checksum)
    assert len(sums) == 2


def test_a_full_segment_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_file, "MAX_BYTES", 10_000)
    with created(tmp_path) as file:
        file.append(values(os.urandom(5000)))
        assert file.takes_more
        file.append(values(os.urandom(5000)))
        assert not file.takes_more
        assert file.flush().messages == 2
    assert not file.takes_more


def test_messages_with_other_columns_are_refused(tmp_path: Path) -> None:
    with created(tmp_path) as file:
        with pytest.raises(ValueError, match="other columns"):
            file.append(pa.RecordBatch.from_pydict({"value": [b"x"]}))
        file.append(values(b"x"))
        assert values_of(extent_of(tmp_path, file.flush())) == [b"x"]


# ── one writer ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_is_given_once(tmp_path: Path) -> None:
    with created(tmp_path) as file:
        file.append(values(b"first"))
        segment = file.flush()
        with pytest.raises(SegmentExists, match=r"0000000001-00000001\.journal already"):
            SegmentFile.create(str(tmp_path), JOURNAL, partition=0, epoch=1, number=1, first=0)
    assert values_of(extent_of(tmp_path, segment)) == [b"first"]


def test_of_many_that_create_at_once_one_has_the_segment(tmp_path: Path) -> None:
    gate, answers = threading.Barrier(8), []

    def create(each: int) -> None:
        for number in range(1, 21):
            gate.wait()
            try:
                with created(tmp_path, number=number) as file:
                    file.append(values(b"writer %d" % each))
                    answers.append((number, each, file.flush()))
            except SegmentExists:
                continue

    threads = [threading.Thread(target=create, args=(each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number, *_ in answers) == list(range(1, 21))
    for _, each, segment in answers:
        assert values_of(extent_of(tmp_path, segment)) == [b"writer %d" % each]


# ── durability ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_flushed_is_the_file_first_and_then_all_folders_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[str, int]] = []

    def noting(flush: Callable[[int], None]) -> Callable[[int], None]:
        def noted(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            flushed.append((os.path.relpath(path, tmp_path), os.fstat(descriptor).st_size))
            flush(descriptor)

        return noted

    for each in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, each, noting(getattr(os, each)))
    with created(tmp_path) as file:
        file.append(numbered(0, 10))
        first = file.flush()
        assert flushed[0] == (file.path, first.length)
        folders = ["journals/0011223344556677/0", "journals/0011223344556677", "journals", "."]
        assert [name for name, _ in flushed[1:]] == folders
        flushed.clear()
        file.append(numbered(10, 1))
        assert flushed == []
        assert [(file.path, file.flush().length)] == flushed
        file.flush()
        assert len(flushed) == 1, "there was nothing to flush"


def test_only_what_was_flushed_needs_to_be_there(tmp_path: Path) -> None:
    """A power cut keeps what was flushed, and of the rest any part."""
    flushed, sizes = [], []
    with created(tmp_path) as file:
        for first in range(0, 3000, 100):
            file.append(numbered(first, 100, lambda n: os.urandom(2000) if n % 3 else b"%d" % n))
            if first % 500 == 0:
                flushed.append(file.flush())
                sizes.append(os.stat(tmp_path / file.path).st_size)
    assert sizes == [segment.length for segment in flushed]
    for segment in reversed(flushed):
        os.truncate(tmp_path / file.path, segment.length)
        found = values_of(extent_of(tmp_path, segment))
        assert [value for value in found if len(value or b"") < 10] == [b"%d" % n for n in range(0, segment.end, 3)]
        assert len(found) == segment.end
        # The index may have outlived what it names.
        assert len(values_of(extent_of(tmp_path, segment, segment.end - 1))) == 1


def test_what_was_not_flushed_is_never_announced(tmp_path: Path) -> None:
    with created(tmp_path) as file:
        file.append(values(b"flushed"))
        segment = file.flush()
        file.append(values(b"not"))
    assert values_of(extent_of(tmp_path, segment)) == [b"flushed"]
    with pytest.raises(DamagedSegment, match="blocks end with offset 1"):
        values_of(extent_of(tmp_path, segment, upper=2))
    with pytest.raises(ValueError, match="takes no more"):
        file.append(values(b"closed"))


def test_files_and_folders_have_the_mode_of_the_process(tmp_path: Path) -> None:
    for mask, folder_mode, file_mode in ((0o077, 0o700, 0o600), (0o007, 0o770, 0o660)):
        root = tmp_path / f"{mask:o}"
        root.mkdir()
        before = os.umask(mask)
        try:
            with created(root) as file:
                file.append(values(os.urandom(index.EVERY + 1)))
                file.append(values(b"x"))
                file.flush()
        finally:
            os.umask(before)
        folder = (root / file.path).parent
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
        assert modes == [folder_mode, file_mode, file_mode]


@pytest.mark.parametrize("of_process", [0o022, 0o077])
def test_files_and_folders_have_the_mode_that_is_asked_for(tmp_path: Path, of_process: int) -> None:
    before = os.umask(of_process)
    try:
        for mask, folder_mode, file_mode in ((0o077, 0o700, 0o600), (0o007, 0o770, 0o660)):
            root = tmp_path / f"{mask:o}"
            root.mkdir()
            file = SegmentFile.create(str(root), JOURNAL, partition=0, epoch=1, number=1, first=0, umask=mask)
            for value in (os.urandom(index.EVERY + 1), b"x"):
                file.append(values(value))
            file.flush()
            file.close()
            folder = (root / file.path).parent
            modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
            assert modes == [folder_mode, file_mode, file_mode]
    finally:
        os.umask(before)


# ── when storage fails ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_that_is_gone_does_not_come_back_empty(tmp_path: Path) -> None:
    """Below a mount point without its disk, a journal must not go on as if it had just begun."""
    for root, first in ((tmp_path / "gone", 0), (tmp_path, 5)):
        with pytest.raises(OSError, match="is the warehouse's disk mounted") as caught, created(root, first=first):
            pass
        assert (caught.value.errno, fault_of(caught.value)) == (errno.ENODEV, "away")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.mounts
def test_a_full_disk_ends_the_file_and_not_what_it_had(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 << 20) as disk, created(disk) as file:
        file.append(numbered(0, 10))
        segment = file.flush()
        filler = fill(disk, leave=100_000)
        with pytest.raises(OSError, match="No space left") as caught:
            file.append(values(*(os.urandom(200_000) for _ in range(10))))
        assert fault_of(caught.value) == "full"
        assert (disk / file.path).stat().st_size > segment.length, "nothing was torn"
        filler.unlink()
        assert not file.takes_more
        for attempt in (file.flush, lambda: file.append(values(b"more")), lambda: file.append(values(b"more"))):
            with pytest.raises(OSError, match="No space left"):
                attempt()
        assert values_of(extent_of(disk, segment)) == names(0, 10)
        with created(disk, number=2, first=10) as following:
            following.append(numbered(10, 5))
            assert values_of(extent_of(disk, following.flush())) == names(10, 15)


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
def test_a_flush_that_fails_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """The system forgets what it could not write: the next flush would find nothing to do, and succeed."""

    def fails(_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with created(tmp_path) as file:
        file.append(numbered(0, 10))
        monkeypatch.setattr(os, call, fails)
        with pytest.raises(OSError, match="Input/output error"):
            file.flush()
        monkeypatch.undo()
        assert not file.takes_more
        with pytest.raises(OSError, match="Input/output error"):
            file.flush()


def test_an_index_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    with created(tmp_path) as file:
        (tmp_path / (file.path + index.SUFFIX)).mkdir()
        for first in range(0, 50, 10):
            file.append(numbered(first, 10, lambda n: os.urandom(20_000)))
        segment = file.flush()
    for lower in (0, 1, 25, 49):
        assert len(values_of(extent_of(tmp_path, segment, lower))) == 50 - lower


# ── what lies in a folder ─────────────────────────────────────────────────────────────────────────────────────────────


def test_segments_are_listed_by_their_names(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert (list_epochs(root, JOURNAL, 0), list_segments(root, JOURNAL, 0)) == (0, [])
    for epoch, number in ((3, 9), (12, 1), (3, 10), (7, 40)):
        SegmentFile.create(root, JOURNAL, partition=0, epoch=epoch, number=number, first=0).close()
    for other in ("0000000099-00000001.journal.index", "0000000098-00000001.journal~", "notes"):
        (tmp_path / FOLDER / other).touch()
    assert list_segments(root, JOURNAL, 0) == [(3, 9), (3, 10), (7, 40), (12, 1)]
    assert list_segments(root, JOURNAL, 0, after=3) == [(7, 40), (12, 1)]
    assert list_epochs(root, JOURNAL, 0) == list_epochs(tmp_path.as_uri(), JOURNAL, 0, after=11) == 12
    assert list_epochs(root, JOURNAL, 0, after=12) == 0
    assert list_epochs(root, JOURNAL, 1) == 0


def test_a_warehouse_that_is_gone_does_not_look_like_one_without_segments(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_epochs(str(tmp_path / "away"), JOURNAL, 0)


def test_a_segment_is_removed_with_its_index(tmp_path: Path) -> None:
    first = write_segment(tmp_path, [numbered(n, 1, lambda _: os.urandom(300_000)) for n in range(2)])
    write_segment(tmp_path, [numbered(2, 1)], first=2, number=2)
    path = os.path.relpath(place_of(tmp_path, first), tmp_path)
    assert len(list((tmp_path / FOLDER).iterdir())) == 3
    for _ in range(2):
        remove_segment(str(tmp_path), path)
        assert [each.name for each in (tmp_path / FOLDER).iterdir()] == ["0000000001-00000002.journal"]
