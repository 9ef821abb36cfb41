"""What maintenance removes is needed by no read from the kept version on, and by no commit on its way."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_provider_mzshare.errors import BadCollection, NotReadable
from airflow_provider_mzshare.storage.collections import audit, expiry
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from airflow_provider_mzshare.storage.collections.expiry import expire
from tests.support.delta import NAME, new_collection, read_rows, rows_of, tick_file, time_of, write_tick

COMPACTED = 16
"""The version that ``busy`` makes by compaction; ticks 1-15 are versions 1-15, ticks 16-35 versions 17-36."""


@pytest.fixture
def busy(tmp_path: Path) -> Collection:
    collection = new_collection(tmp_path)
    for tick in range(1, 16):
        write_tick(collection, tick)
    compact(collection, min_files=2)
    for tick in range(16, 36):
        write_tick(collection, tick)
    return collection


def later(hours: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(hours=hours)


def log_names(collection: Collection) -> list[str]:
    return sorted(path.name for path in Path(collection.uri, "_delta_log").iterdir())


def folder(collection: Collection) -> set[str]:
    return {path.name for path in Path(collection.uri).glob("*.parquet")}


@pytest.mark.parametrize("keep_from", [0, 8, 9, 15, COMPACTED, 19, 20, 29, 30, 36])
def test_every_version_that_is_kept_reads_as_before(busy: Collection, keep_from: int) -> None:
    before = {version: read_rows(busy, version) for version in range(keep_from, 37)}
    expire(busy, keep_from_version=keep_from, now=later(2))
    fresh = Collection.open(busy.root, NAME)
    assert {version: read_rows(fresh, version) for version in range(keep_from, 37)} == before
    assert fresh.stored_version() == time_of(35)
    assert audit.transactions(fresh)[-1].mz_timestamp == time_of(35)
    for handle, tick in ((busy, 36), (fresh, 37)):
        assert write_tick(handle, tick).version == tick + 1
    assert read_rows(fresh) == rows_of(range(1, 38))


def test_files_below_a_compaction_go_once_no_kept_version_needs_them(busy: Collection) -> None:
    small = {path for version in range(1, COMPACTED) for path in audit.active_files(busy, version)}
    assert expire(busy, keep_from_version=COMPACTED - 1, now=later(2)).data_files == ()
    gone = expire(busy, keep_from_version=COMPACTED, now=later(2))
    assert set(gone.data_files) == small
    assert gone.bytes > 0
    assert not small & folder(busy)


def test_log_entries_go_below_the_newest_checkpoint_that_can_answer(busy: Collection) -> None:
    assert expire(busy, keep_from_version=8, now=later(2)).log_files == ()
    names = log_names(busy)
    newest = max(int(name[:20]) for name in names if "checkpoint.parquet" in name and int(name[:20]) <= 30)
    gone = expire(busy, keep_from_version=30, now=later(2)).log_files
    assert set(names) - set(log_names(busy)) == {path.rpartition("/")[2] for path in gone}
    assert {int(name[:20]) for name in log_names(busy) if name[0] == "0"} == set(range(newest, 37))
    with pytest.raises(NotReadable):
        read_rows(busy, newest - 1)


def test_a_second_run_finds_nothing(busy: Collection) -> None:
    assert expire(busy, keep_from_version=30, now=later(2)).data_files
    assert expire(busy, keep_from_version=30, now=later(2)) == expiry.Expiry()


def test_a_dry_run_says_the_same_and_removes_nothing(busy: Collection) -> None:
    names, files = log_names(busy), folder(busy)
    planned = expire(busy, keep_from_version=30, now=later(2), dry_run=True)
    assert (log_names(busy), folder(busy)) == (names, files)
    assert expire(busy, keep_from_version=30, now=later(2)) == planned


def test_a_file_that_no_commit_names_stays_for_a_day_and_can_be_committed(busy: Collection) -> None:
    in_flight = tick_file(busy, 36)
    assert audit.unnamed_files(busy) == {in_flight.path}
    assert in_flight.path not in expire(busy, keep_from_version=36, now=later(23)).data_files
    assert write_tick(busy, 36, files=[in_flight]).version == 37
    assert read_rows(busy) == rows_of(range(1, 37))


def test_a_file_that_no_commit_names_goes_after_a_day(busy: Collection) -> None:
    left_over = tick_file(busy, 36)
    assert expire(busy, keep_from_version=0, now=later(25)).data_files == (left_over.path,)
    assert audit.unnamed_files(busy) == frozenset()
    assert read_rows(busy) == rows_of(range(1, 36))


def test_the_files_of_the_newest_versions_stay_at_any_age(busy: Collection) -> None:
    expire(busy, keep_from_version=36, now=later(24 * 365))
    assert read_rows(busy) == rows_of(range(1, 36))


def test_a_version_that_has_not_stood_for_the_grace_is_not_expired_to(busy: Collection) -> None:
    assert expire(busy, keep_from_version=30, now=later(0.9)) == expiry.Expiry()
    assert expire(busy, keep_from_version=30, now=later(1.1)) != expiry.Expiry()


@pytest.mark.parametrize("version", [-1, 37])
def test_a_version_that_is_not_there_is_refused(busy: Collection, version: int) -> None:
    with pytest.raises(BadCollection, match=f"no version {version}"):
        expire(busy, keep_from_version=version, now=later(2))


def test_nothing_goes_where_the_checkpoint_to_build_upon_was_cut_off(busy: Collection) -> None:
    checkpoints = sorted(Path(busy.uri, "_delta_log").glob("*.checkpoint.parquet"))
    checkpoints[-2].write_bytes(checkpoints[-2].read_bytes()[:100])
    names, files = log_names(busy), folder(busy)
    with pytest.raises(BadCollection, match="cannot be read"):
        expire(busy, keep_from_version=int(checkpoints[-2].name[:20]), now=later(2))
    assert (log_names(busy), folder(busy)) == (names, files)


def test_the_checkpoint_that_readers_are_pointed_to_stays(busy: Collection) -> None:
    """A crash between a checkpoint and its pointer leaves the pointer behind; readers fail where it leads nowhere."""
    log = Path(busy.uri, "_delta_log")
    checkpoints = sorted(log.glob("*.checkpoint.parquet"))
    pointed = int(checkpoints[0].name[:20])
    (log / "_last_checkpoint").write_text(f'{{"version": {pointed}, "size": 20}}')
    expire(busy, keep_from_version=36, now=later(2))
    assert checkpoints[0].exists()
    fresh = Collection.open(busy.root, NAME)
    assert (fresh.stored_version(), read_rows(fresh)) == (time_of(35), rows_of(range(1, 36)))


def test_a_commit_between_the_listing_and_the_removal_keeps_its_files(
    busy: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Collection.open(busy.root, NAME)
    plain = audit.data_files

    def list_and_let_another_commit(collection: Collection) -> list[object]:
        file = tick_file(writer, 36)
        listed = plain(collection)
        write_tick(writer, 36, files=[file])
        return listed

    monkeypatch.setattr(audit, "data_files", list_and_let_another_commit)
    expire(busy, keep_from_version=30, now=later(25))
    assert read_rows(busy) == rows_of(range(1, 37))
