"""Segments that lie in a folder are listed by their names, and removed with what lies beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_provider_mzshare.storage.journal.folder import list_epochs, list_segments, remove_segment
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile
from tests.support.journals import JOURNAL, numbered, place_of, write_segment

FOLDER = "journals/0011223344556677/0"


def test_segments_are_listed_by_their_names(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert (list_epochs(root, JOURNAL, 0), list_segments(root, JOURNAL, 0)) == (0, [])
    for epoch, number in ((3, 9), (12, 1), (3, 10), (7, 40)):
        SegmentFile.create(root, JOURNAL, partition=0, epoch=epoch, number=number, first=0).close()
    for other in ("0000000099-00000001.journal.index", "0000000098-00000001.journal~", "notes"):
        (tmp_path / FOLDER / other).touch()
    assert list_segments(root, JOURNAL, 0) == [(3, 9), (3, 10), (7, 40), (12, 1)]
    assert list_segments(root, JOURNAL, 0, after=3) == [(7, 40), (12, 1)]
    assert list_epochs(root, JOURNAL, 0) == list_epochs(tmp_path.as_uri(), JOURNAL, 0, after=11) == 12
    assert list_epochs(root, JOURNAL, 0, after=12) == 0
    assert list_epochs(root, JOURNAL, 1) == 0


def test_a_warehouse_that_is_gone_does_not_look_like_one_without_segments(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_epochs(str(tmp_path / "away"), JOURNAL, 0)


def test_a_segment_is_removed_with_its_index(tmp_path: Path) -> None:
    first = write_segment(tmp_path, [numbered(n, 1, lambda _: os.urandom(300_000)) for n in range(2)])
    write_segment(tmp_path, [numbered(2, 1)], first=2, number=2)
    path = os.path.relpath(place_of(tmp_path, first), tmp_path)
    assert len(list((tmp_path / FOLDER).iterdir())) == 3
    for _ in range(2):
        remove_segment(str(tmp_path), path)
        assert [each.name for each in (tmp_path / FOLDER).iterdir()] == ["0000000001-00000002.journal"]
