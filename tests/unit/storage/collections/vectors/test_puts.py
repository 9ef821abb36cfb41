"""Entries and files on local disks: put whole, once, and only where the collection is."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.storage.collections.log import LOG, entry_path
from airflow_provider_mzshare.storage.collections.vectors import puts
from tests.support.small_disk import fill, small_disk


@pytest.fixture(params=["links", "renames"])
def collection(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Also on a file system that has no hard links, as it answers itself."""
    folder = tmp_path / "collection"
    (folder / LOG).mkdir(parents=True)
    if request.param == "renames":

        def no_links(source: Path, target: Path) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(source), None, str(target))

        monkeypatch.setattr(os, "link", no_links)
    return folder


def in_log(collection: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (collection / LOG).iterdir()}


def test_an_entry_is_put_once_and_leaves_nothing_beside_it(collection: Path) -> None:
    name = f"{3:020d}.json"
    assert puts.put_entry(str(collection), 3, b"ours") == "put"
    assert in_log(collection) == {name: b"ours"}
    assert puts.put_entry(str(collection), 3, b"another's") == "refused"
    assert in_log(collection) == {name: b"ours"}


def test_the_same_bytes_found_again_are_our_own(collection: Path) -> None:
    """As after an answer that was lost, and a client that has sent it again."""
    assert [puts.put_entry(str(collection), 3, b"ours") for _ in range(2)] == ["put", "put"]
    assert puts.put_entry(str(collection), 3, b"ours and more") == "refused"
    assert puts.put_entry(f"file://{collection}", 3, b"ours") == "put"


def test_of_many_that_put_at_once_one_has_put(collection: Path) -> None:
    """Nobody who finds it finds a part of it."""
    gate, answers, parts = threading.Barrier(8), [], []

    def put(number: int) -> None:
        content = bytes([number]) * 100_000
        for version in range(20):
            gate.wait()
            answers.append((version, puts.put_entry(str(collection), version, content)))
            found = (collection / entry_path(version)).read_bytes()
            if len(set(found)) != 1 or len(found) != 100_000:
                parts.append(version)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answers) == Counter({(v, a): n for v in range(20) for a, n in (("put", 1), ("refused", 7))})
    assert parts == []


def test_a_collection_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for attempt in (
        lambda: puts.put_entry(str(gone), 1, b"{}"),
        lambda: puts.list_entries(str(gone), 0),
        lambda: puts.write_file(str(gone), "_change_data/a/file", b""),
        lambda: puts.write_file(str(gone), "file", b""),
        lambda: puts.flush(str(gone), ["file"]),
    ):
        with pytest.raises(FileNotFoundError):
            attempt()
    assert list(tmp_path.iterdir()) == []
    gone.mkdir()
    with pytest.raises(FileNotFoundError):
        puts.put_entry(str(gone), 1, b"{}")
    assert list(gone.iterdir()) == [], "no log begins there"


def test_files_have_their_folders_and_never_take_anothers_name(collection: Path) -> None:
    for name in ("one", "other"):
        puts.write_file(str(collection), f"_change_data/deep/{name}", name.encode())
    puts.flush(str(collection), ["_change_data/deep/one", "_change_data/deep/other"])
    assert (collection / "_change_data/deep/other").read_bytes() == b"other"
    with pytest.raises(FileExistsError):
        puts.write_file(str(collection), "_change_data/deep/one", b"new")
    assert (collection / "_change_data/deep/one").read_bytes() == b"one"
    with pytest.raises(FileNotFoundError):
        puts.flush(str(collection), ["_change_data/deep/one", "never"])


def test_what_is_flushed_is_the_files_first_and_then_the_folders_that_name_them(
    collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/b/one", "two"):
        puts.write_file(str(collection), name, b"")
    flushed: list[str] = []
    fsync: Callable[[int], None] = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), collection))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    puts.flush(str(collection), ["a/b/one", "two"])
    assert sorted(flushed[:2]) == ["a/b/one", "two"]
    assert sorted(flushed[2:]) == [".", "a", "a/b"]


