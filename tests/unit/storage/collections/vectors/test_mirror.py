"""The mirror gives back the rows that were put into it, one by one and from anywhere, and leaves nothing behind."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_mzshare.storage.collections.vectors import mirror as module
from airflow_provider_mzshare.storage.collections.vectors.index import locations_of
from airflow_provider_mzshare.storage.collections.vectors.mirror import Mirror
from tests.support.small_disk import fill, small_disk

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def rows(begin: int, count: int) -> pa.RecordBatch:
    numbers = range(begin, begin + count)
    return pa.record_batch([list(numbers), [None if n % 5 == 0 else f"row {n}" for n in numbers]], schema=SCHEMA)


def at(*places: tuple[int, int]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.uint64), *(locations_of(file, np.array([row])) for file, row in places)])


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    mirror = Mirror(tmp_path / "made" / "mirror")
    yield mirror
    mirror.close()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 10)


@pytest.mark.usefixtures("small_chunks")
def test_rows_come_in_the_order_in_which_they_are_asked_for(mirror: Mirror) -> None:
    mirror.put(0, (rows(begin, 4) for begin in range(0, 40, 4)), SCHEMA)
    mirror.put(7, [rows(1000, 25), rows(1025, 1)], SCHEMA)
    places = [(7, 25), (0, 0), (0, 39), (7, 0), (0, 11), (0, 12), (0, 0), (7, 9), (7, 10)]
    taken = mirror.take(at(*places), SCHEMA)
    assert taken.column("n").to_pylist() == [row if file == 0 else 1000 + row for file, row in places]
    assert taken.column("text").to_pylist()[1] is None
    assert taken.column("text").to_pylist()[4:6] == ["row 11", "row 12"]
    assert taken.column("n").num_chunks == 1
    assert mirror.take(at(), SCHEMA) == SCHEMA.empty_table()


def test_a_row_that_is_not_there_is_an_error(mirror: Mirror) -> None:
    mirror.put(1, [rows(0, 3)], SCHEMA)
    mirror.put(2, [], SCHEMA)
    for place in ((1, 3), (2, 0), (3, 0)):
        with pytest.raises(LookupError):
            mirror.take(at((1, 0), place), SCHEMA)
    mirror.drop(1)
    with pytest.raises(LookupError):
        mirror.take(at((1, 0)), SCHEMA)
    with pytest.raises(LookupError):
        mirror.drop(1)
    assert 1 not in mirror
    assert 2 in mirror


def test_columns_that_a_file_does_not_have_are_null_and_others_are_left_out(mirror: Mirror) -> None:
    shape = pa.schema([("more", pa.decimal128(38, 0)), ("n", pa.int64())])
    mirror.put(1, [rows(0, 3)], SCHEMA)
    newer = pa.schema([*SCHEMA, ("more", pa.decimal128(38, 0))])
    mirror.put(2, [pa.record_batch([[8], ["x"], pa.array([5], pa.decimal128(38, 0))], schema=newer)], newer)
    taken = mirror.take(at((2, 0), (1, 2)), shape)
    assert taken.schema == shape
    assert taken.to_pylist() == [{"more": 5, "n": 8}, {"more": None, "n": 2}]


def test_columns_are_kept_in_the_collections_form_and_given_in_a_wider_one(mirror: Mirror) -> None:
    """Files of delta-rs have views; a column of an older file may be narrower than the collection's."""
    views = pa.schema([("n", pa.int32()), ("text", pa.string_view())])
    narrow = pa.schema([("n", pa.int32()), ("text", pa.string())])
    mirror.put(1, [pa.record_batch([[1, 2], ["a", "b" * 50]], schema=views)], SCHEMA)
    mirror.put(2, [pa.record_batch([[3], ["c"]], schema=narrow)], narrow)
    mirror.put(3, [pa.record_batch([["z"], [4]], names=["text", "n"])], SCHEMA)
    taken = mirror.take(at((1, 1), (2, 0), (3, 0)), SCHEMA)
    assert taken.schema == SCHEMA
    assert taken.to_pylist() == [{"n": 2, "text": "b" * 50}, {"n": 3, "text": "c"}, {"n": 4, "text": "z"}]


def test_a_file_is_put_once(mirror: Mirror) -> None:
    mirror.put(1, [rows(0, 3)], SCHEMA)
    with pytest.raises(ValueError, match="already"):
        mirror.put(1, [rows(5, 3)], SCHEMA)
    assert mirror.take(at((1, 0)), SCHEMA).column("n").to_pylist() == [0]


def test_what_an_earlier_process_has_left_is_removed_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "3.arrow").write_bytes(b"left")
    (tmp_path / "other").write_bytes(b"not ours")
    mirror = Mirror(tmp_path)
    assert not (tmp_path / "3.arrow").exists()
    mirror.put(3, [rows(0, 100)], SCHEMA)
    assert mirror.disk_bytes == (tmp_path / "3.arrow").stat().st_size > 800
    taken = mirror.take(at((3, 99)), SCHEMA)
    mirror.close()
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert taken.column("n").to_pylist() == [99], "what was given stays valid"
    assert mirror.disk_bytes == 0


def test_a_reader_that_fails_leaves_nothing(mirror: Mirror, tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield rows(0, 10)
        raise OSError(errno.EIO, "the disk does not answer")

    with pytest.raises(OSError, match="does not answer"):
        mirror.put(1, broken(), SCHEMA)
    assert 1 not in mirror
    assert list((tmp_path / "made" / "mirror").iterdir()) == []
    mirror.put(1, [rows(0, 1)], SCHEMA)


@pytest.mark.mounts
def test_a_full_disk_leaves_nothing_and_does_not_harm_what_is_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2 << 20) as disk:
        mirror = Mirror(disk / "mirror")
        mirror.put(1, [rows(0, 100)], SCHEMA)
        filler = fill(disk, leave=20_000)
        with pytest.raises(OSError) as caught:
            mirror.put(2, (rows(begin, 1000) for begin in range(0, 300_000, 1000)), SCHEMA)
        assert caught.value.errno == errno.ENOSPC
        assert [path.name for path in (disk / "mirror").iterdir()] == ["1.arrow"]
        assert 2 not in mirror
        assert mirror.take(at((1, 99)), SCHEMA).column("n").to_pylist() == [99]
        filler.unlink()
        mirror.put(2, [rows(0, 1000)], SCHEMA)
        assert mirror.take(at((2, 999)), SCHEMA).column("n").to_pylist() == [999]
        mirror.close()
