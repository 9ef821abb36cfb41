"""A warehouse without room, or that cannot be written: nothing counts that was not acknowledged, and it goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.lifecycle.pushing import PushCut, Pusher
from airflow_provider_mzshare.errors import TransientError
from airflow_provider_mzshare.storage.journal.waiting import Acknowledged
from airflow_provider_mzshare.storage.journal.write_errors import NotWritten
from airflow_provider_mzshare.storage.journal.writer import Limits
from tests.support.inbox import Inbox
from tests.support.small_disk import fill, remount, small_disk

pytestmark = pytest.mark.mounts
SIZE = 8 << 20


def noise(count: int, size: int = 50_000) -> list[bytes]:
    """It does not get smaller when it is compressed."""
    return [os.urandom(size) for _ in range(count)]


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_disk_that_takes_nothing_refuses_and_goes_on_when_it_does_again(
    opened: Callable[..., Inbox], tmp_path: Path, how: str
) -> None:
    with small_disk(tmp_path / "home" / "warehouse", SIZE) as disk:
        inbox = opened()
        inbox.mz.push("inbox", ["a"])
        with inbox.mz.pusher("inbox") as pusher:
            filler = fill(disk) if how == "full" else None
            if how != "full":
                remount(disk, "ro")
            words = "has no free space" if how == "full" else "is read-only"
            for _ in range(2):
                with pytest.raises(NotWritten, match=words) as refused:
                    pusher.push(noise(10), batch="b")
                assert isinstance(refused.value, TransientError)
            if filler:
                filler.unlink()
            else:
                remount(disk, "rw")
            assert pusher.push(["b"]).ranges == (Acknowledged(0, 1, 2),)
            assert pusher.push(noise(10), batch="b").repeated == 0, "nothing of it counted"
        assert inbox.values()[:2] == [b"a", b"b"]
        assert len(inbox.values()) == 12


def test_a_warehouse_that_is_not_mounted_is_not_written_beside(opened: Callable[..., Inbox], tmp_path: Path) -> None:
    """Where its disk was is an empty folder, or none. A new source must not begin there either."""
    folder = tmp_path / "home" / "warehouse"
    inbox = opened()
    inbox.mz.push("inbox", ["a"])
    assert (folder / "journals").stat().st_mode & 0o077 == 0, "as private as what apps write"
    folder.rename(tmp_path / "away")
    inbox.mz.sql("CREATE SOURCE other FROM JOURNAL")
    for source in ("inbox", "other"):
        with pytest.raises(NotWritten, match="is its disk mounted"):
            inbox.mz.push(source, ["b"])
    folder.mkdir()
    for source in ("inbox", "other"):
        with pytest.raises(NotWritten, match="is its disk mounted"):
            inbox.mz.push(source, ["b"])
    folder.rmdir()
    (tmp_path / "away").rename(folder)
    for source in ("inbox", "other"):
        assert inbox.mz.push(source, ["b"]).messages == 1
    assert inbox.texts() == ["a", "b"]


def test_a_disk_that_fills_up_in_the_middle_says_how_many_count(opened: Callable[..., Inbox], tmp_path: Path) -> None:
    with small_disk(tmp_path / "home" / "warehouse", SIZE):
        inbox, records = opened(), noise(400)
        with inbox.writer(limits=Limits(group=1 << 20)) as writer:
            pusher = Pusher("inbox", writer)
            with pytest.raises(PushCut) as cut:
                pusher.push(records)
            assert 0 < cut.value.acknowledged < 168
            assert inbox.values() == records[: cut.value.acknowledged]
            with ThreadPoolExecutor(4) as pool:
                errors = [pool.submit(pusher.push, noise(1, 500_000)).exception() for _ in range(4)]
            assert all(isinstance(error, NotWritten) for error in errors)
        assert inbox.values() == records[: cut.value.acknowledged]
