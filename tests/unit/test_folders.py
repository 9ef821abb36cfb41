"""Folders of ours: private from the top, and what is there stays as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.folders import make_folder


@pytest.fixture(params=[0o022, 0o000, 0o077])
def process_mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_that_is_missing_is_private_whatever_the_process_makes_otherwise(tmp_path: Path, process_mask: int) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o755)
    jobs = tmp_path / "there" / "home" / "jobs"
    make_folder(jobs / "u1")
    made = [jobs.parent, jobs, jobs / "u1"]
    assert [mode(path) for path in made] == [0o700] * 3
    assert mode(tmp_path / "there") == 0o755, "what is there keeps its mode"
    make_folder(tmp_path / "there")
    assert mode(tmp_path / "there") == 0o755


def test_a_user_may_open_them(tmp_path: Path, process_mask: int) -> None:
    make_folder(tmp_path / "a" / "b", 0o027)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o750, 0o750]


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a"):
        make_folder(tmp_path / "a" / "b")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "a")
