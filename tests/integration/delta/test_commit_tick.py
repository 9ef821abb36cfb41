"""One tick, one commit: whatever the writer is told, and whoever else writes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from airflow_provider_mzshare.errors import BadCollection, CatalogBehind, CommitUnclear, Fenced, FilesTooOld
from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections import commit as commits
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.delta import NAME, new_collection, read_rows, rows_of, tick_file, time_of, write_tick

WRITE = DeltaTable.create_write_transaction


def before_the_next_write(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Run ``action`` between a writer's compare and its write, once."""

    def write(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(DeltaTable, "create_write_transaction", WRITE)
        action()
        WRITE(table, *args, **kwargs)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", write)


def test_ticks_follow_each_other_on_one_handle(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    assert collection.stored_version() is None
    versions = [write_tick(collection, tick).version for tick in range(1, 26)]
    assert versions == list(range(1, 26))
    assert collection.stored_version() == time_of(25)
    assert read_rows(collection) == rows_of(range(1, 26))


def test_a_checkpoint_every_ten_commits_keeps_the_transaction_and_every_log_entry(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in range(1, 25):
        write_tick(collection, tick)
    log = Path(collection.uri, "_delta_log")
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    assert len(list(log.glob("*.json"))) == 25
    assert Collection.open(str(tmp_path), NAME).stored_version() == time_of(24)


def test_the_entry_carries_what_the_writer_noted(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, 1, job="ingest-a")
    [commit] = audit.transactions(collection)
    assert (commit.version, commit.mz_timestamp) == (1, time_of(1))
    assert commit.metadata == {
        "mz_tick": "1",
        "mz_job": "ingest-a",
        "mz_source": "u0",
        "mz_rows": "3",
        "mz_timestamp": str(time_of(1)),
    }


def test_a_tick_that_is_there_is_not_written_again_and_keeps_its_own_version(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in (1, 2, 3):
        write_tick(collection, tick, job="first")
    assert compact(collection, min_files=2).done
    again = write_tick(Collection.open(str(tmp_path), NAME), 3, job="second")
    assert (again.version, again.already, again.metadata["mz_job"]) == (3, True, "first")
    assert collection.delta_version == 4
    assert read_rows(collection) == rows_of([1, 2, 3])


def test_a_handle_from_before_another_writers_tick_still_writes_the_next(tmp_path: Path) -> None:
    stale, other = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    write_tick(other, 1)
    result = write_tick(stale, 2)
    assert (result.version, result.already) == (2, False)
    assert read_rows(stale) == rows_of([1, 2])


def test_delta_refuses_a_second_commit_of_the_same_writer_through_a_handle_that_was_not_refreshed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conflict says that somebody committed, not that our tick is there: this very process may be the somebody."""
    collection = new_collection(tmp_path)
    file = tick_file(collection, 2)
    before_the_next_write(monkeypatch, lambda: write_tick(Collection.open(str(tmp_path), NAME), 1))
    with pytest.raises(CommitFailedError):
        commits.add_files(collection, time_of(2), [file], {})
    assert read_rows(collection) == rows_of([1])


def test_a_conflict_with_an_earlier_tick_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, late = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    before_the_next_write(monkeypatch, lambda: write_tick(late, 1))
    result = write_tick(collection, 2)
    assert (result.version, result.already) == (2, False)
    assert read_rows(collection) == rows_of([1, 2])


def test_a_conflict_with_the_same_tick_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, other = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    before_the_next_write(monkeypatch, lambda: write_tick(other, 1, job="other"))
    result = write_tick(collection, 1, job="ours")
    assert (result.version, result.already, result.metadata["mz_job"]) == (1, True, "other")
    assert read_rows(collection) == rows_of([1])


def test_a_conflict_with_a_later_tick_fences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, other = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    write_tick(collection, 1)
    before_the_next_write(monkeypatch, lambda: write_tick(other, 3, files=[], force=True))
    with pytest.raises(Fenced, match=str(time_of(3))):
        write_tick(collection, 2)
    assert read_rows(collection) == rows_of([1])


def test_a_commit_that_landed_but_raised_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = new_collection(tmp_path)
    calls = []

    def lose_the_answer(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        calls.append(1)
        WRITE(table, *args, **kwargs)
        raise OSError("connection reset by peer")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lose_the_answer)
    result = write_tick(collection, 1)
    assert (result.version, result.already, len(calls)) == (1, True, 1)
    assert read_rows(collection) == rows_of([1])


def test_a_commit_that_raised_and_did_not_land_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = new_collection(tmp_path)

    def fail() -> None:
        raise OSError("connection refused")

    before_the_next_write(monkeypatch, fail)
    assert write_tick(collection, 1).version == 1
    assert read_rows(collection) == rows_of([1])


def test_a_commit_that_never_lands_ends_as_unclear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = new_collection(tmp_path)
    calls = []

    def fail(*_: Any, **__: Any) -> None:
        calls.append(1)
        raise OSError("no space left on device")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    monkeypatch.setattr(commits, "FIRST_PAUSE_S", 0.0001)
    with pytest.raises(CommitUnclear, match="no space left"):
        write_tick(collection, 1)
    assert len(calls) == commits.WRITES
    assert read_rows(collection) == []


def test_the_last_try_is_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = new_collection(tmp_path)
    calls = []

    def land_last(table: DeltaTable, *args: Any, **kwargs: Any) -> None:
        calls.append(1)
        if len(calls) == commits.WRITES:
            WRITE(table, *args, **kwargs)
        raise OSError("timeout")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", land_last)
    monkeypatch.setattr(commits, "FIRST_PAUSE_S", 0.0001)
    assert write_tick(collection, 1).version == 1
    assert read_rows(collection) == rows_of([1])


@pytest.mark.parametrize("ahead", [1, 3], ids=["before ours", "after ours"])
def test_a_stored_tick_that_the_catalog_does_not_know_stops_the_source(tmp_path: Path, ahead: int) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, ahead)
    with pytest.raises(CatalogBehind) as caught:
        write_tick(collection, 2, knows=lambda _: False, repaired=True)
    assert (caught.value.source, caught.value.collection, caught.value.stored) == ("u0", NAME, time_of(ahead))
    assert read_rows(collection) == rows_of([ahead])


def test_a_later_tick_that_the_catalog_knows_fences(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, 2)
    with pytest.raises(Fenced):
        write_tick(collection, 1)
    assert read_rows(collection) == rows_of([2])


def test_a_repaired_tick_below_the_stored_one_counts_as_there_with_the_version_of_its_entry(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    for tick in (1, 2, 4):
        write_tick(collection, tick)
    found = write_tick(collection, 2, repaired=True)
    assert (found.version, found.already, found.metadata["mz_tick"]) == (2, True, "2")
    without_rows = write_tick(collection, 3, repaired=True)
    assert (without_rows.version, without_rows.already) == (None, True)
    assert read_rows(collection) == rows_of([1, 2, 4])


def test_no_files_make_no_commit_unless_forced(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    assert write_tick(collection, 1, files=[]).version is None
    assert collection.delta_version == 0
    forced = write_tick(collection, 1, files=[], force=True)
    assert (forced.version, forced.already) == (1, False)
    assert collection.stored_version() == time_of(1)
    assert read_rows(collection) == []


@pytest.mark.parametrize(("force", "rows"), [(True, []), (False, rows_of([1]))], ids=["forced", "not forced"])
def test_a_forced_empty_commit_is_what_keeps_a_late_zombie_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool, rows: list[dict[str, object]]
) -> None:
    """The zombie has compared and pauses; the new holder's read of the same range finds no rows any more."""
    zombie, holder = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    before_the_next_write(monkeypatch, lambda: write_tick(holder, 1, files=[], force=force))
    write_tick(zombie, 1)
    assert read_rows(holder) == rows


def test_files_that_waited_for_half_a_day_are_refused(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    fresh = tick_file(collection, 1)
    old = tick_file(collection, 1, written_at=time.time() - commits.MAX_FILE_AGE_S - 1)
    with pytest.raises(FilesTooOld):
        write_tick(collection, 1, files=[fresh, old])
    assert collection.stored_version() is None
    assert write_tick(collection, 1, files=[fresh]).version == 1


def test_a_folder_that_was_deleted_under_an_open_handle_gets_no_second_log(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, 1)
    file = tick_file(collection, 2)
    shutil.rmtree(collection.uri)
    with pytest.raises(BadCollection, match="log entry 1 is gone"):
        write_tick(collection, 2, files=[file])
    assert not Path(collection.uri).exists()


def test_a_folder_restored_from_an_older_copy_is_not_written_to(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, 1)
    shutil.copytree(collection.uri, tmp_path / "copy")
    write_tick(collection, 2)
    shutil.rmtree(collection.uri)
    shutil.copytree(tmp_path / "copy", collection.uri)
    with pytest.raises(BadCollection, match="log entry 2 is gone"):
        write_tick(collection, 3)
