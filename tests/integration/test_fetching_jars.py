"""The real Ivy against the real registry, with the smallest pinned jars."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute import jars
from airflow_provider_mzshare.errors import JarProblem
from tests.support.s3 import SERVER

pytestmark = pytest.mark.full  # Needs the network, which a warm test run does without.


def test_small_jars_are_fetched_once_by_runs_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tuple(sorted(jars.pinned(), key=lambda jar: jar.size)[:3])
    monkeypatch.setattr(jars, "_list", lambda: {"spark": small})
    with ThreadPoolExecutor(2) as pool:
        fetched = [run.result() for run in [pool.submit(jars.fetch, ["spark"], tmp_path) for _ in range(2)]]
    assert sorted(fetched, key=len) == [[], list(small)]
    assert {path.name for path in tmp_path.iterdir()} == {".lock"} | {jar.file for jar in small}


def test_a_jar_with_other_bytes_is_not_kept_but_the_good_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(jars.pinned(), key=lambda jar: jar.size)[:2]
    monkeypatch.setattr(jars, "_list", lambda: {"spark": (replace(first, sha256="0" * 64), second)})
    with pytest.raises(JarProblem, match="sha256 is not the pinned one"):
        jars.fetch(["spark"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", second.file}


def test_a_file_of_a_module_that_is_not_its_main_one(tmp_path: Path) -> None:
    assert jars.bring([SERVER], tmp_path) == [SERVER]
    assert {path.name for path in tmp_path.iterdir()} == {".lock", SERVER.file}
    assert jars.bring([SERVER], tmp_path) == []
