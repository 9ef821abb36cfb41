"""What ``doctor`` says of files: nothing is left of it, and what is wrong is told with the version to take."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest
from packaging.requirements import Requirement

from airflow_provider_mzshare.control.supervision import doctor
from airflow_provider_mzshare.storage import file_check
from airflow_provider_mzshare.storage.fanout import rows, splicing, writer
from airflow_provider_mzshare.storage.file_check import COMPARED_WITH, FilesDiffer, check_files

LOCK = Path(__file__).parents[3] / "requirements.lock"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def finding():
    return doctor._tried("files", doctor._files)


def test_files_of_both_ways_are_compared_quickly_and_are_gone(folder):
    check_files()
    began = time.process_time()
    assert finding().ok
    assert time.process_time() - began < 0.5
    assert finding().detail == "16 files that were put together of columns are the ones that Arrow writes"
    assert not list(folder.iterdir())


def test_files_are_put_together_and_written_by_arrow(folder, monkeypatch):
    ways = []

    class Told(writer._OutputFile):
        def __init__(self, *given, spliced):
            ways.append(spliced)
            super().__init__(*given, spliced=spliced)

    monkeypatch.setattr(writer, "_OutputFile", Told)
    assert check_files() == 16
    assert (ways.count(True), ways.count(False)) == (16, 16)


def test_a_file_that_differs_by_a_statistic_is_told(folder, monkeypatch):
    def other(values, how):
        return splicing.encode(values, how._replace(statistics=not how.statistics))

    monkeypatch.setattr(rows, "encode", other)
    found = finding()
    assert (found.ok, found.hint) == (False, f"pip install '{COMPARED_WITH}'")
    assert found.detail == (
        f"pyarrow {pa.__version__}: a file that is put together of columns is not the one that Arrow writes"
    )
    assert not list(folder.iterdir())


def test_an_arrow_whose_files_cannot_be_put_together_is_told(monkeypatch):
    monkeypatch.setattr(file_check, "is_exact", lambda: False)
    with pytest.raises(FilesDiffer, match="cannot be put together") as told:
        check_files()
    assert COMPARED_WITH in told.value.hint


def test_rows_that_are_read_otherwise_are_told(folder, monkeypatch):
    hash_table = file_check.hash_table
    monkeypatch.setattr(file_check, "hash_table", lambda table: hash_table(table.slice(1)))
    with pytest.raises(FilesDiffer, match="does not hold the rows"):
        check_files()


def test_a_pass_that_fails_is_told(folder, monkeypatch):
    monkeypatch.setattr(rows, "encode", lambda *_: 1 / 0)
    with pytest.raises(FilesDiffer, match="ZeroDivisionError"):
        check_files()


def test_the_versions_that_are_advised_are_those_that_are_tested():
    pinned = re.findall(r"^pyarrow==([0-9.]+)", LOCK.read_text(), re.MULTILINE)
    advised = Requirement(COMPARED_WITH)
    assert advised.name == "pyarrow"
    assert pinned
    assert all(advised.specifier.contains(version) for version in pinned)
    assert {spec.version for spec in advised.specifier} == set(pinned)