def test_an_entry_is_on_the_disk_before_it_has_its_name(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    fsync, name = os.fsync, puts._name
    monkeypatch.setattr(os, "fsync", lambda descriptor: (steps.append("disk"), fsync(descriptor)))
    monkeypatch.setattr(puts, "_name", lambda *paths: (steps.append("name"), name(*paths)))
    puts.put_entry(str(collection), 1, b"{}")
    assert steps == ["disk", "name"]


def test_versions_are_listed_from_one_on_and_checkpoints_in_any_form(collection: Path) -> None:
    names = [f"{version:020d}.json" for version in (0, 1, 2, 3, 10)]
    names += [f"{2:020d}.checkpoint.parquet", f"{3:020d}.checkpoint.0000000001.0000000002.parquet"]
    names += [f"{10:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"]
    names += ["_last_checkpoint", f".{3:020d}.json.crc", f".{4:020d}.json.x.tmp", f"{5:020d}.json.tmp", "7.json"]
    for name in names:
        (collection / LOG / name).touch()
    assert puts.list_entries(str(collection), 0) == ((0, 1, 2, 3, 10), (2, 3, 10))
    assert puts.list_entries(str(collection), 3) == ((3, 10), (3, 10))
    assert puts.list_entries(str(collection), 11) == ((), ())


@pytest.mark.mounts
def test_a_full_disk_is_an_error_with_its_number_and_leaves_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        (disk / LOG).mkdir()
        filler = fill(disk)
        for attempt in (
            lambda: puts.put_entry(str(disk), 1, b"x" * 50_000),
            lambda: puts.write_file(str(disk), "file", b"x" * 50_000),
        ):
            with pytest.raises(OSError) as caught:
                attempt()
            assert caught.value.errno == errno.ENOSPC
        assert in_log(disk) == {}
        assert {path.name for path in disk.iterdir()} == {LOG, filler.name}
        filler.unlink()
        assert puts.put_entry(str(disk), 1, b"x" * 50_000) == "put"


def test_a_rename_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"2")
    with pytest.raises(FileExistsError):
        puts.rename_if_absent(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == b"2"
    puts.rename_if_absent(tmp_path / "one", tmp_path / "three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three", "two"]
    with pytest.raises(FileNotFoundError):
        puts.rename_if_absent(tmp_path / "one", tmp_path / "four")


def test_any_other_error_of_a_link_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOG).mkdir()

    def broken(source: Path, target: Path) -> None:
        raise OSError(errno.EIO, "the disk does not answer")

    monkeypatch.setattr(os, "link", broken)
    with pytest.raises(OSError, match="does not answer"):
        puts.put_entry(str(tmp_path), 1, b"{}")
    assert in_log(tmp_path) == {}


def test_a_flush_of_nothing_is_none(tmp_path: Path) -> None:
    puts.flush(str(tmp_path), ())


@pytest.mark.parametrize("missing", range(3))
def test_a_flush_fails_whichever_file_is_not_there(tmp_path: Path, missing: int) -> None:
    names = ["a", "folder/b", "c"]
    for name in names:
        puts.write_file(str(tmp_path), name, b"1")
    puts.flush(str(tmp_path), names)
    Path(tmp_path, names[missing]).unlink()
    with pytest.raises(FileNotFoundError):
        puts.flush(str(tmp_path), names)


def test_a_listing_has_what_stands_at_a_version_and_above(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    names = [f"{version:020d}.json" for version in (0, 8, 9, 10)]
    names += [f"{version:020d}.checkpoint.parquet" for version in (0, 10)]
    names += [f"{9:020d}.checkpoint.0000000001.0000000002.parquet", "_last_checkpoint", f".{11:020d}.json.tmp"]
    for name in names:
        (log / name).touch()
    assert puts.list_entries(str(tmp_path), 9) == ((9, 10), (9, 10))
    assert puts.list_entries(str(tmp_path), 11) == ((), ())
