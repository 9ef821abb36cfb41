"""Flushing the file system of a local warehouse, and only of a local one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_provider_mzshare.storage.collections.durability import local_path, sync_filesystem


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/data/warehouse", "/data/warehouse"),
        ("warehouse", "warehouse"),
        ("file:///data/my%20warehouse", "/data/my warehouse"),
        ("s3://bucket/warehouse", None),
        ("abfss://c@account.dfs.core.windows.net/w", None),
    ],
)
def test_only_a_path_or_a_file_uri_is_local(root: str, path: str | None) -> None:
    assert local_path(root) == path


def test_a_local_warehouse_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 4096)
    descriptors = len(os.listdir("/proc/self/fd"))
    sync_filesystem(str(tmp_path))
    sync_filesystem(tmp_path.as_uri())
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_an_error_is_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_filesystem(str(tmp_path / "missing"))


def test_an_error_of_the_system_call_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that could not take the data answers here, and nowhere else."""
    open_, close = os.open, os.close

    def open_and_close(path: str, flags: int) -> int:
        close(number := open_(path, flags))
        return number

    monkeypatch.setattr(os, "open", open_and_close)
    monkeypatch.setattr(os, "close", lambda _: None)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_filesystem(str(tmp_path))


def test_an_object_store_needs_nothing() -> None:
    sync_filesystem("s3://bucket/that/does/not/exist")
