"""Writers on a file system that is full, read-only or away: they say that it is so, and leave nothing behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import CommitUnclear, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import audit, commit
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.faults import StorageFault, check_takes_files
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.writing.dues import Due
from airflow_provider_mzshare.storage.writing.writers import GroupCommits, TickCommits
from tests.support.delta import NAME, SCHEMA, new_collection, read_rows, rows_of, tick_file, write_file, write_tick
from tests.support.small_disk import fill, remount, small_disk
from tests.support.writers import MEMBER, Log, check, execute, finish, plan, run_pass, writer

pytestmark = pytest.mark.mounts
SIZE = 8 << 20
BLOCK = 4096


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "FIRST_PAUSE_S", 0.0)


@contextmanager
def no_room(disk: Path) -> Iterator[None]:
    filler = fill(disk)
    try:
        yield
    finally:
        filler.unlink()


def unnamed(root: Path, *names: CollectionId) -> list[str]:
    return [file for name in names for file in audit.unnamed_files(Collection.open(str(root), name))]


def test_a_pass_without_room_says_whose_fault_it_is_and_leaves_no_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", SIZE) as disk:
        log = Log()
        app = writer(TickCommits, log, disk)
        log.follow(execute(app, log.group(1, 1), MEMBER))
        due = plan(app, log.group(2, 2), MEMBER)
        assert isinstance(due, Due)
        with no_room(disk):
            result = run_pass(log.group(2, 2), due)
            assert (result.fault, bool(result.error)) == ("full", True)
            with pytest.raises(StorageFault, match="has no free space"):
                app.commit(log.group(2, 2), due, result, time.time())
            assert not unnamed(disk, MEMBER.data, MEMBER.errors)
        log.follow(finish(app, log.group(2, 2), due))
        check(disk, log, 2, MEMBER)


def test_of_tasks_that_differ_the_files_of_those_that_had_room_go_too(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", SIZE) as disk:
        log = Log()
        app = writer(GroupCommits, log, disk)
        due = plan(app, log.group(1, 2), MEMBER)
        assert isinstance(due, Due)
        one = run_pass(log.group(1, 2), due)
        assert unnamed(disk, MEMBER.data, MEMBER.errors)
        both = MemberResult(files=one.files, error="OSError: [Errno 28] No space left on device", fault="full")
        with pytest.raises(StorageFault):
            app.commit(log.group(1, 2), due, both, time.time())
        assert not unnamed(disk, MEMBER.data, MEMBER.errors)


def test_a_commit_without_room_takes_its_files_with_it(tmp_path: Path) -> None:
    """Otherwise each try would take more of what is left."""
    with small_disk(tmp_path / "disk", SIZE) as disk:
        collection = new_collection(disk)
        write_tick(collection, 1)
        files = [tick_file(collection, 2)]
        with no_room(disk), pytest.raises(CommitUnclear) as raised:
            write_tick(collection, 2, files=files)
        assert fault_of(raised.value) == "full"
        assert not unnamed(disk, NAME)
        write_tick(collection, 2)
        assert read_rows(collection) == rows_of([1, 2])


def test_a_commit_that_landed_before_the_room_was_gone_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its checkpoint finds no room: an error is not an answer."""
    collection = new_collection(tmp_path)
    append = commit.add_files

    def landed(*args: object, **kwargs: object) -> None:
        append(*args, **kwargs)  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commit, "add_files", landed)
    assert write_tick(collection, 1).already
    assert read_rows(collection) == rows_of([1])


def test_a_log_that_cannot_be_looked_at_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the commit landed is not known then."""
    collection = new_collection(tmp_path)
    files = [tick_file(collection, 1)]
    append, looks = commit.add_files, [0]

    def landed(*args: object, **kwargs: object) -> None:
        append(*args, **kwargs)  # type: ignore[arg-type]
        looks[0] = 1
        raise OSError(5, "Input/output error")

    stored_version = Collection.stored_version

    def look(self: Collection) -> int | None:
        if looks[0]:
            raise WarehouseUnreachable(NAME, "no answer") from OSError(5, "Input/output error")
        return stored_version(self)

    monkeypatch.setattr(commit, "add_files", landed)
    monkeypatch.setattr(Collection, "stored_version", look)
    with pytest.raises(CommitUnclear):
        write_tick(collection, 1, files=files)
    monkeypatch.undo()
    assert read_rows(collection) == rows_of([1])


def test_a_collection_that_finds_no_room_is_made_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", SIZE) as disk:
        with no_room(disk), pytest.raises(WarehouseUnreachable) as raised:
            create_collection(str(disk), NAME, SCHEMA)
        assert fault_of(raised.value) == "full"
        write_tick(new_collection(disk), 1)


def test_compaction_is_put_off_without_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", SIZE) as disk:
        collection = new_collection(disk)
        for tick in range(1, 5):
            write_tick(collection, tick)
        with no_room(disk), pytest.raises(StorageFault, match="has no free space"):
            compact(collection, min_files=2)
        assert not unnamed(disk, NAME)
        assert compact(collection, min_files=2).done


def test_a_file_system_that_cannot_be_written_is_told_apart(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", SIZE) as disk:
        collection = new_collection(disk)
        write_tick(collection, 1)
        files = [write_file(collection, pa.Table.from_pylist(rows_of([2]), SCHEMA))]
        remount(disk, "ro")
        with pytest.raises(CommitUnclear) as raised:
            write_tick(collection, 2, files=files)
        assert fault_of(raised.value) == "read_only"
        with pytest.raises(StorageFault, match="is read-only"):
            check_takes_files("the warehouse", str(disk))
        remount(disk, "rw")
        write_tick(collection, 2, files=files)
        assert read_rows(collection) == rows_of([1, 2])


@pytest.mark.parametrize("kind", [TickCommits, GroupCommits])
def test_a_disk_that_is_not_mounted_is_not_taken_for_deleted_tables(tmp_path: Path, kind: type[TickCommits]) -> None:
    log, root = Log(), tmp_path / "warehouse"
    app = writer(kind, log, root)
    log.follow(execute(app, log.group(1, 1), MEMBER))
    root.rename(tmp_path / "unmounted")
    for one in (app, writer(kind, log, root, "job-2")):
        with pytest.raises(StorageFault, match="is its disk mounted"):
            plan(one, log.group(2, 2), MEMBER)
    root.mkdir()
    for one in (app, writer(kind, log, root, "job-3")):
        with pytest.raises(StorageFault, match="it is empty"):
            plan(one, log.group(2, 2), MEMBER)
    assert not any(root.iterdir()), "nothing was begun there"
    root.rmdir()
    (tmp_path / "unmounted").rename(root)
    log.follow(execute(app, log.group(2, 2), MEMBER))
    check(root, log, 2, MEMBER)
