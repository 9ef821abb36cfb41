"""The files of a version, replayed from entries and checkpoints; a log with a gap has no versions above it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.storage.collections.log import LOG, Entry, entry_path, open_filesystem
from airflow_provider_mzshare.storage.collections.vectors import entries
from airflow_provider_mzshare.storage.collections.vectors.bitmaps import bitmap_of, vector_file
from airflow_provider_mzshare.storage.collections.vectors.live_files import (
    LiveFile,
    LiveFiles,
    LogIncomplete,
    live_files,
)

ONE, OTHER, THIRD = (LiveFile(f"part-{name}.parquet", 10, '{"numRecords":4}', 1) for name in "abc")
FIRST, SECOND = vector_file([bitmap_of(np.array([1])), bitmap_of(np.array([1, 3]))]).vectors
LOG_OF = [
    [],
    [entries.add(ONE, data_change=True), entries.add(OTHER, data_change=True)],
    # The order within an entry says nothing: the removal is of the file as it was.
    [entries.add(ONE.with_vector(FIRST), data_change=True), entries.remove(ONE, data_change=True)],
    [entries.remove(ONE.with_vector(FIRST), data_change=True), entries.add(ONE.with_vector(SECOND), data_change=True)],
    [
        entries.remove(ONE.with_vector(SECOND), data_change=False),
        entries.remove(OTHER, data_change=False),
        entries.add(THIRD, data_change=False),
    ],
]
"""The actions of each version."""
FILES = [
    {},
    {ONE.path: None, OTHER.path: None},
    {ONE.path: FIRST, OTHER.path: None},
    {ONE.path: SECOND, OTHER.path: None},
    {THIRD.path: None},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / LOG).mkdir()
    for version, actions in enumerate(LOG_OF):
        (tmp_path / entry_path(version)).write_bytes(entries.to_bytes(actions))
    return tmp_path


def files_at(folder: Path, version: int) -> dict[str, object]:
    found = live_files(open_filesystem(str(folder)), version)
    assert found.version == version
    return {path: file.vector for path, file in found.files.items()}


def write_checkpoint(folder: Path, version: int, files: list[LiveFile], part: str = "") -> None:
    adds = [entries.add(file, data_change=False)["add"] for file in files]
    plain = [{**add, "deletionVector": add.get("deletionVector"), "partitionValues": None} for add in adds]
    name = f"{version:020d}.checkpoint{part}.parquet"
    pq.write_table(pa.table({"add": [None, *plain], "txn": [1, *(None for _ in plain)]}), folder / LOG / name)


def test_entries_are_followed_one_by_one(folder: Path) -> None:
    for version, wanted in enumerate(FILES):
        assert files_at(folder, version) == wanted


def test_a_version_is_loaded_from_the_newest_checkpoint_that_is_not_above_it(folder: Path) -> None:
    write_checkpoint(folder, 2, [ONE.with_vector(FIRST), OTHER])
    write_checkpoint(folder, 4, [THIRD])
    for version in (0, 1):
        assert files_at(folder, version) == FILES[version]
    for version in (0, 1):
        (folder / entry_path(version)).unlink()
    for version in (2, 3, 4):
        assert files_at(folder, version) == FILES[version]


def test_a_checkpoint_may_have_several_parts(folder: Path) -> None:
    write_checkpoint(folder, 2, [ONE.with_vector(FIRST)], ".0000000001.0000000002")
    write_checkpoint(folder, 2, [OTHER], ".0000000002.0000000002")
    (folder / entry_path(1)).unlink()
    assert files_at(folder, 3) == FILES[3]


def test_a_gap_is_no_empty_entry(folder: Path) -> None:
    (folder / entry_path(2)).unlink()
    assert files_at(folder, 1) == FILES[1]
    for version in (2, 3, 4):
        with pytest.raises(LogIncomplete, match="log entry 2 is missing"):
            files_at(folder, version)
    write_checkpoint(folder, 4, [THIRD])
    assert files_at(folder, 4) == FILES[4]
    with pytest.raises(LogIncomplete, match="log entry 5 is missing"):
        files_at(folder, 5)


def test_only_the_next_entry_can_be_followed() -> None:
    for version in (4, 5, 7):
        with pytest.raises(LogIncomplete, match=f"entry {version} does not follow version 5"):
            LiveFiles(5).followed_by(Entry(version, ()))
    assert LiveFiles(5).followed_by(Entry(6, ())) == LiveFiles(6)


def test_a_file_that_no_log_counts_has_no_number_of_rows() -> None:
    assert LiveFile("p", 1, "", 0).rows is None
    assert LiveFile("p", 1, "{}", 0).rows is None
    assert ONE.rows == 4
    assert (ONE.deleted, ONE.with_vector(SECOND).deleted) == (0, 2)
