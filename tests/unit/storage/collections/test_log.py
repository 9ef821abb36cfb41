"""Log entries as they lie in storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from airflow_provider_mzshare.storage.collections import log as deltalog


@pytest.fixture
def folder(tmp_path: Path) -> pafs.FileSystem:
    (tmp_path / deltalog.LOG).mkdir()
    return deltalog.open_filesystem(str(tmp_path))


def put(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "\n".join(json.dumps(action) for action in actions)
    (folder / deltalog.entry_path(version)).write_text(text + "\n")


def tick(time: int, app: str = "a") -> dict[str, Any]:
    return {"txn": {"appId": app, "version": time}}


def test_a_tick_is_found_behind_later_entries(tmp_path: Path, folder: pafs.FileSystem) -> None:
    put(tmp_path, 0, {"metaData": {}})
    put(tmp_path, 1, {"commitInfo": {"mz_tick": "1", "operation": "WRITE"}}, tick(10))
    put(tmp_path, 2, {"commitInfo": {"operation": "OPTIMIZE"}}, {"add": {"path": "large"}})
    put(tmp_path, 3, tick(99, app="b"))
    put(tmp_path, 4, tick(20))
    assert deltalog.find_tick(folder, "a", 20, newest=4) == deltalog.TickCommit(4, 20, {})
    assert deltalog.find_tick(folder, "a", 10, newest=4) == deltalog.TickCommit(1, 10, {"mz_tick": "1"})
    assert deltalog.find_tick(folder, "a", 10, newest=0) is None


def test_a_tick_without_an_entry_is_not_found(tmp_path: Path, folder: pafs.FileSystem) -> None:
    put(tmp_path, 1, tick(10))
    put(tmp_path, 2, tick(20))
    assert deltalog.find_tick(folder, "a", 15, newest=2) is None
    assert deltalog.find_tick(folder, "a", 5, newest=2) is None
    assert deltalog.find_tick(folder, "b", 10, newest=2) is None


def test_ticks_after_a_time_are_found_oldest_first(tmp_path: Path, folder: pafs.FileSystem) -> None:
    put(tmp_path, 5, tick(10))
    put(tmp_path, 6, {"commitInfo": {"operation": "OPTIMIZE"}})
    put(tmp_path, 7, tick(20))
    put(tmp_path, 8, tick(30))
    put(tmp_path, 9, tick(99, app="b"))
    found = deltalog.ticks_after(folder, "a", 10, newest=9)
    assert [(commit.version, commit.mz_timestamp) for commit in found or []] == [(7, 20), (8, 30)]
    assert deltalog.ticks_after(folder, "a", 30, newest=9) == []
    assert deltalog.ticks_after(folder, "a", 9, newest=9) is None, "entries before the fifth are gone"


def test_a_log_whose_beginning_was_removed_is_listed_as_it_is(tmp_path: Path, folder: pafs.FileSystem) -> None:
    put(tmp_path, 9, tick(9))
    put(tmp_path, 10, tick(10))
    for name in (f"{9:020d}.checkpoint.parquet", "_last_checkpoint", ".s3-tmp", f"{10:020d}.json.tmp"):
        (tmp_path / deltalog.LOG / name).write_text('{"version": 9}')
    log = deltalog.list_log(folder)
    assert log.entries == (9, 10)
    assert log.checkpoints == {9: f"{deltalog.LOG}/{9:020d}.checkpoint.parquet"}
    assert deltalog.last_checkpoint(folder) == 9
    assert deltalog.read_entry(folder, 8) is None
    assert deltalog.has_entry(folder, 9)
    assert not deltalog.has_entry(folder, 8)


def test_a_folder_without_a_log_has_no_entries(tmp_path: Path) -> None:
    filesystem = deltalog.open_filesystem(str(tmp_path))
    assert deltalog.list_log(filesystem) == deltalog.LogFiles((), {})
    assert deltalog.last_checkpoint(filesystem) is None
